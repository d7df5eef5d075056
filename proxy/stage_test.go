package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/proxy"
	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// patience bounds every wait of a test. Nothing is asserted about time.
const patience = 20 * time.Second

// setting is what a stage can be told that a rig cannot.
type setting struct {
	ca       *authority // both sides speak TLS with its certificates; nil: plain
	upstream upstream.Config
	front    front.Config
	proxy    proxy.Config
	policies map[string]string
}

// stage is MVP between real sockets, with limits that the test chooses.
type stage struct {
	t     testing.TB
	ca    *authority
	addr  string
	pool  *upstream.Pool
	proxy *proxy.Server
	front *front.Server
}

// raise runs MVP before the upstreams and waits until it knows what they serve.
func raise(t testing.TB, set setting, upstreams ...*recorder) *stage {
	t.Helper()
	s := &stage{t: t, ca: set.ca}
	s.makePool(set, upstreams)
	s.makeProxy(set)
	s.makeFront(set)
	listener := listen(t)
	s.addr = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.pool.Run(ctx) })
	running.Go(func() { _ = s.proxy.Run(ctx) })
	running.Go(func() { _ = s.front.Serve(listener) })
	t.Cleanup(func() {
		s.proxy.EndStreams()
		stop, done := context.WithTimeout(context.Background(), 5*time.Second)
		defer done()
		_ = s.front.Shutdown(stop) // what a test left open is its own affair
		cancel()
		running.Wait()
	})
	await(t, "MVP knows every upstream", s.proxy.Synced)
	for _, u := range upstreams {
		u.forget()
	}
	return s
}

func (s *stage) makePool(set setting, upstreams []*recorder) {
	s.t.Helper()
	cfg, scheme := set.upstream, "http://"
	cfg.Log = slog.New(slog.DiscardHandler)
	cfg.OnChange = func(*upstream.View) { s.proxy.Changed() }
	if cfg.ProbeInterval == 0 {
		// Looked at once: what happens to a server later is for a request to find out.
		cfg.ProbeInterval, cfg.DiscoveryInterval, cfg.CRDInterval = time.Hour, time.Hour, time.Hour
	}
	if set.ca != nil {
		scheme = "https://"
		cfg.CAFile = filepath.Join(s.t.TempDir(), "ca")
		set.ca.write(cfg.CAFile, "CERTIFICATE", set.ca.cert.Raw)
	}
	for _, u := range upstreams {
		cfg.Servers = append(cfg.Servers, upstream.ServerConfig{Name: u.name, URL: scheme + u.listener.Addr().String()})
	}
	var err error
	if s.pool, err = upstream.New(cfg); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) makeProxy(set setting) {
	s.t.Helper()
	dir := s.t.TempDir()
	for name, content := range set.policies {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	loaded, err := policies.Load(policies.Options{Dirs: []string{dir}})
	if err != nil {
		s.t.Fatal(err)
	}
	cfg := set.proxy
	cfg.Policies, cfg.Upstreams = constantly(loaded), s.pool
	cfg.Log, cfg.AccessLog = slog.New(slog.DiscardHandler), slog.New(slog.NewJSONHandler(io.Discard, nil))
	if s.proxy, err = proxy.New(cfg); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) makeFront(set setting) {
	s.t.Helper()
	cfg := set.front
	cfg.Handler, cfg.Log = s.proxy.Handle, slog.New(slog.DiscardHandler)
	var err error
	if set.ca != nil {
		certFile, keyFile := set.ca.files(set.ca.server())
		cfg.Certificates, err = front.LoadCertificates(front.CertificateFiles{CertFile: certFile, KeyFile: keyFile}, cfg.Log)
		if err != nil {
			s.t.Fatal(err)
		}
	}
	if s.front, err = front.New(cfg); err != nil {
		s.t.Fatal(err)
	}
}

// in is the stage for a part of its test.
func (s *stage) in(t testing.TB) *stage {
	part := *s
	part.t = t
	return &part
}

// dial opens a client's connection that ends with the test.
func (s *stage) dial() net.Conn {
	s.t.Helper()
	conn, err := s.connect()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

// connect opens a client's connection.
func (s *stage) connect() (net.Conn, error) {
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		return nil, err
	}
	if s.ca != nil {
		conn = tls.Client(conn, &tls.Config{RootCAs: s.ca.pool(), ServerName: "127.0.0.1"})
	}
	// A test that waits for what never comes fails instead of hanging.
	return conn, conn.SetDeadline(time.Now().Add(2 * patience))
}

// send writes raw on a connection of its own.
func (s *stage) send(raw string) (net.Conn, *bufio.Reader) {
	s.t.Helper()
	conn := s.dial()
	if _, err := io.WriteString(conn, raw); err != nil {
		s.t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// ask sends raw and reads the answer. A body that was cut short is an error.
func (s *stage) ask(raw string) (answer, error) {
	s.t.Helper()
	conn, in := s.send(raw)
	defer conn.Close()
	return readAnswer(in, raw)
}

// readAnswer reads the answer to the request raw: what came of it, also when it
// broke off.
func readAnswer(in *bufio.Reader, raw string) (answer, error) {
	method, _, _ := strings.Cut(raw, " ")
	resp, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body)}, err
}

// await polls for a condition that other goroutines make true.
func await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("not within %v: %s", patience, what)
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

// tape keeps what arrived on each of an upstream's connections, whether anyone
// could make a request of it or not, and counts those that are open.
type tape struct {
	net.Listener
	open atomic.Int64
	hold atomic.Pointer[chan struct{}] // reads wait until it is closed

	mu    sync.Mutex
	conns []*tapedConn
}

type tapedConn struct {
	net.Conn
	tape *tape
	gone atomic.Bool

	mu  sync.Mutex
	got bytes.Buffer
}

func (l *tape) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &tapedConn{Conn: conn, tape: l}
	l.open.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, c)
	return c, nil
}

