package front

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// sentBytes is a connection of which a test says what its client sends, and when it
// leaves.
type sentBytes struct {
	net.Conn
	mu    sync.Mutex
	news  sync.Cond // on mu: of in and left
	in    []byte
	left  bool
	owned int // reads under way
}

func newSentBytes() *sentBytes {
	c := &sentBytes{}
	c.news.L = &c.mu
	return c
}

func (c *sentBytes) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owned++; c.owned > 1 {
		panic("two reads of one connection at a time")
	}
	defer func() { c.owned-- }()
	for len(c.in) == 0 {
		if c.left {
			return 0, io.EOF
		}
		c.news.Wait()
	}
	n := copy(p, c.in)
	c.in = c.in[n:]
	return n, nil
}

func (c *sentBytes) SetReadDeadline(time.Time) error { return nil }

func (c *sentBytes) send(b []byte, leave bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in, c.left = append(c.in, b...), c.left || leave
	c.news.Broadcast()
}

// FuzzGuard runs exchanges on a guarded connection while its client sends and leaves at
// any time. What the client sent must be read whole and in order, whatever a guard took of
// it; an exchange must be told that the client left if it is guarded, its body has been
// read and nothing else came, and never otherwise, twice or after its end.
func FuzzGuard(f *testing.F) {
	for _, steps := range [][]byte{
		{2, 3, 6, 5},                      // the client leaves a guarded exchange
		{2, 3, 0x10, 5, 1, 2, 3, 6, 5},    // the next request comes early
		{0x0a, 3, 0x20, 1, 1, 4, 6, 5},    // the guard waits for the body's end
		{2, 5, 2, 3, 5, 6, 2, 3, 5},       // it leaves between two exchanges
		{2, 3, 0x70, 6, 5, 1, 1, 2, 3},    // it sends more and leaves
		{6, 2, 3, 5, 0x0a, 3, 5, 2, 3},    // it has left at once
		{0x70, 0x71, 2, 3, 5, 0x31, 2, 3}, // bytes wait before the guard
		{2, 3, 5, 0x0a, 6, 3, 1},          // a read outlives its exchange and sees it leave
	} {
		f.Add(steps)
	}
	f.Fuzz(func(t *testing.T, steps []byte) {
		c := newSentBytes()
		var g guardian
		g.init(c, func(what string, p any) { t.Errorf("%s panicked: %v", what, p) })

		var sent, got []byte
		var exchange, guarded, bodyRead, left bool
		told := make(chan struct{}, 2)
		end := func() {
			// A read of an earlier exchange may still run, and see the client leave
			// before this one's body has been read.
			mayBeTold := left && exchange && guarded && len(got) == len(sent)
			if mayBeTold && bodyRead {
				select {
				case <-told:
				case <-time.After(10 * time.Second):
					t.Fatal("the exchange was not told that its client left")
				}
			}
			g.end()
			if mayBeTold && !bodyRead && len(told) > 0 {
				<-told
			}
			if len(told) > 0 {
				t.Fatal("the exchange was told more than once, or without reason, that its client left")
			}
			exchange, guarded = false, false
		}
		read := func(room int) error {
			p := make([]byte, room)
			n, err := g.read(p)
			got = append(got, p[:n]...)
			return err
		}
		for _, step := range steps {
			argument := int(step >> 4)
			switch step & 7 {
			case 0, 7:
				if left {
					continue
				}
				b := make([]byte, 1+argument)
				for i := range b {
					b[i] = byte(len(sent) + i)
				}
				sent = append(sent, b...)
				c.send(b, false)
			case 1:
				// The next head is read behind the exchange, and a body within.
				if exchange && bodyRead || len(got) == len(sent) && !left {
					continue
				}
				if err := read(1 + argument); err != nil && len(got) < len(sent) {
					t.Fatalf("reading failed before the end: %v", err)
				}
			case 2:
				if !exchange {
					hasBody := step&8 != 0
					exchange, bodyRead = true, !hasBody
					g.start(hasBody)
				}
			case 3:
				if exchange && !guarded {
					guarded = true
					g.guard(func() { told <- struct{}{} }, 0)
				}
			case 4:
				if exchange && !bodyRead {
					bodyRead = true
					g.bodyEnded()
				}
			case 5:
				end()
			case 6:
				left = true
				c.send(nil, true)
			}
		}
		left = true
		c.send(nil, true)
		end()
		for len(got) <= len(sent) {
			if err := read(3); err != nil {
				break
			}
		}
		if !bytes.Equal(got, sent) {
			t.Errorf("the client sent % x, read was % x", sent, got)
		}
	})
}
