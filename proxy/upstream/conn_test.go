package upstream

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func TestKeepAlive(t *testing.T) {
	var conns atomic.Int32
	serve := answerEach(okAnswer)
	addr := listen(t, func(n int, c net.Conn, r *bufio.Reader) { conns.Add(1); serve(n, c, r) })
	s := serverAt(t, "http://"+addr, nil)
	for range 5 {
		if _, body, err := get(t, s, "/"); err != nil || body != "ok" {
			t.Fatalf("%q, %v", body, err)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("5 requests took %d connections, want 1", n)
	}
}

// Watches and MVP's own requests leave the connections of clients' short requests
// alone.
func TestKindsOfConnections(t *testing.T) {
	addr := listen(t, answerEach(okAnswer))
	s := serverAt(t, "http://"+addr, nil)
	for _, long := range []bool{false, true} {
		if _, _, err := do(t, s, &Request{Method: "GET", Target: "/", Long: long}); err != nil {
			t.Fatal(err)
		}
	}
	if n := idleCount(s); n != 2 {
		t.Errorf("%d connections, want one of each kind", n)
	}
}

func TestConnectionNotKept(t *testing.T) {
	for name, answer := range map[string]string{
		"Connection: close": "HTTP/1.1 200 OK\r\nconnection: foo, Close\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.0":          "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
	} {
		t.Run(name, func(t *testing.T) {
			s := serverAt(t, "http://"+listen(t, answerEach(answer)), nil)
			if _, _, err := get(t, s, "/"); err != nil {
				t.Fatal(err)
			}
			if n := idleCount(s); n != 0 {
				t.Errorf("%d connections are kept", n)
			}
		})
	}
}

// Bytes after the end of an answer would be taken for the next one's.
func TestConnectionWithBytesLeftIsNotReused(t *testing.T) {
	served := make(chan int, 8)
	addr := listen(t, func(n int, c net.Conn, r *bufio.Reader) {
		for {
			if _, err := readRequest(r); err != nil {
				return
			}
			served <- n
			_, _ = io.WriteString(c, okAnswer+"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL")
		}
	})
	s := serverAt(t, "http://"+addr, nil)
	for want := range 3 {
		if _, body, err := get(t, s, "/"); err != nil || body != "ok" {
			t.Fatalf("%q, %v", body, err)
		}
		if n := within(t, served, "the request"); n != want {
			t.Errorf("request %d came on connection %d", want, n)
		}
	}
}

// A server that closed its side of an idle connection costs no request, not even a
// POST, which nobody could send twice.
func TestStaleConnectionIsReplaced(t *testing.T) {
	closed := make(chan struct{}, 1)
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		if _, err := readRequest(r); err != nil {
			return
		}
		_, _ = io.WriteString(c, okAnswer)
		_ = c.Close()
		closed <- struct{}{}
	})
	s := serverAt(t, "http://"+addr, nil)
	for range 20 {
		_, body, err := do(t, s, &Request{Method: "POST", Target: "/", Body: strings.NewReader("{}"), ContentLength: 2})
		if err != nil || body != "ok" {
			t.Fatalf("%q, %v", body, err)
		}
		within(t, closed, "the close")
		eventually(t, "the close is seen", func() bool { return idleAlive(s) == 0 })
	}
}

func idleAlive(s *Server) int {
	s.idle.mu.Lock()
	defer s.idle.mu.Unlock()
	n := 0
	for _, list := range s.idle.conns {
		for _, c := range list {
			if c.alive() {
				n++
			}
		}
	}
	return n
}

// The server takes the request on a used connection and closes without a byte: a GET
// goes out again, once; a POST may have been executed and does not.
func TestRepeat(t *testing.T) {
	var requests atomic.Int32
	start := func(failing int) *Server {
		requests.Store(0)
		addr := listen(t, func(n int, c net.Conn, r *bufio.Reader) {
			for i := 0; ; i++ {
				if _, err := readRequest(r); err != nil {
					return
				}
				requests.Add(1)
				if i > 0 && n < failing || n > 0 && n < failing {
					return
				}
				_, _ = io.WriteString(c, okAnswer)
			}
		})
		s := serverAt(t, "http://"+addr, nil)
		if _, _, err := get(t, s, "/"); err != nil {
			t.Fatal(err)
		}
		return s
	}
	f := func(method string, failing int, wantRequests int32, wantErr string) {
		t.Helper()
		s := start(failing)
		req := &Request{Method: method, Target: "/"}
		_, _, err := do(t, s, req)
		if wantErr == "" && err != nil {
			t.Errorf("%s: %v", method, err)
		}
		if wantErr != "" {
			wantError(t, err, OpReadHead, true, wantErr)
		}
		if n := requests.Load() - 1; n != wantRequests {
			t.Errorf("%s: the server got it %d times, want %d", method, n, wantRequests)
		}
	}

	f("GET", 1, 2, "")
	f("GET", 2, 2, "EOF") // a new connection fails too: no third try
	f("POST", 1, 1, "EOF")
	f("PUT", 1, 1, "EOF")
	f("PATCH", 1, 1, "EOF")
	f("DELETE", 1, 1, "EOF")
}

