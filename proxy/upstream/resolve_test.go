package upstream

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
)

// Requests follow a server's name: after it has moved, the next one goes to the new
// address, and no connection to the old one takes another.
func Test5_17_NameMoves(t *testing.T) {
	var atOld, atNew atomic.Int32
	counting := func(n *atomic.Int32) func(int, net.Conn, *bufio.Reader) {
		return func(_ int, c net.Conn, r *bufio.Reader) {
			for {
				if _, err := readRequest(r); err != nil {
					return
				}
				n.Add(1)
				if _, err := io.WriteString(c, okAnswer); err != nil {
					return
				}
			}
		}
	}
	_, port, err := net.SplitHostPort(listen(t, counting(&atOld)))
	if err != nil {
		t.Fatal(err)
	}
	listenAt(t, "127.0.0.2:"+port, counting(&atNew))
	names := serveNames(t)
	names.point("127.0.0.1")
	s := serverAt(t, "http://apiserver.example.com:"+port, nil)

	busy, err := s.RoundTrip(testContext(t), &Request{Method: "GET", Target: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := get(t, s, "/"); err != nil {
		t.Fatal(err)
	}
	if n := idleCount(s); n != 1 || atOld.Load() != 2 {
		t.Fatalf("%d idle connections after %d requests, want 1 after 2", n, atOld.Load())
	}

	names.point("127.0.0.2")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go s.followName(ctx) // looks at once
	eventually(t, "the idle connection to the old address is closed", func() bool { return idleCount(s) == 0 })
	if _, err := io.ReadAll(busy.Body); err != nil {
		t.Errorf("an answer that was under way: %v", err)
	}
	_ = busy.Body.Close()
	if n := idleCount(s); n != 0 {
		t.Errorf("%d connections to the old address are kept for more", n)
	}
	for range 3 {
		if _, _, err := get(t, s, "/"); err != nil {
			t.Error(err)
		}
	}
	if atOld.Load() != 2 || atNew.Load() != 3 {
		t.Errorf("the old address got %d requests and the new one %d, want 2 and 3", atOld.Load(), atNew.Load())
	}
}

// nameServer has one address for every name.
type nameServer struct{ address atomic.Pointer[netip.Addr] }

// serveNames makes a name server the one of this process, until the test ends.
func serveNames(t *testing.T) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &nameServer{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		query := make([]byte, 512)
		for {
			size, from, err := conn.ReadFrom(query)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(n.answer(query[:size]), from)
		}
	}()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		_ = conn.Close()
		<-ended
	})
	return n
}

func (n *nameServer) point(address string) {
	ip := netip.MustParseAddr(address)
	n.address.Store(&ip)
}

// answer answers a query for one name (RFC 1035, section 4): with the address, or with
// nothing where another type than A is asked for.
func (n *nameServer) answer(query []byte) []byte {
	const head, flags, counts, typeA = 12, 2, 4, 1
	end := head
	for query[end] != 0 { // the labels of the name
		end += int(query[end]) + 1
	}
	end += 5 // the last label, type and class
	reply := append([]byte(nil), query[:end]...)
	binary.BigEndian.PutUint16(reply[flags:], 0x8180) // an answer, without an error
	for i := range 4 {
		binary.BigEndian.PutUint16(reply[counts+2*i:], 0)
	}
	binary.BigEndian.PutUint16(reply[counts:], 1) // question
	if binary.BigEndian.Uint16(query[end-4:]) != typeA {
		return reply
	}
	binary.BigEndian.PutUint16(reply[counts+2:], 1) // answer
	reply = append(reply, 0xc0, head)               // the name of the question
	reply = append(reply, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4)
	return append(reply, n.address.Load().AsSlice()...)
}
