package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// upkeepInterval is how often files with certificates and tokens are looked at and
// idle connections swept.
const upkeepInterval = 2 * time.Second

// Pool is the kube-apiservers of one control plane. It is safe for concurrent use.
type Pool struct {
	cfg     Config
	secrets *secrets
	members []*member

	mu      sync.Mutex // held while view changes
	view    atomic.Pointer[View]
	changed chan struct{} // holds an element if OnChange is due

	running atomic.Bool
}

// New checks cfg and makes a pool. It reads the files that cfg names, but connects to
// no server before Run.
func New(cfg Config) (*Pool, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	p := &Pool{cfg: cfg, changed: make(chan struct{}, 1)}
	if p.secrets, err = newSecrets(&p.cfg); err != nil {
		return nil, err
	}
	view, names := &View{}, map[string]bool{}
	for i, sc := range cfg.Servers {
		end, err := sc.parse()
		if err != nil {
			return nil, err
		}
		if names[end.name] {
			return nil, fmt.Errorf("two upstream servers are called %q: give them distinct names", end.name)
		}
		if cfg.FrontProxyCertFile != "" && !end.tls {
			return nil, fmt.Errorf("cannot use upstream URL %q with a front-proxy certificate: want https, where it can be presented", sc.URL)
		}
		names[end.name] = true
		m := newMember(p, i, end)
		p.members = append(p.members, m)
		view.Servers = append(view.Servers, &State{
			Server: m.server, Name: end.name, URL: end.url, Reason: "not probed yet",
		})
	}
	p.view.Store(view)
	return p, nil
}

// View is what is known now. It is never nil.
func (p *Pool) View() *View { return p.view.Load() }

// Run probes the servers until ctx is done and then closes their idle connections. It
// returns when all its goroutines have ended; an error only if it runs already.
func (p *Pool) Run(ctx context.Context) error {
	if p.running.Swap(true) {
		return errors.New("cannot run the upstream pool: it runs already")
	}
	var wg sync.WaitGroup
	wg.Go(func() { p.notify(ctx) })
	wg.Go(func() { p.upkeep(ctx) })
	for _, m := range p.members {
		wg.Go(func() { m.watchHealth(ctx) })
		wg.Go(func() { m.watchAPIs(ctx) })
		wg.Go(func() { m.watchDetails(ctx) })
		wg.Go(func() { m.server.followName(ctx) })
	}
	wg.Wait()
	for _, m := range p.members {
		m.server.idle.close()
	}
	return nil
}

// WaitSynced waits until each server was probed once: found unhealthy, or read whole.
// Its error is that of ctx. Run must be running.
func (p *Pool) WaitSynced(ctx context.Context) error {
	for _, m := range p.members {
		select {
		case <-m.probed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// update changes the state of server i. change works on a copy and reports whether it
// changed more than times and latencies.
func (p *Pool) update(i int, change func(*State) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.view.Load()
	state := *old.Servers[i]
	significant := change(&state)
	view := &View{Servers: append([]*State(nil), old.Servers...), Generation: old.Generation}
	view.Servers[i] = &state
	if significant {
		view.Generation++
	}
	p.view.Store(view)
	if significant {
		wake(p.changed)
	}
}

func (p *Pool) notify(ctx context.Context) {
	var seen uint64
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
			view := p.View()
			if p.cfg.OnChange != nil && view.Generation != seen {
				p.cfg.OnChange(view)
			}
			seen = view.Generation
		}
	}
}

func (p *Pool) upkeep(ctx context.Context) {
	lastErr := ""
	every(ctx, upkeepInterval, nil, func() {
		lastErr = p.secrets.follow(p.cfg.Log, lastErr)
		for _, m := range p.members {
			m.server.idle.sweep()
		}
	})
}

// wake puts an element into a channel of capacity 1, so that its reader runs once more
// after now.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// every calls f at once, then each interval and after each wake, until ctx is done.
func every(ctx context.Context, interval time.Duration, woken <-chan struct{}, f func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		f()
		select {
		case <-ctx.Done():
		case <-ticker.C:
		case <-woken:
		}
	}
}
