package upstream

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestPoolReadsServer(t *testing.T) {
	f := newFake(t)
	f.set("/version", `{"major":"1","minor":"33+","gitVersion":"v1.33.2-eks-1a2b","emulationMajor":"1","emulationMinor":"32"}`)
	p := runPool(t, func(c *Config) { c.Token = "secret" }, f)
	s := p.View().Servers[0]
	if !s.Healthy || s.Reason != "" || !s.Synced || s.Stale || s.Name != "a" || s.URL != f.URL {
		t.Errorf("state is %+v", s)
	}
	if s.GitVersion != "v1.33.2-eks-1a2b" || s.Major != 1 || s.Minor != 33 || s.Patch != 2 || s.Emulation != (Emulation{1, 32}) {
		t.Errorf("version is %q %d.%d.%d, emulating %v", s.GitVersion, s.Major, s.Minor, s.Patch, s.Emulation)
	}
	if got, want := resources(s), "/v1 configmaps, /v1 pods, apps/v1 deployments"; got != want {
		t.Errorf("serves %q, want %q", got, want)
	}
	if s.LastProbe.IsZero() || s.Latency <= 0 {
		t.Errorf("last probe %v took %v", s.LastProbe, s.Latency)
	}
	if got := s.OpenAPIV3["apis/apps/v1"]; got != "/openapi/v3/apis/apps/v1?hash=A" {
		t.Errorf("OpenAPI URL is %q", got)
	}
	if s.CRDs == nil || s.CRDsForbidden {
		t.Errorf("CRDs %v, forbidden %v", s.CRDs, s.CRDsForbidden)
	}
	for _, path := range []string{"/readyz", "/version", "/api", "/openapi/v3", crdsTarget} {
		if _, r := f.asked(path); r.Header.Get("Authorization") != "Bearer secret" || r.UserAgent() != "mvp" {
			t.Errorf("%s was asked for with %v", path, r.Header)
		}
	}
}

func TestStateQuestions(t *testing.T) {
	f := newFake(t)
	p := runPool(t, nil, f)
	s := p.View().Servers[0]
	f1 := func(got, want any, what string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}

	f1(s.Serves("apps", "v1", "deployments"), true, "serves")
	f1(s.Serves("apps", "v1", "nothing"), false, "serves nothing")
	f1(s.Serves("", "v1", "pods"), true, "serves the core group")
	f1(s.ServesVerb("", "v1", "pods", "", "watch"), true, "verb")
	f1(s.ServesVerb("", "v1", "pods", "", "delete"), false, "no such verb")
	f1(s.ServesVerb("", "v1", "pods", "log", "get"), true, "verb of a subresource")
	f1(s.ServesVerb("", "v1", "pods", "log", "list"), false, "no such verb of a subresource")
	f1(s.ServesVerb("", "v1", "pods", "exec", "get"), false, "no such subresource")
	f1(s.ServesVerb("x", "v1", "pods", "", "get"), false, "no such group")
}

// Health follows /readyz down and up again, and says why.
func TestHealth(t *testing.T) {
	f := newFake(t)
	p := runPool(t, nil, f)
	healthy := func() bool { return p.View().Servers[0].Healthy }
	reason := func() string { return p.View().Servers[0].Reason }

	f.set("/readyz", "500 [+]ping ok\n[-]etcd failed: reason withheld\n[-]shutdown failed: reason withheld\nreadyz check failed\n")
	eventually(t, "unhealthy", func() bool { return !healthy() })
	if got, want := reason(), "/readyz answered 500: etcd failed: reason withheld, shutdown failed: reason withheld"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
	if s := p.View().Servers[0]; !s.Synced || !s.Stale || !s.Serves("apps", "v1", "deployments") {
		t.Errorf("what it served is not kept as stale: %+v", s)
	}
	f.set("/readyz", "ok")
	eventually(t, "healthy again", healthy)
	if s := p.View().Servers[0]; s.Stale || s.Reason != "" {
		t.Errorf("state is %+v", s)
	}
	f.set("/readyz", `403 {"kind":"Status"}`)
	eventually(t, "unhealthy", func() bool { return !healthy() })
	if got, want := reason(), "/readyz answered 403: MVP's own credential may not read it"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
	f.Close()
	eventually(t, "refused", func() bool { return strings.Contains(reason(), "connection refused") })
}

