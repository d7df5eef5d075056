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