func TestDialFailure(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	_, _, err = get(t, serverAt(t, "http://"+addr, nil), "/")
	wantError(t, err, OpDial, false, "connection refused")
}

func TestIdleTimeout(t *testing.T) {
	s := serverAt(t, "http://"+listen(t, answerEach(okAnswer)), func(c *Config) { c.IdleTimeout = time.Nanosecond })
	if _, _, err := get(t, s, "/"); err != nil {
		t.Fatal(err)
	}
	s.idle.sweep()
	if n := idleCount(s); n != 0 {
		t.Errorf("%d connections outlive the idle timeout", n)
	}
}

func TestMaxIdle(t *testing.T) {
	s := serverAt(t, "http://"+listen(t, answerEach(okAnswer)), func(c *Config) { c.MaxIdlePerServer = 2 })
	var bodies []io.Closer
	for range 4 {
		resp, err := s.RoundTrip(testContext(t), &Request{Method: "GET", Target: "/"})
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, resp.Body)
		defer func() { _, _ = io.ReadAll(resp.Body); _ = resp.Body.Close() }()
	}
	for _, b := range bodies {
		_, _ = io.ReadAll(b.(io.Reader))
	}
	if n := idleCount(s); n != 2 {
		t.Errorf("%d idle connections, want 2", n)
	}
}

// With one connection, many requests wait for each other, and none loses its body.
func TestMaxConns(t *testing.T) {
	var open, most atomic.Int32
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		most.Store(max(most.Load(), open.Add(1)))
		defer open.Add(-1)
		for {
			req, err := readRequest(r)
			if err != nil {
				return
			}
			body := req[strings.Index(req, "\r\n\r\n")+4:]
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
	})
	s := serverAt(t, "http://"+addr, func(c *Config) { c.MaxConnsPerServer = 1 })
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			want := fmt.Sprintf("body %d", i)
			_, got, err := do(t, s, &Request{Method: "POST", Target: "/", Body: strings.NewReader(want), ContentLength: int64(len(want))})
			if err != nil || got != want {
				t.Errorf("%q, %v, want %q", got, err, want)
			}
		})
	}
	wg.Wait()
	if n := most.Load(); n != 1 {
		t.Errorf("%d connections at once, want 1", n)
	}
	if s.Inflight() != 0 {
		t.Errorf("%d requests in flight after the last", s.Inflight())
	}
}

func TestMaxConnsTimeout(t *testing.T) {
	addr := listen(t, answerEach("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok"))
	s := serverAt(t, "http://"+addr, func(c *Config) { c.MaxConnsPerServer = 1; c.DialTimeout = 20 * time.Millisecond })
	resp, err := s.RoundTrip(testContext(t), &Request{Method: "GET", Target: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if s.Inflight() != 1 {
		t.Errorf("%d requests in flight, want 1", s.Inflight())
	}
	_, err = s.RoundTrip(testContext(t), &Request{Method: "GET", Target: "/"})
	wantError(t, err, OpWait, false, "deadline exceeded")
	var e *Error
	if !errors.As(err, &e) || !e.Timeout {
		t.Error("Timeout is not set")
	}

	// A watch and MVP's own probes are not held up.
	watch, err := s.RoundTrip(testContext(t), &Request{Method: "GET", Target: "/", Long: true})
	if err != nil {
		t.Fatal(err)
	}
	if s.Inflight() != 1 || s.Streams() != 1 {
		t.Errorf("%d in flight and %d streams, want 1 and 1", s.Inflight(), s.Streams())
	}
	_ = watch.Body.Close()
	_ = resp.Body.Close()
	_ = resp.Body.Close()
	if s.Inflight() != 0 || s.Streams() != 0 {
		t.Errorf("%d in flight and %d streams, want none", s.Inflight(), s.Streams())
	}
}

// A burst that has arrived is one Read; what has not is not waited for.
func TestChunksAreReadTogetherAndAtOnce(t *testing.T) {
	next := make(chan struct{})
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		_, _ = readRequest(r)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n5\r\nth")
		<-next
		_, _ = io.WriteString(c, "ree\r\n0\r\n\r\n")
	})
	s := serverAt(t, "http://"+addr, nil)
	resp, err := s.RoundTrip(testContext(t), &Request{Method: "GET", Target: "/", Long: true})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	n, err := resp.Body.Read(b)
	if string(b[:n]) != "onetwoth" || err != nil {
		t.Errorf("%q, %v, want all that was sent", b[:n], err)
	}
	close(next)
	rest, err := io.ReadAll(resp.Body)
	if string(rest) != "ree" || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
	_ = resp.Body.Close()
}
