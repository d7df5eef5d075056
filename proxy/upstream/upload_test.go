package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// endless is a body of an import that has no end. It counts the readers that are in it.
type endless struct{ reading atomic.Int32 }

func (e *endless) Read(b []byte) (int, error) {
	e.reading.Add(1)
	defer e.reading.Add(-1)
	return len(b), nil
}

const tooLarge = "HTTP/1.1 413 Request Entity Too Large\r\nContent-Length: 9\r\n\r\ntoo large"

// The server has seen enough after the head: its answer is relayed though the body is
// still being written, and nobody reads the body afterwards.
func TestEarlyAnswer(t *testing.T) {
	for name, then := range map[string]func(*net.TCPConn) error{
		"and the server reads no more": func(*net.TCPConn) error { return nil },
		"and the server closes":        (*net.TCPConn).CloseWrite,
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan struct{})
			defer close(done)
			addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
				_, _ = r.ReadString('\n')
				_, _ = io.WriteString(c, tooLarge)
				_ = then(c.(*net.TCPConn))
				<-done
			})
			s := serverAt(t, "http://"+addr, nil)
			body := &endless{}
			resp, text, err := do(t, s, &Request{Method: "POST", Target: "/", Body: body, ContentLength: 1 << 40})
			if err != nil || resp.Status != 413 || text != "too large" {
				t.Fatalf("%+v, %q, %v", resp, text, err)
			}
			if body.reading.Load() != 0 {
				t.Error("the body is still being read after Close")
			}
			if n := idleCount(s); n != 0 {
				t.Error("a connection with half a request is kept")
			}
		})
	}
}

// blocking is a client that stops sending until it is closed.
type blocking struct {
	sent   io.Reader
	closed chan struct{}
}

func (b *blocking) Read(p []byte) (int, error) {
	if n, err := b.sent.Read(p); err == nil {
		return n, nil
	}
	<-b.closed
	return 0, errors.New("the client's body was closed")
}

func (b *blocking) Close() error {
	close(b.closed)
	return nil
}

func TestEarlyAnswerToSilentClient(t *testing.T) {
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		_, _ = r.ReadString('\n')
		_, _ = io.WriteString(c, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
		_, _ = io.Copy(io.Discard, r)
	})
	body := &blocking{sent: strings.NewReader("some"), closed: make(chan struct{})}
	resp, _, err := do(t, serverAt(t, "http://"+addr, nil), &Request{Method: "POST", Target: "/", Body: body, ContentLength: -1})
	if err != nil || resp.Status != 401 {
		t.Fatalf("%+v, %v", resp, err)
	}
}

// A connection whose request body was streamed whole is as good as any.
func TestStreamedBodyKeepsConnection(t *testing.T) {
	s := serverAt(t, "http://"+listen(t, answerEach(okAnswer)), nil)
	body := strings.Repeat("x", 1<<20)
	resp, err := s.RoundTrip(testContext(t), &Request{Method: "POST", Target: "/", Body: unsized(body), ContentLength: int64(len(body))})
	if err != nil {
		t.Fatal(err)
	}
	upload := resp.Body.(*exchange).upload
	<-upload.done
	if got, err := io.ReadAll(resp.Body); string(got) != "ok" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	if n := idleCount(s); n != 1 {
		t.Errorf("%d idle connections, want 1", n)
	}
	_ = resp.Body.Close()
}

type brokenReader struct {
	sent io.Reader
	err  error
}

func (b brokenReader) Read(p []byte) (int, error) {
	n, err := b.sent.Read(p)
	if errors.Is(err, io.EOF) {
		if b.err == nil {
			panic("a reader's own panic")
		}
		err = b.err
	}
	return n, err
}

// A client that fails to send its body: the server must not take the part for the
// whole.
func TestClientBodyFails(t *testing.T) {
	var executed atomic.Int32
	f := func(sent string, length int64, cause error, words string) {
		t.Helper()
		gone := make(chan struct{}, 1)
		addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
			if _, err := readRequest(r); err == nil {
				executed.Add(1)
				_, _ = io.WriteString(c, okAnswer)
			}
			gone <- struct{}{}
		})
		s := serverAt(t, "http://"+addr, nil)
		_, err := s.RoundTrip(testContext(t), &Request{
			Method: "POST", Target: "/", Body: brokenReader{strings.NewReader(sent), cause}, ContentLength: length,
		})
		wantError(t, err, OpRequestBody, true, words)
		if cause != nil && !errors.Is(err, cause) {
			t.Errorf("error %v does not wrap %v", err, cause)
		}
		within(t, gone, "the close at the server")
	}
	large := strings.Repeat("x", 1<<20)
	left := errors.New("the client left")

	f("part", -1, left, "the client left")
	f(large, 1<<21, left, "the client left")
	f(large, 1<<21, io.ErrUnexpectedEOF, "unexpected EOF")
	f("part", -1, nil, "the reader panicked: a reader's own panic")
	if n := executed.Load(); n != 0 {
		t.Errorf("the server took %d truncated requests for whole ones", n)
	}
}

func TestBodyThatReturnsNothing(t *testing.T) {
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) { _, _ = io.Copy(io.Discard, r) })
	s := serverAt(t, "http://"+addr, nil)
	_, err := s.RoundTrip(testContext(t), &Request{Method: "POST", Target: "/", Body: emptyReader{}, ContentLength: -1})
	wantError(t, err, OpRequestBody, true, "multiple Read calls return no data")
}

type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, nil }

// A cancelled request whose body waits for the client ends as soon as that ends.
func TestCancelDuringUpload(t *testing.T) {
	got := make(chan struct{}, 1)
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		_, _ = r.ReadString('\n')
		got <- struct{}{}
		_, _ = io.Copy(io.Discard, r)
	})
	ctx, cancel := context.WithCancelCause(testContext(t))
	go func() {
		<-got
		cancel(errors.New("the client left"))
	}()
	body := &blocking{sent: strings.NewReader("some"), closed: make(chan struct{})}
	_, err := serverAt(t, "http://"+addr, nil).RoundTrip(ctx, &Request{Method: "POST", Target: "/", Body: body, ContentLength: -1})
	wantError(t, err, OpReadHead, true, "the client left")
}

// Both directions at once, as a proxy subresource may do: the answer begins before the
// body has ended and both go to their ends.
func TestDuplex(t *testing.T) {
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		for line := ""; line != "\r\n"; {
			line, _ = r.ReadString('\n')
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n")
		_, _ = io.CopyN(c, r, 1<<20)
	})
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	s := serverAt(t, "http://"+addr, func(c *Config) { c.HeaderTimeout = patience })
	body := struct{ io.Reader }{bytes.NewReader(want)}
	_, got, err := do(t, s, &Request{Method: "POST", Target: "/", Body: body, ContentLength: int64(len(want))})
	if err != nil || got != string(want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
}

// A server that takes the connection but not the body runs into the limit on each
// piece.
func TestWriteTimeout(t *testing.T) {
	done := make(chan struct{})
	defer close(done)
	addr := listen(t, func(int, net.Conn, *bufio.Reader) { <-done })
	s := serverAt(t, "http://"+addr, func(c *Config) { c.HeaderTimeout = 50 * time.Millisecond })
	_, err := s.RoundTrip(testContext(t), &Request{Method: "POST", Target: "/", Body: &endless{}, ContentLength: -1})
	var e *Error
	if !errors.As(err, &e) || e.Op != OpWrite || !e.Timeout {
		t.Errorf("error %v, want a timeout of %q", err, OpWrite)
	}
}
