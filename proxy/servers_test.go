package proxy_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/proxy"
	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// setServers makes upstreams those of a running rig.
func (r *rig) setServers(upstreams ...*recorder) {
	r.t.Helper()
	var servers []upstream.ServerConfig
	for _, u := range upstreams {
		servers = append(servers, upstream.ServerConfig{Name: u.name, URL: "http://" + u.listener.Addr().String()})
	}
	if err := r.pool.SetServers(servers); err != nil {
		r.t.Fatal(err)
	}
}

var (
	deployments = served{"apps", "v1", "deployments", "Deployment"}
	budgets     = served{"policy", "v1beta1", "poddisruptionbudgets", "PodDisruptionBudget"}
)

// What only a dead server had stays, until the server is taken out: then it goes, and
// who asks for it gets the others' own 404. Else whoever walks through everything, as
// the deletion of a namespace does, would fail for ever.
func Test3_11_DeadServerTakenOut(t *testing.T) {
	own := func(req request) string { return respond(404, "text/plain", "a's own 404") }
	a := record(t, "a", "1.32.0", []served{deployments}, own)
	b := record(t, "b", "1.31.0", []served{deployments, budgets}, nil)
	r := start(t, nil, nil, a, b)
	const collection = "/apis/policy/v1beta1/namespaces/d/poddisruptionbudgets"
	listed := func() bool { return strings.Contains(r.do("GET", "/apis", "", "").body, `"policy"`) }

	_ = b.listener.Close()
	b.hangUp()
	r.eventually("b is down", func() bool { return len(r.pool.View().Healthy(nil)) == 1 })
	r.eventually("requests know it", func() bool { return r.do("GET", collection, "", "").code == 503 })
	if !listed() {
		t.Error("what a server has that is down for a while is gone from discovery")
	}
	r.setServers(a)
	r.eventually("the group is gone", func() bool { return !listed() })
	if got := r.do("GET", collection, "", ""); got.code != 404 || got.body != "a's own 404" {
		t.Errorf("answer %d %q", got.code, got.body)
	}
	if got := r.do("GET", "/apis/policy/v1beta1", "", ""); got.code != 404 {
		t.Errorf("the group version is answered %d", got.code)
	}
}

// Servers are told apart by where they are. What they say of themselves may be the
// same, as their host name and so their lease are on two machines of one name; and a
// lease that is there says nothing of a server that refuses connections.
func Test3_18_TwoServersOfOneIdentity(t *testing.T) {
	const lease = `{"kind":"Lease","metadata":{"name":"apiserver-x"},"spec":{"holderIdentity":"one-host_1"}}`
	same := func(request) string { return ok(lease) }
	leases := []served{{"coordination.k8s.io", "v1", "leases", "Lease"}}
	a, b := record(t, "a", "1.32.0", leases, same), record(t, "b", "1.32.0", leases, same)
	r := start(t, nil, nil, a, b)
	ask := func(n int) answer {
		return r.do("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/apiserver-x", "", "", "Authorization", fmt.Sprint("Bearer ", n))
	}
	for n := range 40 {
		if got := ask(n); got.code != 200 || got.body != lease {
			t.Fatalf("answer %d %q", got.code, got.body)
		}
	}
	if len(a.got()) == 0 || len(b.got()) == 0 {
		t.Errorf("a got %d requests and b %d, want both to be used", len(a.got()), len(b.got()))
	}

	_ = b.listener.Close()
	b.hangUp()
	r.eventually("b is down", func() bool { return len(r.pool.View().Healthy(nil)) == 1 })
	for n := range 40 {
		if got := ask(n); got.code != 200 {
			t.Errorf("answer %d %q", got.code, got.body)
		}
	}
}

// A server that is added is used as soon as it is known what it serves, and one that
// is removed not any more.
func TestServersComeAndGo(t *testing.T) {
	a := record(t, "a", "1.31.0", []served{deployments, budgets}, func(request) string { return ok(`"a"`) })
	b := record(t, "b", "1.32.0", []served{deployments}, func(request) string { return ok(`"b"`) })
	r := start(t, nil, nil, a)
	get := func() answer { return r.do("GET", "/apis/apps/v1/namespaces/d/deployments", "", "") }
	if got := get(); got.body != `"a"` {
		t.Fatalf("answer %d %q", got.code, got.body)
	}
	r.setServers(a, b)
	r.eventually("b is known", r.proxy.Synced)
	r.setServers(b)
	r.eventually("a is forgotten", func() bool { return !strings.Contains(r.do("GET", "/apis", "", "").body, `"policy"`) })
	for range 10 {
		if got := get(); got.code != 200 || got.body != `"b"` {
			t.Errorf("answer %d %q", got.code, got.body)
		}
	}
}

