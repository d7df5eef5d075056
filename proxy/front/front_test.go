package front_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// patience bounds every wait of a test. Nothing is asserted about time.
const patience = 10 * time.Second

// server is a front on loopback for one test.
type server struct {
	t *testing.T
	*front.Server
	addr string
	log  *logBuffer
}

func start(t *testing.T, cfg front.Config) *server {
	t.Helper()
	log := &logBuffer{}
	cfg.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s, err := front.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // whatever is left open is the test's
		_ = s.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if n := s.Connections(); n != 0 {
			t.Errorf("%d connections after Shutdown", n)
		}
	})
	return &server{t: t, Server: s, addr: ln.Addr().String(), log: log}
}

// dial opens a connection that fails the test rather than hang.
func (s *server) dial() *client {
	s.t.Helper()
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	return newClient(s.t, nc)
}

func (s *server) dialTLS(cfg *tls.Config) *client {
	s.t.Helper()
	nc, err := tls.Dial("tcp", s.addr, cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return newClient(s.t, nc)
}

type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func newClient(t *testing.T, nc net.Conn) *client {
	t.Cleanup(func() { nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &client{t: t, Conn: nc, r: bufio.NewReader(nc)}
}

func (c *client) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Fatal(err)
	}
}

// response reads the head of the next answer; its body streams.
func (c *client) response(method string) *http.Response {
	c.t.Helper()
	resp, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		c.t.Fatal(err)
	}
	return resp
}

// get sends a request and returns its answer's status and body.
func (c *client) get(target string) string {
	c.t.Helper()
	c.send("GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n")
	resp := c.response("GET")
	return resp.Status + " " + read(c.t, resp.Body)
}

// rest reads to the end of the connection.
func (c *client) rest() string {
	c.t.Helper()
	return read(c.t, c.r)
}

func read(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// wait returns what comes from c, and fails the test if nothing does.
func wait[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("not reached")
	}
}

// until polls for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func text(s string) *front.Response {
	return &front.Response{Status: 200, Header: wire.Header{{Name: "Content-Type", Value: "text/plain"}}, Bytes: []byte(s)}
}

// outcome is what a Done was called with.
type outcome struct {
	written int64
	err     error
}

// ends makes resp report its outcome.
func ends(resp *front.Response, to chan<- outcome) *front.Response {
	resp.Done = func(written int64, err error) { to <- outcome{written, err} }
	return resp
}

type status struct {
	Kind, APIVersion, Status, Message, Reason string
	Code                                      int
}

func readStatus(t *testing.T, resp *http.Response) status {
	t.Helper()
	if ct := resp.Header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("Content-Type %q", ct)
	}
	var st status
	if err := json.NewDecoder(resp.Body).Decode(&st); err != nil {
		t.Fatal(err)
	}
	if st.Kind != "Status" || st.APIVersion != "v1" || st.Status != "Failure" || st.Code != resp.StatusCode {
		t.Errorf("not a Status of %d: %+v", resp.StatusCode, st)
	}
	return st
}

// selfSigned makes certificates in a directory of the test, and what a client
// needs to trust them.
func selfSigned(t *testing.T) (*front.Certificates, *tls.Config) {
	t.Helper()
	certFile, keyFile, err := front.SelfSigned(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := front.LoadCertificates(front.CertificateFiles{CertFile: certFile, KeyFile: keyFile}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return certs, trusting(t, certFile)
}

func trusting(t *testing.T, files ...string) *tls.Config {
	t.Helper()
	pool := x509.NewCertPool()
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !pool.AppendCertsFromPEM(b) {
			t.Fatalf("no certificate in %s", filepath.Base(f))
		}
	}
	return &tls.Config{RootCAs: pool, ServerName: "localhost"}
}

// bothWays runs a test over plain TCP and over TLS.
func bothWays(t *testing.T, cfg front.Config, f func(t *testing.T, cfg front.Config, dial func(*server) *client)) {
	t.Run("plain", func(t *testing.T) { f(t, cfg, (*server).dial) })
	t.Run("tls", func(t *testing.T) {
		certs, trust := selfSigned(t)
		cfg.Certificates = certs
		f(t, cfg, func(s *server) *client { return s.dialTLS(trust) })
	})
}
