package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/proxy"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// A subresource that only one server has goes to that one, whoever asks.
func TestSubresourceOfOneServer(t *testing.T) {
	a := record(t, "a", "1.31.14", pods, func(request) string { return respond(404, "text/plain", "404 page not found\n") })
	b := record(t, "b", "1.32.13", pods, nil)
	b.subresources = map[string][]string{"pods": {"resize"}}
	r := start(t, nil, nil, a, b)
	for i := range 20 {
		got := r.do("PATCH", "/api/v1/namespaces/d/pods/p/resize", "application/merge-patch+json", "{}", "Authorization", fmt.Sprintf("Bearer %d", i))
		if got.code != 200 {
			t.Fatalf("caller %d was answered %d", i, got.code)
		}
	}
}

// A small write that meets a server which is gone goes to the other one.
func TestSmallWriteGoesElsewhere(t *testing.T) {
	a := record(t, "a", "1.31.14", pods, nil)
	b := record(t, "b", "1.32.13", pods, nil)
	r := start(t, map[string]string{"a.route.cel": `upstream.name == 'a' ? 1 : 0`}, nil, a, b)
	a.listener.Close()
	a.hangUp()
	for _, body := range []string{"", `{"a":1}`, `{"a":"` + strings.Repeat("x", 20<<10) + `"}`} {
		if got := r.do("POST", "/api/v1/namespaces/d/pods", "application/json", body); got.code != 200 {
			t.Errorf("a write of %d bytes was answered %d %s", len(body), got.code, got.body)
		}
		if got := b.got(); len(got) == 0 || got[len(got)-1].body != body {
			t.Errorf("a write of %d bytes did not arrive whole", len(body))
		}
	}
}

// What acts is never sent twice, also when it is a GET: exec over a WebSocket is.
func TestExecIsNotRepeated(t *testing.T) {
	hang := func(q request) string { q.conn.Close(); return "" }
	a := record(t, "a", "1.31.14", pods, hang)
	b := record(t, "b", "1.32.13", pods, hang)
	r := start(t, nil, nil, a, b)
	_, in := r.raw("GET /api/v1/namespaces/d/pods/p/exec?command=x HTTP/1.1\r\nHost: m\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n := len(a.got()) + len(b.got()); n != 1 || resp.StatusCode != 502 {
		t.Errorf("exec was sent %d times and answered %d", n, resp.StatusCode)
	}
	a.forget()
	b.forget()
	r.do("GET", "/api/v1/namespaces/d/services/s/proxy/fire", "", "")
	if n := len(a.got()) + len(b.got()); n != 1 {
		t.Errorf("a GET of a proxied service was sent %d times", n)
	}
}

// A document that a server does not give holds up neither health nor routing.
func TestSlowDocumentHoldsUpNothing(t *testing.T) {
	a := record(t, "a", "1.31.14", things, nil)
	b := record(t, "b", "1.32.13", things, nil)
	hang := make(chan struct{})
	defer close(hang)
	b.openapi = func(target string) string {
		if target == "/openapi/v3" {
			return ok(`{"paths":{"apis/acme.io/v1":{"serverRelativeURL":"/openapi/v3/apis/acme.io/v1?hash=1"}}}`)
		}
		<-hang
		return ""
	}
	var down atomic.Bool
	a.ready = func() string {
		if down.Load() {
			return respond(500, "text/plain", "no")
		}
		return respond(200, "text/plain", "ok")
	}
	r := start(t, map[string]string{"things.yaml": rules}, nil, a, b)
	down.Store(true)
	r.eventually("requests go to b only", func() bool {
		a.forget()
		for i := range 8 {
			r.do("GET", "/apis/acme.io/v1/things", "", "", "Authorization", fmt.Sprintf("Bearer %d", i))
		}
		return len(a.got()) == 0
	})
}

// Held bodies have a limit together, and what they took is given back.
func TestHeldBodies(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(request) string { return ok(newThing) })
	r := startWith(t, proxyLimits(64<<10), map[string]string{"things.yaml": rules}, nil, u)
	body := func(size int) string {
		return `{"apiVersion":"acme.io/v1beta1","kind":"Thing","spec":{"x":"` + strings.Repeat("x", size) + `"}}`
	}
	got := r.do("POST", "/apis/acme.io/v1beta1/namespaces/d/things", "application/json", body(100<<10))
	if got.code != 429 || got.header.Get("Retry-After") != "1" || !strings.Contains(got.body, `"reason":"TooManyRequests"`) {
		t.Errorf("more than the budget was answered %d %v %s", got.code, got.header, got.body)
	}
	for range 20 {
		if got := r.do("POST", "/apis/acme.io/v1beta1/namespaces/d/things", "application/json", body(40<<10)); got.code != 200 {
			t.Fatalf("within the budget it was answered %d %s", got.code, got.body)
		}
	}
}

