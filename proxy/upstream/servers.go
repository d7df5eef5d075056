package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// SetServers makes servers those of the pool, at any time and from any goroutine. What
// is known of a server that stays, which is one of the same name and URL, is kept, also
// when its Access changes. One that goes leaves the view at once, and with it what it
// served; requests that are under way to it go on to their end.
//
// Its error tells every mistake in servers, and then nothing has changed.
func (p *Pool) SetServers(servers []ServerConfig) error {
	ends, err := p.cfg.parseServers(servers)
	if err != nil {
		return err
	}
	p.setting.Lock()
	defer p.setting.Unlock()
	fresh, err := p.readSecrets(ends)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.view.Load()
	members, view := make([]*member, len(ends)), &View{Generation: old.Generation}
	for i, end := range ends {
		if at := p.find(end); at >= 0 {
			members[i] = p.members[at]
			view.Servers = append(view.Servers, old.Servers[at])
			continue
		}
		members[i] = newMember(p, end, fresh[i])
		view.Servers = append(view.Servers, members[i].unknown("not probed yet"))
	}
	p.replace(members, view, fresh)
	return nil
}

// find is the place of the member that end describes, or -1.
func (p *Pool) find(end endpoint) int {
	return slices.IndexFunc(p.members, func(m *member) bool { return m.server.end.same(end) })
}

// same reports whether both are one server, as far as anyone can tell from outside.
// What servers say of themselves tells nothing: two may have one host name.
func (e endpoint) same(other endpoint) bool {
	return e.name == other.name && e.url == other.url && (e.access == nil) == (other.access == nil)
}

// readSecrets reads what each server is accessed with; nil where that stays as it is.
// Files may be slow to read, so that no lock is held that requests or probes want.
func (p *Pool) readSecrets(ends []endpoint) ([]*secrets, error) {
	fresh := make([]*secrets, len(ends))
	var errs []error
	for i, end := range ends {
		at := p.find(end)
		switch {
		case end.access == nil && at < 0:
			fresh[i] = p.secrets
		case end.access == nil, at >= 0 && p.members[at].server.secrets.is(end.access):
		default:
			var err error
			if fresh[i], err = newSecrets(&p.cfg, end.access); err != nil {
				errs = append(errs, fmt.Errorf("upstream server %q: %w", end.name, err))
			}
		}
	}
	return fresh, errors.Join(errs...)
}

// replace makes members those of the pool. It is called with the lock held.
func (p *Pool) replace(members []*member, view *View, fresh []*secrets) {
	gone, changed := p.members, !slices.Equal(p.members, members)
	p.members = members
	if changed {
		p.publish(view, true)
	}
	for i, m := range members {
		switch {
		case !slices.Contains(gone, m):
			p.begin(m)
		case fresh[i] != nil:
			m.server.secrets.become(fresh[i])
			m.server.idle.sweep()
			wake(m.probeNow)
			m.log.Info("upstream credentials changed")
		}
	}
	for _, m := range gone {
		if !slices.Contains(members, m) {
			m.stop()
		}
	}
}

// begin starts a new member, if the pool runs.
func (p *Pool) begin(m *member) {
	select {
	case <-p.peopled:
	default:
		close(p.peopled)
	}
	switch {
	case p.start != nil:
		m.log.Info("upstream added", "url", m.server.end.url)
		p.start(m)
	case p.ended:
		m.server.idle.close()
	}
}

// run starts what follows the server, as parts of wg, until ctx is done or the member
// is stopped. It is called with the pool's lock held.
func (m *member) run(ctx context.Context, wg *sync.WaitGroup) {
	ctx, m.cancel = context.WithCancel(ctx)
	wg.Go(func() { m.watchHealth(ctx) })
	wg.Go(func() { m.watchAPIs(ctx) })
	wg.Go(func() { m.watchDetails(ctx) })
	wg.Go(func() { m.server.followName(ctx) })
}

// stop ends what run started, and the connections that no request uses. It is called
// with the pool's lock held.
func (m *member) stop() {
	if m.cancel != nil {
		m.cancel()
		m.log.Info("upstream removed", "url", m.server.end.url)
	}
	m.firstRoundDone()
	m.server.idle.close()
}

// probeDown has the servers that are not healthy probed now: when one is lost, another
// may have come back since its last probe.
func (p *Pool) probeDown() {
	down := map[*Server]bool{}
	for _, s := range p.View().Servers {
		down[s.Server] = !s.Healthy
	}
	for _, m := range p.current() {
		if down[m.server] {
			wake(m.probeNow)
		}
	}
}

// unknown is the state of a server of which nothing is known.
func (m *member) unknown(reason string) *State {
	return &State{Server: m.server, Name: m.server.end.name, URL: m.server.end.url, Reason: reason}
}