func (c *tapedConn) Read(p []byte) (int, error) {
	if hold := c.tape.hold.Load(); hold != nil {
		<-*hold
	}
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got.Write(p[:n])
	return n, err
}

func (c *tapedConn) Close() error {
	if !c.gone.Swap(true) {
		c.tape.open.Add(-1)
	}
	return c.Conn.Close()
}

// has reports whether text arrived on some connection.
func (l *tape) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.mu.Lock()
		found := bytes.Contains(c.got.Bytes(), []byte(text))
		c.mu.Unlock()
		if found {
			return true
		}
	}
	return false
}

// forget drops what has arrived, and the connections that are closed.
func (l *tape) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = slices.DeleteFunc(l.conns, func(c *tapedConn) bool { return c.gone.Load() })
	for _, c := range l.conns {
		c.mu.Lock()
		c.got.Reset()
		c.mu.Unlock()
	}
}

// tapeRecorder starts a recorder whose connections are taped. With ca it speaks TLS;
// the tape has what is inside.
func tapeRecorder(t testing.TB, ca *authority, name string, reply func(request) string) (*recorder, *tape) {
	t.Helper()
	u := recordOn(t, ca, listen(t), name, reply)
	return u, u.listener.(*tape)
}

// recordOn is tapeRecorder on a listener.
func recordOn(t testing.TB, ca *authority, listener net.Listener, name string, reply func(request) string) *recorder {
	t.Helper()
	if ca != nil {
		listener = tls.NewListener(listener, &tls.Config{
			Certificates: []tls.Certificate{ca.server()}, NextProtos: []string{"h2", "http/1.1"}, // as kube-apiserver
		})
	}
	if reply == nil {
		reply = func(request) string { return ok("{}") }
	}
	taped := &tape{Listener: listener}
	u := &recorder{name: name, version: "1.32.13", serves: pods, answer: reply, listener: taped, closed: make(chan struct{}, 100)}
	u.t, _ = t.(*testing.T)
	go func() {
		for {
			conn, err := taped.Accept()
			if err != nil {
				return
			}
			u.mu.Lock()
			u.conns = append(u.conns, conn)
			u.mu.Unlock()
			go u.serve(conn)
		}
	}()
	return u
}

// raws is what requests look like.
func raws(requests []request) (list []string) {
	for _, q := range requests {
		list = append(list, q.raw)
	}
	return list
}

// socket is the TCP connection below what a recorder serves.
func socket(conn net.Conn) *net.TCPConn {
	for {
		switch c := conn.(type) {
		case *tapedConn:
			conn = c.Conn
		case *tls.Conn:
			conn = c.NetConn()
		default:
			return conn.(*net.TCPConn)
		}
	}
}

// reset closes a connection with an RST.
func reset(conn net.Conn) {
	tcp := socket(conn)
	_ = tcp.SetLinger(0)
	_ = tcp.Close()
}

// wantStatus checks that an answer is a metav1.Status whose code is the HTTP status.
func wantStatus(t testing.TB, got answer) {
	t.Helper()
	var status struct {
		Kind, APIVersion, Status, Message, Reason string
		Code                                      int
	}
	if err := json.Unmarshal([]byte(got.body), &status); err != nil {
		t.Errorf("answered %d %q, want a Status: %v", got.code, got.body, err)
		return
	}
	if status.Kind != "Status" || status.APIVersion != "v1" || status.Status != "Failure" || status.Code != got.code || status.Message == "" || status.Reason == "" {
		t.Errorf("answered %d with %s, want a whole Status with that code", got.code, got.body)
	}
	if contentType := got.header.Get("Content-Type"); contentType != "application/json" {
		t.Errorf("the Status came as %q", contentType)
	}
}
