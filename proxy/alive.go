package proxy

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// errServerDown is why a request that only reads is taken away from a server.
var errServerDown = errors.New("the server stopped answering its health checks")

// DefaultHungTime is long enough for a hiccup of etcd, which must not make every
// client watch anew, and short against what an informer may be behind.
const DefaultHungTime = 10 * time.Second

// alive follows the health of each server, so that what waits for one that hangs
// can be given to another. A server that is gone closes its connections and needs
// none of this.
type alive struct {
	mu      sync.Mutex
	servers map[string]*life
	removed []string            // whose streams are to be ended
	hung    time.Duration       // how long until a server's streams are ended
	ended   func(server string) // ends them
}

// life is one server's.
type life struct {
	server *upstream.Server
	lifetimes
	cancelHealthy, cancelAnswers context.CancelCauseFunc
	hung                         *time.Timer // while it is not healthy
}

// lifetimes end while a server hangs.
type lifetimes struct {
	healthy context.Context // ends when the server fails its health checks
	answers context.Context // ends when it has failed them for long
}

// update notes the health of all servers and returns the lifetimes of the healthy
// ones.
func (a *alive) update(view *upstream.View) map[string]lifetimes {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget(view)
	if a.servers == nil {
		a.servers = map[string]*life{}
	}
	healthy := map[string]lifetimes{}
	for _, server := range view.Servers {
		l := a.servers[server.Name]
		if l == nil {
			l = &life{server: server.Server}
			a.servers[server.Name] = l
		}
		if server.Healthy {
			healthy[server.Name] = l.begin()
		} else {
			l.end(a.hung, func() { a.ended(server.Name) })
		}
	}
	return healthy
}

// forget forgets the servers that are no longer in view; another one may have the name
// now. It is called with the lock held.
func (a *alive) forget(view *upstream.View) {
	for name, l := range a.servers {
		if slices.ContainsFunc(view.Servers, func(s *upstream.State) bool { return s.Server == l.server }) {
			continue
		}
		delete(a.servers, name)
		if l.hung != nil && l.hung.Stop() && l.cancelAnswers != nil {
			l.cancelAnswers(errServerDown) // it hung before, and nobody looks any more
		}
		a.removed = append(a.removed, name)
	}
}

// endRemoved ends the streams of servers that have been removed, as when they drain;
// other requests to them may finish. It is called when no new request finds them.
func (a *alive) endRemoved() {
	a.mu.Lock()
	removed := a.removed
	a.removed = nil
	a.mu.Unlock()
	for _, name := range removed {
		a.ended(name)
	}
}

func (l *life) begin() lifetimes {
	if l.hung != nil {
		l.hung.Stop()
		l.hung = nil
	}
	if l.healthy == nil || l.healthy.Err() != nil {
		l.healthy, l.cancelHealthy = context.WithCancelCause(context.Background())
	}
	if l.answers == nil || l.answers.Err() != nil {
		l.answers, l.cancelAnswers = context.WithCancelCause(context.Background())
	}
	return l.lifetimes
}

func (l *life) end(after time.Duration, ended func()) {
	if l.hung != nil {
		return
	}
	cancelAnswers := func(error) {} // of a server that has never been healthy
	if l.cancelHealthy != nil {
		l.cancelHealthy(errServerDown)
		cancelAnswers = l.cancelAnswers
	}
	l.hung = time.AfterFunc(after, func() {
		ended()
		cancelAnswers(errServerDown)
	})
}

// close forgets all servers.
func (a *alive) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.servers {
		if l.hung != nil {
			l.hung.Stop()
		}
		if l.cancelHealthy != nil {
			l.cancelHealthy(context.Canceled)
			l.cancelAnswers(context.Canceled)
		}
	}
}
