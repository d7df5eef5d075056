package endpoints

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// patience is how long a test waits for something that must happen before it fails.
const patience = 20 * time.Second

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// logged is what a source has logged.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

// followed is a pool whose servers come from a cluster's EndpointSlices.
type followed struct {
	t    *testing.T
	pool *upstream.Pool
	log  *logged
}

// run follows a cluster through service until the test ends.
func run(t *testing.T, c *cluster, service *apiserver, linger time.Duration) *followed {
	t.Helper()
	access := upstream.Access{CAFile: c.ca, ServerName: ServerName, Token: "secret"}
	pool, err := upstream.New(upstream.Config{
		Dynamic: true, CAFile: c.ca, ServerName: ServerName, Token: "secret",
		ProbeInterval: 5 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &followed{t: t, pool: pool, log: &logged{}}
	source, err := New(Config{URL: service.URL, Access: access, Linger: linger, Log: slog.New(slog.NewTextHandler(f.log, nil))}, pool)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = pool.Run(ctx) })
	running.Go(func() { _ = source.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return f
}

// waitFor waits until the pool has exactly these servers, and all of them are healthy.
func (f *followed) waitFor(servers ...*apiserver) {
	f.t.Helper()
	want := []string{}
	for _, s := range servers {
		want = append(want, s.addr())
	}
	slices.Sort(want)
	got := []string{}
	deadline := time.Now().Add(patience)
	for ; time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		got = got[:0]
		for _, s := range f.pool.View().Healthy(nil) {
			got = append(got, s.Name)
		}
		if slices.Equal(got, want) && len(f.pool.View().Servers) == len(want) {
			return
		}
	}
	f.t.Fatalf("healthy servers are %q of %d, want %q", got, len(f.pool.View().Servers), want)
}

const now = -1 // of a linger

func TestFollowsEndpointSlices(t *testing.T) {
	c := newCluster(t)
	a, b, d := c.apiserver(), c.apiserver(), c.apiserver()
	c.put("kubernetes", a.port(), "127.0.0.1")
	f := run(t, c, a, now)
	f.waitFor(a)
	if s := f.pool.View().Servers[0]; s.URL != "https://"+a.addr() {
		t.Errorf("URL is %q", s.URL)
	}
	first := f.pool.View().Servers[0].Server

	c.put("other", b.port(), "127.0.0.1") // a second slice is united with the first
	f.waitFor(a, b)
	c.put("again", b.port(), "127.0.0.1,ready") // what is in two slices is one server
	c.remove("other")
	f.waitFor(a, b)
	c.put("again", d.port(), "127.0.0.1") // another port
	f.waitFor(a, d)
	c.put("again", d.port(), "127.0.0.1,serving") // terminating, and still serves
	c.put("more", b.port(), "127.0.0.1,not ready")
	c.put("last", b.port(), "127.0.0.1")
	f.waitFor(a, b, d)
	c.remove("last")
	f.waitFor(a, d)
	c.remove("again")
	f.waitFor(a)
	if f.pool.View().Servers[0].Server != first {
		t.Error("the server that was there all the time was forgotten in between")
	}
}

// A watch that breaks off is begun again where it was; one that is too old by a list.
func TestWatchBreaks(t *testing.T) {
	c := newCluster(t)
	a, b, d := c.apiserver(), c.apiserver(), c.apiserver()
	c.put("a", a.port(), "127.0.0.1")
	f := run(t, c, a, now)
	f.waitFor(a)
	breakOff := func() {
		before := c.watched()
		a.CloseClientConnections()
		eventually(t, "another watch", func() bool { return c.watched() > before })
	}
	eventually(t, "a watch", func() bool { return c.watched() > 0 })
	breakOff()
	c.put("b", b.port(), "127.0.0.1")
	f.waitFor(a, b)

	c.remove("b")
	c.put("d", d.port(), "127.0.0.1")
	c.compact()
	breakOff()
	f.waitFor(a, d)
}

// An apiserver outage must not look like a scale-down.
func TestNothingEmptiesThePool(t *testing.T) {
	c := newCluster(t)
	a, b := c.apiserver(), c.apiserver()
	c.put("kubernetes", a.port(), "127.0.0.1")
	f := run(t, c, a, now)
	f.waitFor(a)

	c.remove("kubernetes")
	eventually(t, "the log tells", func() bool { return f.log.count("name no kube-apiserver, those that are known stay") == 1 })
	f.waitFor(a)
	c.put("kubernetes", a.port()) // no endpoints
	c.put("kubernetes", a.port(), "127.0.0.1", "127.0.0.2,not ready")
	f.waitFor(a)

	c.refuseAll(403)
	a.CloseClientConnections()
	eventually(t, "the log tells", func() bool { return f.log.count("cannot read the EndpointSlices") > 0 })
	c.put("b", b.port(), "127.0.0.1")
	f.waitFor(a)
	if n := f.log.count("no slices today"); n > 2 { // of the list and of the watch
		t.Errorf("the same problem is logged %d times", n)
	}
	c.refuseAll(0)
	f.waitFor(a, b)
	eventually(t, "the log tells", func() bool { return f.log.count("can be read again") > 0 })
}

// When the service's address leads nowhere, or to a server that does not answer, the
// others that are known tell what has become of it.
func TestServiceIsLost(t *testing.T) {
	for _, how := range []string{"closed", "failing"} {
		t.Run(how, func(t *testing.T) {
			c := newCluster(t)
			service, a, b := c.apiserver(), c.apiserver(), c.apiserver()
			c.put("kubernetes", a.port(), "127.0.0.1")
			f := run(t, c, service, now)
			f.waitFor(a)
			if how == "closed" {
				service.CloseClientConnections()
				_ = service.Listener.Close()
			} else {
				service.answerSlices(500)
				service.CloseClientConnections()
			}
			c.put("b", b.port(), "127.0.0.1")
			f.waitFor(a, b)
		})
	}
}

// A server that leaves the EndpointSlices, as it does when it restarts, is kept for a
// while with all that is known of it, and then forgotten.
func TestLinger(t *testing.T) {
	c := newCluster(t)
	a, b := c.apiserver(), c.apiserver()
	c.put("a", a.port(), "127.0.0.1")
	c.put("b", b.port(), "127.0.0.1")
	f := run(t, c, a, time.Hour)
	f.waitFor(a, b)
	before := f.pool.View()

	c.remove("b")
	eventually(t, "the log tells", func() bool { return f.log.count("left the EndpointSlices") == 1 })
	b.CloseClientConnections()
	b.Close()
	eventually(t, "b is down", func() bool { return len(f.pool.View().Healthy(nil)) == 1 })
	for i, s := range f.pool.View().Servers {
		if s.Server != before.Servers[i].Server || !s.Synced {
			t.Errorf("what was known of %s is lost", s.Name)
		}
	}

	c = newCluster(t)
	a, b = c.apiserver(), c.apiserver()
	c.put("a", a.port(), "127.0.0.1")
	c.put("b", b.port(), "127.0.0.1")
	f = run(t, c, a, 50*time.Millisecond)
	f.waitFor(a, b)
	c.remove("b")
	f.waitFor(a)
}

func TestRead(t *testing.T) {
	f := func(want string, change func(s *sliceBuilder)) {
		t.Helper()
		s := &sliceBuilder{}
		change(s)
		if got := strings.Join(read(s.slice()), " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}

	f("10.0.0.1:6443 10.0.0.2:6443", func(s *sliceBuilder) { s.port("https", 6443, ""); s.endpoints("10.0.0.1", "10.0.0.2,ready") })
	f("10.0.0.2:6443", func(s *sliceBuilder) {
		s.port("https", 6443, "")
		s.endpoints("10.0.0.1,not ready", "10.0.0.2,serving")
	})
	f("[fd00::1]:6443", func(s *sliceBuilder) { s.port("https", 6443, "TCP"); s.endpoints("fd00::1") })
	f("10.0.0.1:6443 10.0.0.1:8443", func(s *sliceBuilder) {
		s.port("https", 6443, "")
		s.port("https", 8443, "")
		s.endpoints("10.0.0.1")
	})
	f("10.0.0.1:6443", func(s *sliceBuilder) { s.port("", 6443, ""); s.endpoints("10.0.0.1") }) // the only port needs no name
	f("10.0.0.1:6443", func(s *sliceBuilder) {
		s.port("metrics", 9090, "")
		s.port("https", 6443, "")
		s.endpoints("10.0.0.1")
	})
	f("", func(s *sliceBuilder) { s.port("https", 6443, "UDP"); s.endpoints("10.0.0.1") })
	f("", func(s *sliceBuilder) { s.port("https", 0, ""); s.port("https", 70000, ""); s.endpoints("10.0.0.1") })
	f("", func(s *sliceBuilder) { s.port("https", 6443, ""); s.endpoints("host.example", "") })
	f("", func(s *sliceBuilder) { s.endpoints("10.0.0.1") })
}

func TestPodConfig(t *testing.T) {
	dir := t.TempDir()
	token, ca := filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")
	env := map[string]string{}
	p := pod{func(name string) string { return env[name] }, dir}
	f := func(access upstream.Access, want string) {
		t.Helper()
		cfg, err := p.config(access)
		got := fmt.Sprint(cfg.URL, " ", cfg.Access.CAFile, " ", cfg.Access.TokenFile, " ", cfg.Access.ClientCertFile, " ", cfg.Access.ServerName)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}

	f(upstream.Access{}, "MVP does not run in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
	env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"] = "fd00::1", "443"
	f(upstream.Access{}, "MVP's pod has no service account: stat "+ca+": no such file or directory")
	write(t, ca)
	f(upstream.Access{}, "MVP's pod has no service account: stat "+token+": no such file or directory")
	f(upstream.Access{ClientCertFile: "c", ClientKeyFile: "k"}, "https://[fd00::1]:443 "+ca+"  c kubernetes.default.svc")
	write(t, token)
	f(upstream.Access{}, "https://[fd00::1]:443 "+ca+" "+token+"  kubernetes.default.svc")
	f(upstream.Access{CAFile: "mine", TokenFile: "t", ServerName: "n"}, "https://[fd00::1]:443 mine t  n")
}

func write(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestConfigMistakes(t *testing.T) {
	f := func(cfg Config, want string) {
		t.Helper()
		if _, err := New(cfg, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	f(Config{URL: "https://a", Access: upstream.Access{CAFile: "/nonexistent/ca.crt"}}, "cannot make a client of https://a: open /nonexistent/ca.crt: no such file or directory")
	f(Config{URL: "https://a b"}, "cannot make a client of https://a b")
}
