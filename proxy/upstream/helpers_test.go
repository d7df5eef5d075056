package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// patience is how long a test waits for something that must happen before it fails.
const patience = 20 * time.Second

// testContext is done after patience, so that a test that hangs fails with an error.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// listen serves each connection with serve, in a goroutine of its own, and closes it
// afterwards. serve gets the number of the connection, from 0.
func listen(t testing.TB, serve func(n int, c net.Conn, r *bufio.Reader)) (addr string) {
	t.Helper()
	return listenAt(t, "127.0.0.1:0", serve)
}

// listenAt is listen at an address.
func listenAt(t testing.TB, at string, serve func(n int, c net.Conn, r *bufio.Reader)) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	wg.Go(func() {
		for n := 0; ; n++ {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			wg.Go(func() {
				defer func() { _ = c.Close() }()
				serve(n, c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		mu.Lock()
		for c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return ln.Addr().String()
}

// answerEach answers each request on a connection with answer. It understands
// requests whose body has a Content-Length or none.
func answerEach(answer string) func(int, net.Conn, *bufio.Reader) {
	return func(_ int, c net.Conn, r *bufio.Reader) {
		for {
			if _, err := readRequest(r); err != nil {
				return
			}
			if _, err := io.WriteString(c, answer); err != nil {
				return
			}
		}
	}
}

// readRequest returns the bytes of one request: its head and its body.
func readRequest(r *bufio.Reader) (string, error) {
	var all strings.Builder
	length, chunked := 0, false
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", err
		}
		all.WriteString(line)
		if n, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			parsed, _ := parseLength(strings.TrimSpace(n))
			length = int(parsed)
		}
		chunked = chunked || strings.HasPrefix(line, "Transfer-Encoding: chunked")
		if line == "\r\n" {
			break
		}
	}
	for chunked {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", err
		}
		all.WriteString(line)
		chunked = !strings.HasSuffix(all.String(), "\r\n0\r\n\r\n")
	}
	body := make([]byte, length)
	_, err := io.ReadFull(r, body)
	all.Write(body)
	return all.String(), err
}

// serverAt makes a server of its own, outside any probing. change may be nil.
func serverAt(t testing.TB, url string, change func(*Config)) *Server {
	t.Helper()
	cfg := Config{Servers: []ServerConfig{{Name: "a", URL: url}}, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := p.members[0].server
	t.Cleanup(s.idle.close)
	return s
}

// get makes a GET and reads the answer whole.
func get(t *testing.T, s *Server, target string) (*Response, string, error) {
	t.Helper()
	return do(t, s, &Request{Method: "GET", Target: target, Host: "example"})
}

func do(t *testing.T, s *Server, req *Request) (*Response, string, error) {
	t.Helper()
	resp, err := s.RoundTrip(testContext(t), req)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(resp.Body)
	if closeErr := resp.Body.Close(); closeErr != nil {
		t.Errorf("Close: %v", closeErr)
	}
	return resp, string(body), err
}

// wantError checks an *Error of the given step, whose text has the words.
func wantError(t *testing.T, err error, op string, sent bool, words string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %v, want an *Error", err)
	}
	if e.Op != op || e.Sent != sent || !strings.Contains(e.Error(), words) {
		t.Errorf("error is %q (op %q, sent %v), want op %q, sent %v, text %q", e, e.Op, e.Sent, op, sent, words)
	}
}

// within receives from c or fails.
func within[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not happen", what)
		panic("not reached")
	}
}

// eventually polls until ok holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// idleCount is how many connections wait for reuse.
func idleCount(s *Server) int {
	s.idle.mu.Lock()
	defer s.idle.mu.Unlock()
	n := 0
	for _, list := range s.idle.conns {
		n += len(list)
	}
	return n
}

func fields(pairs ...string) wire.Header {
	var h wire.Header
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}
