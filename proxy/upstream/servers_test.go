package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// configOf names fakes as runPool does.
func configOf(fakes ...*fakeServer) []ServerConfig {
	var servers []ServerConfig
	for i, f := range fakes {
		servers = append(servers, ServerConfig{Name: string(rune('a' + i)), URL: f.URL})
	}
	return servers
}

func setServers(t *testing.T, p *Pool, servers ...ServerConfig) {
	t.Helper()
	if err := p.SetServers(servers); err != nil {
		t.Fatal(err)
	}
}

// names lists the servers of a view in its order.
func names(v *View) string {
	var list []string
	for _, s := range v.Servers {
		list = append(list, s.Name)
	}
	return strings.Join(list, " ")
}

func TestSetServersWhileRunning(t *testing.T) {
	f := []*fakeServer{newFake(t), newFake(t), newFake(t)}
	views := make(chan *View, 1000)
	p := runPool(t, func(c *Config) { c.OnChange = func(v *View) { views <- v } }, f[0], f[1])
	all := configOf(f...)
	before, gone := p.View(), p.members[0]

	setServers(t, p, all[2], all[1])
	now := p.View()
	if names(now) != "c b" || now.Generation == before.Generation {
		t.Errorf("servers %q in generation %d, before %d", names(now), now.Generation, before.Generation)
	}
	if s := now.Servers[0]; s.Healthy || s.Synced || s.Reason != "not probed yet" {
		t.Errorf("the new server is %+v", s)
	}
	if was, is := before.Servers[1], now.Servers[1]; is.Server != was.Server || !is.Healthy || !is.Serves("apps", "v1", "deployments") {
		t.Errorf("what was known of the server that stayed is lost: %+v", is)
	}
	if err := p.WaitSynced(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if s := p.View().Servers[0]; !s.Healthy || !s.Synced {
		t.Errorf("the new server is %+v", s)
	}
	if n := idleCount(gone.server); n != 0 {
		t.Errorf("%d connections to the removed server are kept", n)
	}
	eventually(t, "the change is reported", func() bool {
		select {
		case v := <-views:
			return names(v) == "c b" && v.Servers[0].Healthy
		default:
			return false
		}
	})
}

// The same servers again change nothing at all.
func TestSetServersUnchanged(t *testing.T) {
	f := newFake(t)
	p := runPool(t, nil, f)
	settled := p.View().Generation
	setServers(t, p, configOf(f)...)
	if got := p.View().Generation; got != settled {
		t.Errorf("generation %d, want %d", got, settled)
	}
}

func TestSetServersBeforeRun(t *testing.T) {
	f := newFake(t)
	p, err := New(Config{Dynamic: true, CAFile: f.caFile(t), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if v := p.View(); v == nil || len(v.Servers) != 0 {
		t.Fatalf("view of no servers: %+v", v)
	}
	setServers(t, p, configOf(f)...)
	goRun(t, p)
	if err := p.WaitSynced(testContext(t)); err != nil || !p.View().Servers[0].Healthy {
		t.Errorf("error %v, servers %+v", err, p.View().Servers)
	}
}

// A pool whose servers are yet to be found is not synced with none.
func TestWaitSyncedWaitsForServers(t *testing.T) {
	f := newFake(t)
	p, err := New(Config{Dynamic: true, CAFile: f.caFile(t), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	goRun(t, p)
	synced := make(chan error, 1)
	ctx := testContext(t)
	go func() { synced <- p.WaitSynced(ctx) }()
	setServers(t, p) // still none
	select {
	case err := <-synced:
		t.Fatalf("synced with no servers: %v", err)
	default:
	}
	setServers(t, p, configOf(f)...)
	if err := within(t, synced, "sync"); err != nil || !p.View().Servers[0].Healthy {
		t.Errorf("error %v, servers %+v", err, p.View().Servers)
	}
	setServers(t, p)
	if err := p.WaitSynced(ctx); err != nil || len(p.View().Servers) != 0 {
		t.Errorf("error %v, servers %+v", err, p.View().Servers)
	}
}

// Nobody waits for a server that is removed before it could be probed.
func TestWaitSyncedForgetsRemovedServers(t *testing.T) {
	f, hung := newFake(t), make(chan struct{})
	defer close(hung)
	hangs := listen(t, func(int, net.Conn, *bufio.Reader) { <-hung })
	p := runPool(t, func(c *Config) { c.ProbeTimeout = time.Hour }, f)
	all := append(configOf(f), ServerConfig{Name: "hangs", URL: "http://" + hangs})
	setServers(t, p, all...)
	synced := make(chan error, 1)
	ctx := testContext(t)
	go func() { synced <- p.WaitSynced(ctx) }()
	setServers(t, p, all[0])
	if err := within(t, synced, "sync"); err != nil {
		t.Error(err)
	}
}

// Another URL is another server, of which nothing is known.
func TestSetServersOtherURL(t *testing.T) {
	old, next := newFake(t), newFake(t)
	next.set("/apis", groupList("apps", "v2", "deployments"))
	p := runPool(t, nil, old)
	was := p.View().Servers[0].Server
	setServers(t, p, configOf(next)...)
	if s := p.View().Servers[0]; s.Server == was || s.Synced || s.Healthy || s.URL != next.URL || s.Serves("apps", "v1", "deployments") {
		t.Errorf("state is %+v", s)
	}
	eventually(t, "the new server is read", func() bool { return p.View().Servers[0].Serves("apps", "v2", "deployments") })
	asked, _ := old.asked("/readyz")
	eventually(t, "more probes", func() bool { n, _ := next.asked("/readyz"); return n > 10 })
	if n, _ := old.asked("/readyz"); n > asked+1 { // one may have been under way
		t.Errorf("the removed server is still probed: %d times", n-asked)
	}
}

func TestSetServersMistakes(t *testing.T) {
	f := newFake(t)
	p := runPool(t, nil, f)
	settled := p.View()
	try := func(want string, servers ...ServerConfig) {
		t.Helper()
		err := p.SetServers(servers)
		if err == nil || err.Error() != want {
			t.Errorf("error %v\nwant  %s", err, want)
		}
		if v := p.View(); names(v) != names(settled) || v.Generation != settled.Generation || v.Servers[0].Server != settled.Servers[0].Server {
			t.Errorf("refused servers changed the view to %q", names(v))
		}
	}
	good := ServerConfig{Name: "good", URL: "https://127.0.0.1:1"}

	try("no upstream servers: give at least one URL")
	try(`two upstream servers are called "good": give them distinct names`, good, good)
	try(`cannot use upstream URL "ftp://a": want https://host:port or http://host:port`+"\n"+
		`two upstream servers are called "good": give them distinct names`+"\n"+
		`upstream server "good": a client certificate needs both its certificate file and its key file`,
		good, ServerConfig{URL: "ftp://a"}, ServerConfig{Name: "good", URL: "https://b", Access: &Access{ClientCertData: []byte("x")}})
	try(`upstream server "a": open /nonexistent/ca.crt: no such file or directory`+"\n"+
		`upstream server "b": cannot use CA file given as a value: it has no PEM certificate`,
		good, ServerConfig{Name: "a", URL: "https://a", Access: &Access{CAFile: "/nonexistent/ca.crt"}},
		ServerConfig{Name: "b", URL: "https://b", Access: &Access{CAData: []byte("no PEM")}})
}

// A request that is under way to a removed server goes on to its end. Then its
// connection is closed.
func TestRemovedServerFinishesItsRequests(t *testing.T) {
	begun, goOn, closed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		head, err := readRequest(r)
		if err != nil || !strings.HasPrefix(head, "GET /slow ") {
			return // a probe
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc")
		close(begun)
		<-goOn
		_, _ = io.WriteString(c, "def")
		_, err = r.ReadByte()
		closed <- err
	})
	f := newFake(t)
	p := runPool(t, nil, f)
	setServers(t, p, append(configOf(f), ServerConfig{Name: "slow", URL: "http://" + addr})...)
	server := p.View().Servers[1].Server
	type result struct {
		body string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		_, body, err := get(t, server, "/slow")
		done <- result{body, err}
	}()
	within(t, begun, "the answer's first half")
	setServers(t, p, configOf(f)...)
	if server.Inflight() != 1 {
		t.Errorf("%d requests in flight", server.Inflight())
	}
	close(goOn)
	if got := within(t, done, "the answer's second half"); got.err != nil || got.body != "abcdef" {
		t.Errorf("body %q, error %v", got.body, got.err)
	}
	if err := within(t, closed, "the end of the connection"); !errors.Is(err, io.EOF) {
		t.Errorf("the server read %v, want the end", err)
	}
}

// What still comes in of a removed server is dropped.
func TestRemovedServerStaysRemoved(t *testing.T) {
	f := []*fakeServer{newFake(t), newFake(t)}
	p := runPool(t, nil, f...)
	gone := p.members[0]
	setServers(t, p, configOf(f...)[1])
	settled := p.View()
	called := false
	if gone.update(func(*State) bool { called = true; return true }) || called {
		t.Error("the state of a removed server was changed")
	}
	gone.dialFailed(io.ErrUnexpectedEOF)
	gone.markUp(testContext(t), time.Now(), time.Second)
	if gone.discover(testContext(t)); names(p.View()) != "b" || p.View().Generation != settled.Generation {
		t.Errorf("servers %q in generation %d, want b in %d", names(p.View()), p.View().Generation, settled.Generation)
	}
	if s := gone.state(); s.Healthy || s.Synced || s.Name != "a" || s.Reason != "removed" {
		t.Errorf("state of the removed server is %+v", s)
	}
}

// Servers come and go 200 times under load: nothing of them is left.
func TestSetServersLeaksNothing(t *testing.T) {
	f := []*fakeServer{newFake(t), newFake(t), newFake(t)}
	p := runPool(t, nil, f[0])
	all := configOf(f...)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)

	ctx, stop := context.WithCancel(testContext(t))
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for ctx.Err() == nil {
				view := p.View()
				for _, s := range view.Servers {
					if resp, err := s.Server.RoundTrip(ctx, &Request{Method: "GET", Target: "/version", Host: "a"}); err == nil {
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
					}
				}
			}
		})
	}
	for round := range 200 {
		setServers(t, p, all[0], all[1+round%2])
		if round%10 == 0 {
			eventually(t, "the new server is probed", func() bool { return p.View().Servers[1].Healthy })
		}
	}
	setServers(t, p, all[0])
	stop()
	load.Wait()
	if s := p.View().Servers; len(s) != 1 || s[0].Name != "a" {
		t.Fatalf("servers are %+v", s)
	}
	// The servers' ends of the connections are in this process too.
	for _, f := range f {
		f.CloseClientConnections()
	}
	for _, work := range []string{"watchHealth", "watchAPIs", "watchDetails"} {
		eventually(t, "only a's goroutines are left", func() bool { return strings.Count(stacks(), "(*member)."+work+"(") == 1 })
	}
	// What a itself has varies by a few; 200 servers that left one each would show.
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() < goroutines+50 })
	eventually(t, "no file is left", func() bool { return openFiles(t) < files+50 })
}

// stacks are those of all goroutines.
func stacks() string {
	buf := make([]byte, 8<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// openFiles counts this process' open files, zero where the system does not tell.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// SetServers may be called from anywhere, also from what it calls.
func TestSetServersConcurrently(t *testing.T) {
	f := []*fakeServer{newFake(t), newFake(t)}
	all := configOf(f...)
	var p *Pool
	p = runPool(t, func(c *Config) {
		c.OnChange = func(v *View) {
			if len(v.Servers) == 1 {
				_ = p.SetServers(all)
			}
		}
	}, f[0], f[1])
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 50 {
				if err := p.SetServers(all[i%2 : i%2+1]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	eventually(t, "both are back", func() bool {
		v := p.View()
		return len(v.Servers) == 2 && !slices.ContainsFunc(v.Servers, func(s *State) bool { return !s.Healthy })
	})
}

// goRun runs the pool until the test ends.
func goRun(t *testing.T, p *Pool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := within(t, ended, "the end of Run"); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}
