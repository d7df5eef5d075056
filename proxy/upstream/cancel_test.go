package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestHeaderTimeout(t *testing.T) {
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) { _, _ = io.Copy(io.Discard, r) })
	s := serverAt(t, "http://"+addr, func(c *Config) { c.HeaderTimeout = 30 * time.Millisecond })
	for name, req := range map[string]*Request{
		"no body":    {Method: "GET", Target: "/"},
		"small body": {Method: "POST", Target: "/", Body: strings.NewReader("x"), ContentLength: 1},
		"large body": {Method: "POST", Target: "/", Body: unsized(strings.Repeat("x", 1<<20)), ContentLength: 1 << 20},
	} {
		_, err := s.RoundTrip(testContext(t), req)
		var e *Error
		if !errors.As(err, &e) || e.Op != OpReadHead || !e.Timeout || !e.Sent {
			t.Errorf("%s: error %v, want a timeout of %q", name, err, OpReadHead)
		}
	}
}

// The limit on the head is none on the body: a silent watch stays open.
func TestHeaderTimeoutDoesNotLimitTheBody(t *testing.T) {
	more := make(chan struct{})
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		if _, err := readRequest(r); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
		<-more
		_, _ = io.WriteString(c, "k")
	})
	const timeout = 50 * time.Millisecond
	s := serverAt(t, "http://"+addr, func(c *Config) { c.HeaderTimeout = timeout })
	resp, err := s.RoundTrip(testContext(t), &Request{Method: "GET", Target: "/", Long: true})
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(3*timeout, func() { close(more) }) // the silence itself is what is tested
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != "ok" {
		t.Errorf("%q, %v", body, err)
	}
	_ = resp.Body.Close()
}

// waitClosed tells when the client's side of a connection is gone.
func waitClosed(r *bufio.Reader, gone chan<- struct{}) {
	_, _ = io.Copy(io.Discard, r)
	gone <- struct{}{}
}

func TestCancelBeforeHead(t *testing.T) {
	got, gone := make(chan struct{}, 1), make(chan struct{}, 1)
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		_, _ = readRequest(r)
		got <- struct{}{}
		waitClosed(r, gone)
	})
	ctx, cancel := context.WithCancelCause(testContext(t))
	go func() {
		<-got
		cancel(errors.New("the client left"))
	}()
	s := serverAt(t, "http://"+addr, nil)
	_, err := s.RoundTrip(ctx, &Request{Method: "GET", Target: "/"})
	wantError(t, err, OpReadHead, true, "the client left")
	within(t, gone, "the close at the server")
	if s.Inflight() != 0 {
		t.Error("the request still counts")
	}
}

func TestCancelAfterHead(t *testing.T) {
	gone := make(chan struct{}, 1)
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		_, _ = readRequest(r)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		waitClosed(r, gone)
	})
	ctx, cancel := context.WithCancelCause(testContext(t))
	s := serverAt(t, "http://"+addr, nil)
	resp, err := s.RoundTrip(ctx, &Request{Method: "GET", Target: "/", Long: true})
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(resp.Body)
		failed <- err
	}()
	cancel(errors.New("the client left"))
	wantError(t, within(t, failed, "the end of Read"), OpReadBody, true, "the client left")
	within(t, gone, "the close at the server")
	_ = resp.Body.Close()
}

func TestContextDoneAtOnce(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	s := serverAt(t, "http://"+listen(t, answerEach(okAnswer)), nil)
	_, err := s.RoundTrip(ctx, &Request{Method: "GET", Target: "/"})
	var e *Error
	if !errors.As(err, &e) || !e.Timeout || e.Sent {
		t.Errorf("error %v, want an unsent timeout", err)
	}
}

func TestCloseDuringRead(t *testing.T) {
	gone := make(chan struct{}, 1)
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		_, _ = readRequest(r)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
		waitClosed(r, gone)
	})
	s := serverAt(t, "http://"+addr, nil)
	resp, err := s.RoundTrip(testContext(t), &Request{Method: "GET", Target: "/", Long: true})
	if err != nil {
		t.Fatal(err)
	}
	reading, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		b := make([]byte, 100)
		if n, err := resp.Body.Read(b); string(b[:n]) != "one" || err != nil {
			t.Errorf("%q, %v", b[:n], err)
		}
		close(reading)
		_, err := resp.Body.Read(b)
		failed <- err
	}()
	<-reading
	_ = resp.Body.Close()
	wantError(t, within(t, failed, "the end of Read"), OpReadBody, true, "the body was closed")
	within(t, gone, "the close at the server")
	if _, err := resp.Body.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("Read after Close: %v, want an error that is not io.EOF", err)
	}
}

// Close races with the end of the body, again and again: either way the connection is
// given back once.
func TestCloseRacesWithEnd(t *testing.T) {
	s := serverAt(t, "http://"+listen(t, answerEach(okAnswer)), nil)
	for range 300 {
		resp, err := s.RoundTrip(testContext(t), &Request{Method: "GET", Target: "/"})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _ = resp.Body.Close() })
		wg.Go(func() { _, _ = io.ReadAll(resp.Body) })
		wg.Wait()
		if s.Inflight() != 0 || idleCount(s) > 1 {
			t.Fatalf("%d in flight, %d idle", s.Inflight(), idleCount(s))
		}
	}
}
