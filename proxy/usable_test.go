package proxy_test

import (
	"sync/atomic"
	"testing"
)

// While a server is healthy, one that only answers gets nothing; when none is, because
// MVP's own credential has expired or their etcd is slow, clients are served all the same.
func TestNoneHealthyButAnswering(t *testing.T) {
	var a, b atomic.Pointer[string]
	ready := func(p *atomic.Pointer[string]) func() string {
		return func() string {
			if answer := p.Load(); answer != nil {
				return *answer
			}
			return respond(200, "text/plain", "ok")
		}
	}
	refused := respond(401, "application/json", `{"kind":"Status"}`)
	recA, recB := record(t, "a", "1.32.13", pods, nil), record(t, "b", "1.32.13", pods, nil)
	recA.ready, recB.ready = ready(&a), ready(&b)
	r := start(t, nil, nil, recA, recB)

	a.Store(&refused)
	r.eventually("a is unhealthy", func() bool { return !r.pool.View().Servers[0].Healthy && len(r.proxy.Upstreams().Servers) == 2 })
	r.eventually("a gets nothing", func() bool {
		before := len(recA.got())
		for range 8 {
			if got := r.do("POST", "/api/v1/namespaces/d/pods", "application/json", "{}"); got.code != 200 {
				t.Fatalf("with one healthy server: %d %s", got.code, got.body)
			}
		}
		return len(recA.got()) == before
	})

	b.Store(&refused)
	r.eventually("b is unhealthy", func() bool { return !r.pool.View().Servers[1].Healthy })
	for range 8 {
		if got := r.do("POST", "/api/v1/namespaces/d/pods", "application/json", "{}"); got.code != 200 {
			t.Fatalf("with none: %d %s", got.code, got.body)
		}
	}
	if err := r.proxy.Ready(); err != nil {
		t.Errorf("not ready: %v", err)
	}
}

// The last server is lost at the moment in which another comes back: what nobody can
// have executed waits for that.
func TestOneLostAsAnotherComes(t *testing.T) {
	a, b := record(t, "a", "1.32.13", pods, nil), record(t, "b", "1.32.13", pods, nil)
	var away atomic.Bool
	a.ready = func() string {
		if away.Load() {
			return "HTTP/1.1 nothing\r\n\r\n"
		}
		return respond(200, "text/plain", "ok")
	}
	r := start(t, nil, nil, a, b)
	away.Store(true)
	r.eventually("a is down", func() bool { return !r.pool.View().Servers[0].Healthy })
	r.eventually("b has the requests", func() bool {
		before := len(a.got())
		r.do("GET", "/api/v1/namespaces/d/pods", "", "")
		return len(a.got()) == before
	})
	a.forget()
	b.listener.Close()
	b.hangUp()
	answers := make(chan answer, 2)
	go func() { answers <- r.do("POST", "/api/v1/namespaces/d/pods", "application/json", "{}") }()
	go func() { answers <- r.do("GET", "/api/v1/namespaces/d/pods", "", "") }()
	r.eventually("b is down", func() bool { return !r.pool.View().Servers[1].Healthy })
	away.Store(false)
	for range 2 {
		if got := <-answers; got.code != 200 {
			t.Errorf("answered %d %s", got.code, got.body)
		}
	}
	if n := len(a.got()); n != 2 {
		t.Errorf("a got %d requests, want 2", n)
	}
}
