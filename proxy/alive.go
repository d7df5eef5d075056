package proxy

import (
	"context"
	"errors"
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
	hung    time.Duration       // how long until a server's streams are ended
	ended   func(server string) // ends them
}

// life is one server's.
type life struct {
	ctx    context.Context // done when the server is not healthy
	cancel context.CancelCauseFunc
	hung   *time.Timer // while it is not
}

// update notes the health of all servers and returns for each healthy one the
// context that ends with its health.
func (a *alive) update(view *upstream.View) map[string]context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.servers == nil {
		a.servers = map[string]*life{}
	}
	healthy := map[string]context.Context{}
	for _, server := range view.Servers {
		l := a.servers[server.Name]
		if l == nil {
			l = &life{}
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

func (l *life) begin() context.Context {
	if l.hung != nil {
		l.hung.Stop()
		l.hung = nil
	}
	if l.ctx == nil || l.ctx.Err() != nil {
		l.ctx, l.cancel = context.WithCancelCause(context.Background())
	}
	return l.ctx
}

func (l *life) end(after time.Duration, ended func()) {
	if l.cancel != nil {
		l.cancel(errServerDown)
	}
	if l.hung == nil {
		l.hung = time.AfterFunc(after, ended)
	}
}

// close forgets all servers.
func (a *alive) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.servers {
		if l.hung != nil {
			l.hung.Stop()
		}
		if l.cancel != nil {
			l.cancel(context.Canceled)
		}
	}
}
