package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/proxy"
	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// rig is MVP between real sockets: recording upstreams behind it, clients before.
type rig struct {
	t      *testing.T
	addr   string
	access *lockedBuffer
	proxy  *proxy.Server
	pool   *upstream.Pool
}

// start runs MVP before the upstreams with the policy files, given as txtar-like
// pairs of name and content, and waits until it knows what all of them serve.
func start(t *testing.T, files map[string]string, library []string, upstreams ...*recorder) *rig {
	t.Helper()
	return startWith(t, proxy.Config{}, files, library, upstreams...)
}

// startWith is start with settings of the proxy.
func startWith(t *testing.T, settings proxy.Config, files map[string]string, library []string, upstreams ...*recorder) *rig {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := policies.Load(policies.Options{Dirs: []string{dir}, Library: library})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, access: &lockedBuffer{}}
	cfg := upstream.Config{
		ProbeInterval: 50 * time.Millisecond, ProbeTimeout: 300 * time.Millisecond, DiscoveryInterval: 50 * time.Millisecond,
		Log:      slog.New(slog.DiscardHandler),
		OnChange: func(*upstream.View) { r.proxy.Changed() },
	}
	for _, u := range upstreams {
		cfg.Servers = append(cfg.Servers, upstream.ServerConfig{Name: u.name, URL: "http://" + u.listener.Addr().String()})
	}
	pool, err := upstream.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.pool = pool
	settings.Upstreams = pool
	hold := settings.Policies
	settings.Policies = func() *engine.Set {
		if hold != nil {
			hold() // as long as a test wants a rebuild of the state to take
		}
		return set
	}
	settings.HungTime = 200 * time.Millisecond
	settings.Log = slog.New(slog.NewTextHandler(testWriter{t}, nil))
	settings.AccessLog = slog.New(slog.NewJSONHandler(r.access, nil))
	r.proxy, err = proxy.New(settings)
	if err != nil {
		t.Fatal(err)
	}
	server, err := front.New(front.Config{Handler: r.proxy.Handle, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = pool.Run(ctx) })
	running.Go(func() { _ = r.proxy.Run(ctx) })
	running.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		r.proxy.EndStreams()
		stop, done := context.WithTimeout(context.Background(), 5*time.Second)
		defer done()
		if err := server.Shutdown(stop); err != nil {
			t.Errorf("the front did not shut down: %v", err)
		}
		cancel()
		running.Wait()
	})
	r.eventually("MVP knows every upstream", r.proxy.Synced)
	for _, u := range upstreams {
		u.forget()
	}
	return r
}

// proxyLimits are settings with a budget for held bodies, in bytes.
func proxyLimits(held int64) proxy.Config { return proxy.Config{MaxHeldBodies: held} }

func constantly[T any](v T) func() T { return func() T { return v } }

// eventually polls for a condition that other goroutines make true.
func (r *rig) eventually(what string, condition func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return
		}
	}
	r.t.Fatalf("not within 10 s: %s", what)
}

// answer is what a client got.
type answer struct {
	code   int
	header http.Header
	body   string
}

