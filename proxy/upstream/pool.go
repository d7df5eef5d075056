package upstream

import (
	"context"
	"errors"
	"slices"
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
	secrets *secrets // of the servers without an Access of their own

	setting sync.Mutex      // held by SetServers, the only one that changes members
	mu      sync.Mutex      // held while what follows changes
	members []*member       // replaced, never changed: those of the view, in its order
	start   func(m *member) // runs one until it is removed; nil while Run does not run
	ended   bool            // Run has run
	view    atomic.Pointer[View]
	changed chan struct{} // holds an element if OnChange is due

	instance instance // this proxy's name for others

	running atomic.Bool
	peopled chan struct{} // closed when there is a server for the first time
}

// New checks cfg and makes a pool. It reads the files that cfg names, but connects to
// no server before Run.
func New(cfg Config) (*Pool, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	p := &Pool{cfg: cfg, changed: make(chan struct{}, 1), peopled: make(chan struct{}), instance: newInstance()}
	if p.secrets, err = newSecrets(&p.cfg, p.cfg.access()); err != nil {
		return nil, err
	}
	p.view.Store(&View{})
	if err := p.SetServers(cfg.Servers); err != nil {
		return nil, err
	}
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
	var probing, wg sync.WaitGroup
	p.mu.Lock()
	p.start = func(m *member) { m.run(ctx, &probing) }
	for _, m := range p.members {
		p.start(m)
	}
	p.mu.Unlock()
	wg.Go(func() { p.notify(ctx) })
	wg.Go(func() { p.upkeep(ctx) })
	wg.Wait() // for the end of ctx
	p.mu.Lock()
	p.start, p.ended = nil, true
	p.mu.Unlock()
	probing.Wait()
	for _, m := range p.current() {
		m.server.idle.close()
	}
	return nil
}

// WaitSynced waits until there are servers, and each that is there at this moment was
// probed once: found unhealthy, or read whole. Its error is that of ctx. Run must be
// running.
func (p *Pool) WaitSynced(ctx context.Context) error {
	select {
	case <-p.peopled:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for _, m := range p.current() {
		select {
		case <-m.probed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// current is the members of the moment.
func (p *Pool) current() []*member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.members
}

// update changes the state of a server. change works on a copy and reports whether it
// changed more than times and latencies. It is not called, and false returned, when
// the server has been removed.
func (p *Pool) update(m *member, change func(*State) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.members, m)
	if i < 0 {
		return false
	}
	old := p.view.Load()
	state := *old.Servers[i]
	significant := change(&state)
	view := &View{Servers: slices.Clone(old.Servers), Generation: old.Generation}
	view.Servers[i] = &state
	p.publish(view, significant)
	return true
}

// publish makes view the present one. It is called with the lock held.
func (p *Pool) publish(view *View, significant bool) {
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
	every(ctx, upkeepInterval, nil, func() {
		p.secrets.follow(p.cfg.Log)
		for _, m := range p.current() {
			if m.server.end.access != nil {
				m.server.secrets.follow(m.log)
			}
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
