package upstream

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"
)

// A server that does not know what it was thought to serve has become another one: its
// version and discovery are read, though no poll is due.
func TestNoticeGone(t *testing.T) {
	f := newFake(t)
	p := runPool(t, func(c *Config) { c.DiscoveryInterval = time.Hour }, f)
	f.set("/version", `{"gitVersion":"v1.33.1"}`)
	f.set("/api", groupList("", "v1", "pods"))
	f.set("/apis", groupList("apps", "v2", "deployments"))
	p.View().Servers[0].Server.NoticeGone()
	eventually(t, "the new version", func() bool { return p.View().Servers[0].Minor == 33 })
	if got, want := resources(p.View().Servers[0]), "/v1 pods, apps/v2 deployments"; got != want {
		t.Errorf("serves %q, want %q", got, want)
	}
}

// The same for one without aggregated discovery, of which a poll otherwise reads the
// documents of the group versions only now and then.
func TestNoticeGoneUnaggregated(t *testing.T) {
	f := newFake(t)
	unaggregated(f)
	p := runPool(t, func(c *Config) { c.DiscoveryInterval = time.Hour }, f)
	f.set("/apis/apps/v1", `{"kind":"APIResourceList","resources":[{"name":"daemonsets","kind":"DaemonSet","verbs":["get"]}]}`)
	p.View().Servers[0].Server.NoticeGone()
	eventually(t, "it is read again", func() bool {
		s := p.View().Servers[0]
		return s.Serves("apps", "v1", "daemonsets") && !s.Serves("apps", "v1", "deployments")
	})
}

func TestProbeNow(t *testing.T) {
	f := newFake(t)
	p := runPool(t, func(c *Config) { c.ProbeInterval = time.Hour }, f)
	f.set("/readyz", "500 [-]shutdown failed: reason withheld\n")
	p.View().Servers[0].Server.ProbeNow()
	eventually(t, "it is unhealthy", func() bool { return !p.View().Servers[0].Healthy })
}

// A server that closes a connection that waits for reuse is about to end, or has begun
// anew: it is probed, and what it serves is read.
func TestClosedIdleConnectionIsASign(t *testing.T) {
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		if _, err := readRequest(r); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	s := serverAt(t, "http://"+addr, nil)
	probed, polled := make(chan struct{}, 10), make(chan struct{}, 10)
	s.signs = signs{
		probe: &throttle{f: func() { wake(probed) }},
		poll:  &throttle{f: func() { wake(polled) }},
	}
	eventually(t, "the closed connection is found", func() bool {
		if _, body, err := get(t, s, "/"); err != nil || body != "ok" {
			t.Fatalf("%q, %v", body, err)
		}
		return len(probed) > 0
	})
	within(t, polled, "a poll")
}

// A server that breaks off a connection with a request on it may have been killed: it
// is in doubt until a probe that began afterwards has found it well, and has read what
// it is now.
func TestBrokenConnectionIsASign(t *testing.T) {
	f := newFake(t)
	f.set("/broken", "hang up")
	p := runPool(t, func(c *Config) { c.ProbeInterval, c.DiscoveryInterval = time.Hour, time.Hour }, f)
	s := p.View().Servers[0].Server
	if s.Doubtful() {
		t.Fatal("a server of which nothing has broken off is in doubt")
	}
	f.set("/version", `{"gitVersion":"v1.33.1"}`)
	if _, _, err := get(t, s, "/broken"); err == nil {
		t.Fatal("the connection did not break off")
	}
	eventually(t, "the new version", func() bool { return p.View().Servers[0].Minor == 33 })
	eventually(t, "the end of the doubt", func() bool { return !s.Doubtful() })

	f.set("/readyz", "500 [-]etcd failed\n")
	if _, _, err := get(t, s, "/broken"); err == nil {
		t.Fatal("the connection did not break off")
	}
	eventually(t, "it is unhealthy", func() bool { return !p.View().Servers[0].Healthy })
	if !s.Doubtful() {
		t.Error("a probe that failed ended the doubt")
	}
}
