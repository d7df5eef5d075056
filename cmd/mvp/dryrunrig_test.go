package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/proxy"
	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// recordedServer is a kube-apiserver that records what it is asked, and answers each
// request with the same body.
type recordedServer struct {
	name, version string
	serves        map[string][]string // resources by group version

	mu       sync.Mutex
	response string
	requests []recordedRequest
}

type recordedRequest struct{ server, method, target, body string }

// ServeHTTP answers what a proxy itself asks, and records the rest.
func (s *recordedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case path == "/readyz":
		_, _ = io.WriteString(w, "ok")
	case path == "/version":
		_, _ = io.WriteString(w, `{"major":"1","minor":"`+strings.Split(s.version, ".")[1]+`","gitVersion":"v`+s.version+`"}`)
	case path == "/api" || path == "/apis":
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		_, _ = w.Write(s.discovery(path == "/api"))
	case strings.HasPrefix(path, "/openapi/"), strings.HasPrefix(path, "/apis/apiextensions.k8s.io/"):
		http.NotFound(w, r)
	default:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the proxy went away
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests = append(s.requests, recordedRequest{s.name, r.Method, r.URL.RequestURI(), string(body)})
		_, _ = io.WriteString(w, s.response)
	}
}

// discovery is what s serves, in the form of aggregated discovery.
func (s *recordedServer) discovery(core bool) []byte {
	type m = map[string]any
	items := []any{}
	for groupVersion, resources := range s.serves {
		group, version, grouped := strings.Cut(groupVersion, "/")
		if !grouped {
			group, version = "", group
		}
		if (group == "") != core {
			continue
		}
		var list []any
		for _, resource := range resources {
			kind := strings.ToUpper(resource[:1]) + strings.TrimSuffix(resource[1:], "s")
			list = append(list, m{
				"resource": resource, "scope": "Namespaced", "singularResource": strings.ToLower(kind),
				"responseKind": m{"group": group, "version": version, "kind": kind},
				"verbs":        []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
			})
		}
		items = append(items, m{"metadata": m{"name": group}, "versions": []any{m{"version": version, "freshness": "Current", "resources": list}}})
	}
	body, err := json.Marshal(m{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": m{}, "items": items})
	if err != nil {
		return nil // cannot be: of maps and texts
	}
	return body
}

// answers has s answer with the body, and forget what it was asked.
func (s *recordedServer) answers(body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.response, s.requests = body, nil
}

func (s *recordedServer) got() []recordedRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// recordingProxy is a proxy with policies before recorded servers.
type recordingProxy struct {
	addr    string
	log     accessLog
	servers []*recordedServer
}

// startProxy starts a proxy, and waits until it knows what the servers serve.
func startProxy(t *testing.T, set *engine.Set, servers ...*recordedServer) *recordingProxy {
	t.Helper()
	p := &recordingProxy{servers: servers}
	var running *proxy.Server
	config := upstream.Config{
		ProbeInterval: 50 * time.Millisecond, DiscoveryInterval: 50 * time.Millisecond,
		Log: slog.New(slog.DiscardHandler), OnChange: func(*upstream.View) { running.Changed() },
	}
	for _, s := range servers {
		server := httptest.NewServer(s)
		t.Cleanup(server.Close)
		config.Servers = append(config.Servers, upstream.ServerConfig{Name: s.name, URL: server.URL})
	}
	pool, err := upstream.New(config)
	if err != nil {
		t.Fatal(err)
	}
	running, err = proxy.New(proxy.Config{
		Policies: func() *engine.Set { return set }, Upstreams: pool,
		Log: slog.New(slog.DiscardHandler), AccessLog: slog.New(slog.NewJSONHandler(&p.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	clients, err := front.New(front.Config{Handler: running.Handle, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.addr = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { _ = pool.Run(ctx) })    // until ctx is done
	group.Go(func() { _ = running.Run(ctx) }) // likewise
	group.Go(func() { _ = clients.Serve(listener) })
	t.Cleanup(func() {
		running.EndStreams()
		if err := clients.Shutdown(ctx); err != nil {
			t.Errorf("the front did not shut down: %v", err)
		}
		cancel()
		group.Wait()
	})
	eventually(t, "the proxy knows its servers", running.Synced)
	return p
}

// eventually waits for what other goroutines make true.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if !polled(condition) {
		t.Fatalf("not within a minute: %s", what)
	}
}

// accessLog keeps the lines of the access log.
type accessLog struct{ logBuffer }

// audited is what the one line of the log says of policies in audit mode; ok is false
// as long as there is none.
func (l *accessLog) audited() (effects []string, ok bool) {
	var line struct {
		Audited []string `json:"audited"`
	}
	text := l.String()
	if !strings.HasSuffix(text, "\n") || json.Unmarshal([]byte(text), &line) != nil {
		return nil, false
	}
	return line.Audited, true
}
