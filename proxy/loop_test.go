package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// raiseOn is raise on a listener that others know before, and without waiting.
func raiseOn(t *testing.T, listener net.Listener, upstreams ...*recorder) *stage {
	t.Helper()
	set := setting{upstream: upstream.Config{
		ProbeInterval: 20 * time.Millisecond, ProbeTimeout: time.Second, DiscoveryInterval: 50 * time.Millisecond, CRDInterval: time.Hour,
	}}
	s := &stage{t: t, addr: listener.Addr().String()}
	s.makePool(set, upstreams)
	s.makeProxy(set)
	s.makeFront(set)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.pool.Run(ctx) })
	running.Go(func() { _ = s.proxy.Run(ctx) })
	running.Go(func() { _ = s.front.Serve(listener) })
	t.Cleanup(func() {
		stop, done := context.WithTimeout(context.Background(), 5*time.Second)
		defer done()
		_ = s.front.Shutdown(stop)
		cancel()
		running.Wait()
	})
	return s
}

// server is a listener as one of MVP's servers.
func server(name string, listener net.Listener) *recorder {
	return &recorder{name: name, listener: listener}
}

const getPods = "GET /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: m\r\n\r\n"

// A proxy that is its own server is never healthy as one, so no request comes back.
func Test3_17_ProxyIsItsOwnServer(t *testing.T) {
	a, _ := tapeRecorder(t, nil, "a", nil)
	own := listen(t)
	s := raiseOn(t, own, server("self", own), a)
	await(t, "the proxy sees itself", func() bool {
		return s.pool.View().Servers[0].Reason == "it is this proxy itself: take it out of its servers"
	})
	await(t, "the proxy is ready", func() bool { return s.proxy.Ready() == nil })
	a.forget()
	for i := range callers {
		got, err := s.ask(strings.Replace(getPods, "\r\n\r\n", fmt.Sprintf("\r\nAuthorization: Bearer %d\r\n\r\n", i), 1))
		if err != nil || got.code != http.StatusOK {
			t.Errorf("answered %d %s, %v", got.code, got.body, err)
		}
	}
	for _, q := range a.got() {
		if !strings.Contains(q.raw, "X-Forwarded-For: 127.0.0.1\r\n") || strings.Contains(q.raw, upstream.InstanceHeader) {
			t.Errorf("the server got %q, want a request that passed one proxy and no mark of it", q.raw)
		}
	}

	alone := listen(t)
	s = raiseOn(t, alone, server("self", alone))
	await(t, "the proxy sees itself", func() bool { return strings.HasPrefix(s.pool.View().Servers[0].Reason, "it is this proxy") })
	got, err := s.ask(getPods)
	if err != nil || got.code != http.StatusServiceUnavailable {
		t.Errorf("a proxy of nothing but itself answered %d %s, %v", got.code, got.body, err)
	}
	wantStatus(t, got)
}

// Two proxies that are each other's servers refuse what would go round.
func Test3_17_RingOfTwo(t *testing.T) {
	a, _ := tapeRecorder(t, nil, "a", nil)
	first, second := listen(t), listen(t)
	one := raiseOn(t, first, server("two", second))
	two := raiseOn(t, second, server("one", first), a)
	const ring = "it is a proxy that has this one behind it"
	await(t, "both see the ring", func() bool {
		return strings.HasPrefix(one.pool.View().Servers[0].Reason, ring) && strings.HasPrefix(two.pool.View().Servers[0].Reason, ring)
	})
	await(t, "the second is ready by its other server", func() bool { return two.proxy.Ready() == nil })
	a.forget()
	if got, err := one.ask(getPods); err != nil || got.code != http.StatusServiceUnavailable || len(a.got()) > 0 {
		t.Errorf("the first answered %d %s, %v, and %d requests went on", got.code, got.body, err, len(a.got()))
	}
	if got, err := two.ask(getPods); err != nil || got.code != http.StatusOK || len(a.got()) != 1 {
		t.Errorf("the second answered %d %s, %v, and %d requests went on", got.code, got.body, err, len(a.got()))
	}
}