// A server that hangs loses the reads that wait for it, to one that answers, and
// in the end its watches.
func TestServerHangs(t *testing.T) {
	hang := make(chan struct{})
	var hanging atomic.Bool
	arrived := make(chan struct{}, 10)
	a := record(t, "a", "1.31.14", pods, func(q request) string {
		if strings.Contains(q.target, "watch") {
			return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
		}
		arrived <- struct{}{}
		<-hang
		return ""
	})
	a.ready = func() string {
		if hanging.Load() {
			<-hang
		}
		return respond(200, "text/plain", "ok")
	}
	b := record(t, "b", "1.32.13", pods, nil)
	r := start(t, map[string]string{"a.route.cel": `upstream.name == 'a' ? 1 : 0`}, nil, a, b)
	defer close(hang)
	_, in := r.raw("GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: m\r\n\r\n")
	watch, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()

	answers := make(chan answer)
	go func() { answers <- r.do("GET", "/api/v1/pods", "", "") }()
	<-arrived
	hanging.Store(true)
	if got := <-answers; got.code != 200 {
		t.Errorf("a read that waited for the hanging server was answered %d %s", got.code, got.body)
	}
	if _, err := io.ReadAll(watch.Body); err != nil {
		t.Errorf("the watch broke off: %v", err)
	}
}

// Patches of one object that come together through programs do not meet in
// conflicts, which a patch without a resourceVersion has no reason to expect.
func TestPatchesTogether(t *testing.T) {
	var mu sync.Mutex
	version := 7
	u := record(t, "a", "1.32.13", things, func(q request) string {
		mu.Lock()
		defer mu.Unlock()
		if q.method == "PATCH" {
			if !strings.Contains(q.body, fmt.Sprintf(`"resourceVersion":"%d"`, version)) {
				return respond(409, "application/json", `{"kind":"Status","apiVersion":"v1","code":409}`)
			}
			version++
		}
		return ok(strings.Replace(newThing, `"7"`, fmt.Sprintf(`"%d"`, version), 1))
	})
	r := start(t, programs, nil, u)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			got := r.do("PATCH", "/apis/acme.io/v1beta1/namespaces/d/things/t", "application/merge-patch+json", fmt.Sprintf(`{"spec":{"old":%d}}`, i))
			if got.code != 200 {
				t.Errorf("patch %d was answered %d %s", i, got.code, got.body)
			}
		})
	}
	all.Wait()
	if version != 47 {
		t.Errorf("the object is at version %d after 40 patches, want 47", version)
	}
}

// A server that drains is left alone at once, also while what its health means for
// everything else is still worked out, which takes longer than it drains where much else
// is done.
func TestDrainingServerIsLeftAtOnce(t *testing.T) {
	a := record(t, "a", "1.32.13", pods, func(request) string { return ok("{}") })
	b := record(t, "b", "1.31.14", pods, func(request) string { return ok("{}") })
	var draining atomic.Bool
	a.ready = func() string {
		if draining.Load() {
			return respond(500, "text/plain", "[-]shutdown failed: reason withheld")
		}
		return respond(200, "text/plain", "ok")
	}
	rebuilt := make(chan struct{})
	defer close(rebuilt) // before anything waits for the end of the proxy
	r := startWith(t, proxy.Config{Policies: func() *engine.Set {
		if draining.Load() {
			<-rebuilt
		}
		return nil
	}}, map[string]string{"a.route.cel": `upstream.name == 'a' ? 1 : 0`}, nil, a, b)
	r.eventually("a is asked", func() bool { r.do("GET", "/api/v1/pods", "", ""); return len(a.got()) > 0 })
	draining.Store(true)
	r.eventually("a is known to drain", func() bool {
		return slices.ContainsFunc(r.pool.View().Servers, func(s *upstream.State) bool { return s.Name == "a" && !s.Healthy })
	})
	a.forget()
	b.forget()
	for range 20 {
		r.do("GET", "/api/v1/pods", "", "")
	}
	if len(a.got()) > 0 || len(b.got()) != 20 {
		t.Errorf("a got %d requests, b %d; want none and 20", len(a.got()), len(b.got()))
	}
}
