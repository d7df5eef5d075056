package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fillable are answers to "hello, world".
var fillable = map[string]string{
	"length":      "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello, world",
	"chunked":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;a=b\r\n,\r\n6\r\n world\r\n0\r\nX: y\r\n\r\n",
	"until close": "HTTP/1.1 200 OK\r\n\r\nhello, world",
}

// Wherever an answer pauses, what came before is given out, nothing is lost, and the
// connection serves the next request.
func TestFillPauses(t *testing.T) {
	ca := newAuthority(t)
	for name, raw := range fillable {
		for _, secure := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " over TLS"}[secure], func(t *testing.T) {
				for cut := strings.Index(raw, "hello") + 1; cut < len(raw); cut++ {
					testFillPause(t, ca, secure, raw, cut)
				}
			})
		}
	}
}

func testFillPause(t *testing.T, ca *authority, secure bool, raw string, cut int) {
	t.Helper()
	goOn := make(chan struct{})
	s := serverOf(t, ca, secure, func(c net.Conn, r *bufio.Reader) {
		for first := true; ; first = false {
			if _, err := readRequest(r); err != nil {
				return
			}
			_, _ = io.WriteString(c, raw[:cut])
			if first {
				<-goOn
			}
			_, _ = io.WriteString(c, raw[cut:])
			if strings.HasSuffix(raw, "\r\n\r\nhello, world") && !strings.Contains(raw, "Length") {
				return
			}
		}
	})
	resp, err := s.RoundTrip(testContext(t), &Request{Method: "GET", Target: "/"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	buf := make([]byte, 100)
	n, err := resp.Fill(buf, time.Millisecond)
	if n == 0 || err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("cut at %q: Fill gave %d, %v before the pause", raw[:cut], n, err)
	}
	close(goOn)
	rest, err := io.ReadAll(resp.Body)
	if got := string(buf[:n]) + string(rest); got != "hello, world" || err != nil {
		t.Errorf("cut at %q: read %q, %v", raw[:cut], got, err)
	}
	if _, body, err := get(t, s, "/again"); body != "hello, world" || err != nil {
		t.Errorf("cut at %q: the next answer is %q, %v", raw[:cut], body, err)
	}
}

// serverOf is a server whose connections serve answers.
func serverOf(t *testing.T, ca *authority, secure bool, serve func(c net.Conn, r *bufio.Reader)) *Server {
	t.Helper()
	if !secure {
		return serverAt(t, "http://"+listen(t, func(_ int, c net.Conn, r *bufio.Reader) { serve(c, r) }), nil)
	}
	certPEM, keyPEM := ca.issue(t, "kube")
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	caFile := filepath.Join(t.TempDir(), "ca.crt")
	writeFile(t, caFile, ca.pem())
	addr := listen(t, func(_ int, c net.Conn, _ *bufio.Reader) {
		secured := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
		defer func() { _ = secured.Close() }()
		serve(secured, bufio.NewReader(secured))
	})
	return serverAt(t, "https://"+addr, func(cfg *Config) { cfg.CAFile = caFile })
}

// An answer that has come is read whole; a full buffer ends the reading; a break is
// told with what came before it.
func TestFill(t *testing.T) {
	for name, raw := range fillable {
		s := serverAt(t, "http://"+listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
			if _, err := readRequest(r); err == nil {
				_, _ = io.WriteString(c, raw)
			}
		}), nil)
		f := func(size int, want string, wantErr error) {
			t.Helper()
			resp, err := s.RoundTrip(testContext(t), &Request{Method: "GET", Target: "/"})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			buf := make([]byte, size)
			n, err := resp.Fill(buf, patience)
			if string(buf[:n]) != want || !errors.Is(err, wantErr) {
				t.Errorf("%s: Fill of %d bytes gave %q, %v, want %q, %v", name, size, buf[:n], err, want, wantErr)
			}
		}

		f(100, "hello, world", io.EOF)
		f(7, "hello, ", nil)
	}

	s := serverAt(t, "http://"+listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		if _, err := readRequest(r); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\n")
		}
	}), nil)
	resp, err := s.RoundTrip(testContext(t), &Request{Method: "GET", Target: "/"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	buf := make([]byte, 100)
	n, err := resp.Fill(buf, patience)
	wantError(t, err, OpReadBody, true, "unexpected EOF")
	if string(buf[:n]) != "hello" {
		t.Errorf("before the break Fill gave %q", buf[:n])
	}
	if _, err := resp.Body.Read(buf); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("after the break Read gives %v", err)
	}
}

// A context that ends, ends a Fill.
func TestFillIsCancelled(t *testing.T) {
	s := serverAt(t, "http://"+listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		if _, err := readRequest(r); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello")
			_, _ = r.ReadByte()
		}
	}), nil)
	ctx, cancel := context.WithCancel(testContext(t))
	resp, err := s.RoundTrip(ctx, &Request{Method: "GET", Target: "/"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	time.AfterFunc(time.Millisecond, cancel)
	buf := make([]byte, 100)
	n, err := resp.Fill(buf, patience)
	wantError(t, err, OpReadBody, true, "context canceled")
	if string(buf[:n]) != "hello" {
		t.Errorf("before that Fill gave %q", buf[:n])
	}
}
