package upstream

import (
	"testing"
	"time"
)

// A server whose probe fails is of use as long as it answers something and has not been
// away: when no other is left, it gets the requests.
func TestAnswering(t *testing.T) {
	for name, tt := range map[string]struct {
		readyz string
		want   bool
	}{
		"its own credential has expired": {"401 Unauthorized", true},
		"forbidden":                      {"403 Forbidden", true},
		"overloaded":                     {"429 Too many requests", true},
		"etcd is slow":                   {"500 [-]etcd failed: reason withheld\n", true},
		"moved":                          {"302 elsewhere", true},
		"it shuts down":                  {"500 [-]etcd failed: reason withheld\n[-]shutdown failed: reason withheld\n", true},
		"broken off":                     {"hang up", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			p := runPool(t, nil, f)
			f.set("/readyz", tt.readyz)
			eventually(t, "it is unhealthy", func() bool { return !p.View().Servers[0].Healthy })
			view := p.View()
			if got := view.Servers[0].Answering; got != tt.want || len(view.Usable(nil)) > 0 != tt.want {
				t.Errorf("answering: %v, usable: %v, want %v", got, view.Usable(nil), tt.want)
			}
			f.set("/readyz", "ok")
			eventually(t, "it is healthy", func() bool { return p.View().Servers[0].Healthy })
			if p.View().Servers[0].Answering {
				t.Error("a healthy server is called one that answers all the same")
			}
		})
	}
}

// One that has been away may be starting: what it answers then is not to be relied on
// before it is healthy.
func TestAnsweringAfterItWasAway(t *testing.T) {
	f := newFake(t)
	p := runPool(t, func(c *Config) { c.ProbeInterval = 20 * time.Millisecond }, f)
	f.set("/readyz", "hang up")
	eventually(t, "it is unhealthy", func() bool { return !p.View().Servers[0].Healthy })
	f.set("/readyz", "403 Forbidden")
	eventually(t, "the probe's answer", func() bool {
		return p.View().Servers[0].Reason == "/readyz answered 403: MVP's own credential may not read it"
	})
	if p.View().Servers[0].Answering {
		t.Error("a server that may be starting counts as one that answers")
	}
}