// Two proxies in a row are no ring, and the second is healthy for the first as soon
// as it is ready.
func Test3_17_ProxiesInARow(t *testing.T) {
	a, _ := tapeRecorder(t, nil, "a", nil)
	first, second := listen(t), listen(t)
	one := raiseOn(t, first, server("two", second))
	raiseOn(t, second, a)
	await(t, "the first is ready", func() bool { return one.proxy.Ready() == nil })
	a.forget()
	got, err := one.ask(getPods)
	if err != nil || got.code != http.StatusOK {
		t.Errorf("answered %d %s, %v", got.code, got.body, err)
	}
	if sent := a.only().raw; !strings.Contains(sent, "X-Forwarded-For: 127.0.0.1, 127.0.0.1\r\n") {
		t.Errorf("the server got %q", sent)
	}
}

// A server that sends requests back, as one might whose own peer proxy or aggregation
// leads to MVP, is refused after some rounds, and no more are sent.
func Test3_17_ServerSendsRequestsBack(t *testing.T) {
	var addr atomic.Pointer[string]
	a, _ := tapeRecorder(t, nil, "a", func(q request) string {
		conn, err := net.Dial("tcp", *addr.Load())
		if err != nil {
			return ""
		}
		defer conn.Close()
		again := strings.Replace(q.raw, "\r\n\r\n", "\r\nX-Kubernetes-Peer-Proxied: true\r\n\r\n", 1)
		if _, err := io.WriteString(conn, again); err != nil {
			return ""
		}
		answer := make([]byte, 4096)
		n, _ := conn.Read(answer)
		return string(answer[:n])
	})
	s := raise(t, setting{}, a)
	addr.Store(&s.addr)
	got, err := s.ask("POST /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: m\r\nContent-Length: 0\r\n\r\n")
	if err != nil || got.code != http.StatusLoopDetected || !strings.Contains(got.body, "passed too many proxies") {
		t.Errorf("answered %d %s, %v", got.code, got.body, err)
	}
	wantStatus(t, got)
	if n := len(a.got()); n != 17 {
		t.Errorf("it went round %d times, want 17: as often as X-Forwarded-For allows", n)
	}

	f := func(lines string, code int) {
		t.Helper()
		a.forget()
		const host = "GET /loop HTTP/1.1\r\nHost: m\r\n"
		if got, err := s.ask(host + lines + "\r\n"); err != nil || got.code != code {
			t.Errorf("with %q it was answered %d %s, %v, want %d", lines, got.code, got.body, err, code)
		}
	}

	f("X-Forwarded-For: "+strings.Repeat("10.0.0.1, ", 16)+"10.0.0.1\r\n", http.StatusLoopDetected)
	f(strings.Repeat("X-Forwarded-For: 10.0.0.1\r\n", 17), http.StatusLoopDetected)
}

// What a client says of instances it says to this proxy, and gets no secret for it.
func TestIntroduction(t *testing.T) {
	a, _ := tapeRecorder(t, nil, "a", nil)
	s := raise(t, setting{}, a)
	got, err := s.ask("GET /readyz HTTP/1.1\r\nHost: m\r\n" + upstream.InstanceHeader + ": x\r\n\r\n")
	if err != nil || got.code != http.StatusOK || got.body != "ok" || got.header.Get(upstream.InstanceHeader) != s.pool.Instances()[0] {
		t.Errorf("answered %d %v %s, %v", got.code, got.header, got.body, err)
	}
	s.proxy.Drain()
	if got, err = s.ask("GET /readyz HTTP/1.1\r\nHost: m\r\n" + upstream.InstanceHeader + ": x\r\n\r\n"); err != nil || got.code != http.StatusServiceUnavailable {
		t.Errorf("when it leaves it answered %d %s, %v", got.code, got.body, err)
	}
	if n := len(a.got()); n > 0 {
		t.Errorf("%d requests went on", n)
	}
}