// Under load servers come and go, one always staying, and no request fails.
func TestServersComeAndGoUnderLoad(t *testing.T) {
	a := record(t, "a", "1.32.0", []served{deployments}, nil)
	b := record(t, "b", "1.32.0", []served{deployments}, nil)
	c := record(t, "c", "1.32.0", []served{deployments}, nil)
	r := start(t, nil, nil, a)
	stop := make(chan struct{})
	var load sync.WaitGroup
	for n := range 4 {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got := r.do("GET", "/apis/apps/v1/namespaces/d/deployments", "", "", "Authorization", fmt.Sprint("Bearer ", n))
				if got.code != 200 {
					t.Errorf("answer %d %q", got.code, got.body)
					return
				}
			}
		})
	}
	for round := range 20 {
		r.setServers(a, []*recorder{b, c}[round%2])
		r.eventually("it is used", r.proxy.Synced)
		r.setServers(a)
	}
	close(stop)
	load.Wait()
}

// The watches of a server that is removed leave it at once, though it serves on. What
// else is under way to it finishes. A server of the same name in another place changes
// nothing in that.
func TestRemovedServer(t *testing.T) {
	for _, name := range []string{"a", "b"} {
		t.Run("then "+name, func(t *testing.T) { testRemovedServer(t, name) })
	}
}

func testRemovedServer(t *testing.T, next string) {
	begun, goOn, left := make(chan string, 2), make(chan struct{}), make(chan struct{})
	b := record(t, "b", "1.32.0", []served{deployments}, nil)
	b.answer = func(req request) string {
		if strings.Contains(req.target, "watch") {
			_, _ = io.WriteString(req.conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"+chunked(`{"type":"ADDED","object":{}}`+"\n"))
			begun <- "watch"
			_, _ = req.conn.Read(make([]byte, 1))
			close(left)
			return ""
		}
		begun <- "list"
		<-goOn
		return ok(`"whole"`)
	}
	a := record(t, next, "1.32.0", []served{deployments}, func(request) string { return respond(410, "application/json", "{}") })
	r := start(t, nil, nil, b)

	_, watch := r.raw("GET /apis/apps/v1/deployments?watch=1 HTTP/1.1\r\nHost: mvp\r\n\r\n")
	<-begun
	list := make(chan answer, 1)
	go func() { list <- r.do("GET", "/apis/apps/v1/deployments", "", "") }()
	<-begun
	r.setServers(a)
	<-left
	for line := ""; line != "0\r\n"; {
		var err error
		if line, err = watch.ReadString('\n'); err != nil {
			t.Fatalf("the watch's end: %v", err)
		}
	}
	close(goOn)
	if got := <-list; got.code != 200 || got.body != `"whole"` {
		t.Errorf("the list that was under way: %d %q", got.code, got.body)
	}
}

// A proxy whose servers are yet to be found is not ready, and says why.
func TestNoServersYet(t *testing.T) {
	pool, err := upstream.New(upstream.Config{Dynamic: true})
	if err != nil {
		t.Fatal(err)
	}
	set, err := policies.Load(policies.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := proxy.New(proxy.Config{Policies: constantly(set), Upstreams: pool, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(); err == nil || err.Error() != "no kube-apiserver has said yet what it serves: none has been found yet" {
		t.Errorf("ready: %v", err)
	}
	server, err := front.New(front.Config{Handler: s.Handle, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	r := &rig{t: t, addr: listener.Addr().String()}
	for _, target := range []string{"/api/v1/pods", "/apis", "/version"} {
		if got := r.do("GET", target, "", ""); got.code != 503 || got.header.Get("Retry-After") == "" {
			t.Errorf("%s: answer %d with %v", target, got.code, got.header)
		}
	}
	stop, done := context.WithTimeout(t.Context(), 5*time.Second)
	defer done()
	if err := server.Shutdown(stop); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