// One probe that times out is not enough; the second in a row is.
func TestHealthThreshold(t *testing.T) {
	f := newFake(t)
	p := runPool(t, nil, f)
	var e error = &Error{Server: "a", Op: OpReadHead, Timeout: true, Err: context.DeadlineExceeded}
	if reason, certain := unhealthyReason(nil, e); certain || reason != "cannot read the head of the answer: context deadline exceeded" {
		t.Errorf("%q, %v", reason, certain)
	}
	hung := make(chan struct{})
	defer close(hung)
	hangs := listen(t, func(int, net.Conn, *bufio.Reader) { <-hung })
	p = &Pool{cfg: p.cfg, secrets: p.secrets, changed: make(chan struct{}, 1)}
	p.cfg.ProbeTimeout = 10 * time.Millisecond
	m := newMember(p, endpoint{name: "a", addr: hangs}, p.secrets)
	p.members = []*member{m}
	p.view.Store(&View{Servers: []*State{{Server: m.server, Name: "a", Healthy: true}}})

	m.probe(testContext(t))
	if s := m.state(); !s.Healthy {
		t.Errorf("unhealthy after one timeout: %s", s.Reason)
	}
	m.probe(testContext(t))
	if s := m.state(); s.Healthy || s.Reason != "cannot read the head of the answer: context deadline exceeded" {
		t.Errorf("healthy %v after two timeouts: %q", s.Healthy, s.Reason)
	}
}

// A server that comes back as another version is not healthy before it is known what
// it now serves.
func TestUpgradedServerIsReadBeforeItIsHealthy(t *testing.T) {
	f := newFake(t)
	var p *Pool
	var wrong atomic.Int32
	ready := make(chan struct{})
	p = runPool(t, func(c *Config) {
		c.OnChange = func(v *View) {
			select {
			case <-ready:
				if s := v.Servers[0]; s.Healthy && s.Serves("apps", "v1", "deployments") {
					wrong.Add(1)
				}
			default:
			}
		}
	}, f)
	f.set("/readyz", "500 no")
	eventually(t, "unhealthy", func() bool { return !p.View().Servers[0].Healthy })
	f.set("/apis", groupList("apps", "v2", "deployments"))
	f.set("/version", `{"gitVersion":"v1.33.0"}`)
	close(ready)
	f.set("/readyz", "ok")
	eventually(t, "healthy", func() bool { return p.View().Servers[0].Healthy })
	if s := p.View().Servers[0]; s.Minor != 33 || !s.Serves("apps", "v2", "deployments") || wrong.Load() > 0 {
		t.Errorf("healthy as %s, serving %s; healthy with the old version's resources %d times", s.GitVersion, resources(s), wrong.Load())
	}
}

// A client's request that cannot connect marks the server at once.
func TestPassiveMark(t *testing.T) {
	f := newFake(t)
	p := runPool(t, nil, f)
	m := p.members[0]
	changed := p.View().Generation
	if !m.markDown("a test", m.state().LastProbe, false) || p.View().Generation == changed {
		t.Error("the mark changed nothing")
	}
	eventually(t, "the next probe tells", func() bool { return p.View().Servers[0].Healthy })
	m.dialFailed(errors.New("no route to host"))
	eventually(t, "the next probe tells", func() bool { return p.View().Servers[0].Healthy })
}

func TestServerDownFromTheStart(t *testing.T) {
	up, down := newFake(t), newFake(t)
	down.Close()
	p := runPool(t, nil, up, down)
	v := p.View()
	if !v.Servers[0].Healthy || v.Servers[1].Healthy || v.Servers[1].Synced {
		t.Errorf("states %+v and %+v", v.Servers[0], v.Servers[1])
	}
	if got := v.Servers[1].Reason; !strings.Contains(got, "cannot dial: ") || !strings.Contains(got, "connection refused") {
		t.Errorf("reason %q", got)
	}
}