// do sends one request with Go's client and reads the whole answer.
func (r *rig) do(method, target, contentType, body string, header ...string) answer {
	r.t.Helper()
	req, err := http.NewRequest(method, "http://"+r.addr+target, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if body == "" {
		req.Body = nil
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatalf("reading the answer to %s %s: %v", method, target, err)
	}
	return answer{resp.StatusCode, resp.Header, string(got)}
}

// raw writes bytes to MVP and returns the reader of what comes back.
func (r *rig) raw(text string) (net.Conn, *bufio.Reader) {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		r.t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// lastAccess is the newest access-log record that mentions path.
func (r *rig) lastAccess(path string) map[string]any {
	r.t.Helper()
	var found map[string]any
	r.eventually("the access log has "+path, func() bool {
		for line := range strings.Lines(r.access.String()) {
			var record map[string]any
			if json.Unmarshal([]byte(line), &record) == nil && record["path"] == path {
				found = record
			}
		}
		return found != nil
	})
	return found
}

// recorder is an upstream that records every byte of the clients' requests and
// answers them by a function. Discovery and health it answers itself.
type recorder struct {
	t        *testing.T
	name     string
	version  string
	serves   []served
	answer   func(request) string
	listener net.Listener

	// subresources are more of them than status, by resource; ready is what
	// /readyz answers. Both may be set before start.
	subresources map[string][]string
	ready        func() string
	openapi      func(target string) string

	// own answers, where it says so, before anything else does; it may be set before
	// start.
	own func(request) (reply string, ok bool)

	mu       sync.Mutex
	requests []request
	conns    []net.Conn
	closed   chan struct{} // one token for each connection that its client closed
}

// served is a resource in a recorder's discovery.
type served struct{ group, version, resource, kind string }

// request is one request as it arrived.
type request struct {
	raw            string // head and body
	method, target string
	body           string
	conn           net.Conn
}

// record starts a recorder. answer gives whole answers with their heads; a nil
// answer is 200 with an empty object.
func record(t *testing.T, name, version string, serves []served, answer func(request) string) *recorder {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if answer == nil {
		answer = func(request) string { return ok("{}") }
	}
	u := &recorder{t: t, name: name, version: version, serves: serves, answer: answer, listener: listener, closed: make(chan struct{}, 100)}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
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

// ok is a whole 200 answer in JSON.
func ok(body string) string { return respond(200, "application/json", body) }

func respond(code int, contentType, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		code, http.StatusText(code), contentType, len(body), body)
}

// chunked is one chunk of a chunked body.
func chunked(s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf("%x\r\n%s\r\n", len(s), s)
}

func (u *recorder) serve(conn net.Conn) {
	defer conn.Close()
	var raw bytes.Buffer
	in := bufio.NewReader(io.TeeReader(conn, &raw))
	for {
		parsed, err := http.ReadRequest(in)
		if err != nil {
			if errors.Is(err, io.EOF) || strings.Contains(err.Error(), "reset") {
				select {
				case u.closed <- struct{}{}:
				default:
				}
			}
			return
		}
		body, err := io.ReadAll(parsed.Body)
		if err != nil {
			return
		}
		req := request{raw.String(), parsed.Method, parsed.RequestURI, string(body), conn}
		raw.Reset()
		reply, own := u.control(req.target)
		if u.own != nil {
			if r, ok := u.own(req); ok {
				reply, own = r, true
			}
		}
		if !own {
			u.mu.Lock()
			u.requests = append(u.requests, req)
			u.mu.Unlock()
			reply = u.answer(req)
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}

// control answers what MVP itself asks for.
func (u *recorder) control(target string) (string, bool) {
	switch {
	case target == "/readyz" && u.ready != nil:
		return u.ready(), true
	case target == "/readyz":
		return respond(200, "text/plain", "ok"), true
	case target == "/version":
		return ok(fmt.Sprintf(`{"major":"1","minor":"%s","gitVersion":"v%s"}`, strings.Split(u.version, ".")[1], u.version)), true
	case target == "/api":
		return u.discovery(true), true
	case target == "/apis":
		return u.discovery(false), true
	case strings.HasPrefix(target, "/openapi/") && u.openapi != nil:
		return u.openapi(target), true
	case strings.HasPrefix(target, "/openapi/"), strings.HasPrefix(target, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"):
		return respond(404, "text/plain", "404 page not found\n"), true
	}
	return "", false
}

func (u *recorder) discovery(core bool) string {
	type m = map[string]any
	groups := map[string]map[string][]any{}
	for _, s := range u.serves {
		if (s.group == "") != core {
			continue
		}
		if groups[s.group] == nil {
			groups[s.group] = map[string][]any{}
		}
		subresources := []any{m{
			"subresource": "status", "verbs": []string{"get", "patch", "update"},
			"responseKind": m{"group": s.group, "version": s.version, "kind": s.kind},
		}}
		for _, name := range u.subresources[s.resource] {
			subresources = append(subresources, m{"subresource": name, "verbs": []string{"create", "get", "patch", "update"}})
		}
		groups[s.group][s.version] = append(groups[s.group][s.version], m{
			"resource": s.resource, "scope": "Namespaced", "singularResource": strings.ToLower(s.kind),
			"responseKind": m{"group": s.group, "version": s.version, "kind": s.kind},
			"verbs":        []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
			"subresources": subresources,
		})
	}
	items := []any{}
	for group, versions := range groups {
		list := []any{}
		for version, resources := range versions {
			list = append(list, m{"version": version, "freshness": "Current", "resources": resources})
		}
		items = append(items, m{"metadata": m{"name": group}, "versions": list})
	}
	body, err := json.Marshal(m{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": m{}, "items": items})
	if err != nil {
		u.t.Error(err)
	}
	return respond(200, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", string(body))
}

// hangUp closes every connection.
func (u *recorder) hangUp() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, conn := range u.conns {
		conn.Close()
	}
}

// got returns the clients' requests so far.
func (u *recorder) got() []request {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]request(nil), u.requests...)
}

func (u *recorder) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests = nil
}

// only returns the one request that there must have been.
func (u *recorder) only() request {
	u.t.Helper()
	got := u.got()
	if len(got) != 1 {
		u.t.Fatalf("upstream %s got %d requests, want 1: %q", u.name, len(got), got)
	}
	return got[0]
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", bytes.TrimSpace(p))
	return len(p), nil
}