// OnChange runs for changes, not for each probe, and sees the view it is called for.
func TestOnChange(t *testing.T) {
	f := newFake(t)
	views := make(chan *View, 1000)
	p := runPool(t, func(c *Config) { c.OnChange = func(v *View) { views <- v } }, f)
	before, _ := f.asked("/readyz")
	settled := p.View().Generation
	eventually(t, "20 more probes", func() bool { n, _ := f.asked("/readyz"); return n > before+20 })
	if got := p.View().Generation; got != settled {
		t.Errorf("generation %d after probes that changed nothing, want %d", got, settled)
	}
	f.set("/apis", groupList("apps", "v1", "deployments", "statefulsets"))
	eventually(t, "the change is reported", func() bool {
		select {
		case v := <-views:
			return v.Servers[0].Healthy && v.Servers[0].Serves("apps", "v1", "statefulsets")
		default:
			return false
		}
	})
}

func TestRunOnce(t *testing.T) {
	p := runPool(t, nil, newFake(t))
	eventually(t, "running", p.running.Load)
	if err := p.Run(testContext(t)); err == nil || !strings.Contains(err.Error(), "it runs already") {
		t.Errorf("a second Run: %v", err)
	}
}

func TestWaitSyncedGivesUp(t *testing.T) {
	p, err := New(Config{Servers: []ServerConfig{{URL: "https://127.0.0.1:1"}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("no more waiting")
	cancel(cause)
	if err := p.WaitSynced(ctx); !errors.Is(err, cause) {
		t.Errorf("error %v, want %v", err, cause)
	}
	if v := p.View(); v == nil || len(v.Servers) != 1 || v.Servers[0].Reason != "not probed yet" || v.Servers[0].Synced {
		t.Errorf("view before Run: %+v", v)
	}
}

func TestConfigMistakes(t *testing.T) {
	f := func(cfg Config, want string) {
		t.Helper()
		_, err := New(cfg)
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	one := func(url string) Config { return Config{Servers: []ServerConfig{{URL: url}}} }

	f(Config{}, "no upstream servers: give at least one URL")
	f(one("10.0.0.1:6443"), `cannot use upstream URL "10.0.0.1:6443": first path segment in URL cannot contain colon`)
	f(one("ftp://a"), `cannot use upstream URL "ftp://a": want https://host:port or http://host:port`)
	f(one("https://"), `cannot use upstream URL "https://": want only a scheme, a host and a port`)
	f(one("https://a/k8s"), `cannot use upstream URL "https://a/k8s": want only a scheme, a host and a port`)
	f(one("https://u:p@a"), `cannot use upstream URL "https://u:xxxxx@a": it must not hold a user or a password`)
	f(Config{Servers: []ServerConfig{{URL: "https://a"}, {URL: "https://a:443"}}}, `two upstream servers are called "a:443": give them distinct names`)
	f(Config{Servers: one("https://a").Servers, ProbeInterval: -1, MaxIdlePerServer: -1, MaxHeadBytes: 4095, ClientCertFile: "x"},
		"a client certificate needs both its certificate file and its key file\n"+
			"ProbeInterval is -1ns: want a positive duration\n"+
			"MaxIdlePerServer and MaxConnsPerServer must not be negative\n"+
			"MaxHeadBytes is 4095: want at least 4096")
	f(Config{Servers: one("https://a").Servers, CAFile: "/nonexistent/ca.crt"}, "open /nonexistent/ca.crt: no such file or directory")
}

func TestEndpoint(t *testing.T) {
	f := func(url, name, normal, addr string) {
		t.Helper()
		end, err := ServerConfig{URL: url}.parse()
		if err != nil || end.name != name || end.url != normal || end.addr != addr {
			t.Errorf("%s: %+v, %v, want name %q, URL %q, address %q", url, end, err, name, normal, addr)
		}
	}

	f("https://kube:6443/", "kube:6443", "https://kube:6443", "kube:6443")
	f("https://kube", "kube:443", "https://kube:443", "kube:443")
	f("http://[::1]", "[::1]:80", "http://[::1]:80", "[::1]:80")
}
