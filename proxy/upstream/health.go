package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// failuresToUnhealthy is how many probes in a row must time out or break off
	// before a server is unhealthy. A refused connection and an answer other than 200
	// count at once: they are the server's own word.
	failuresToUnhealthy = 2

	// catchUpTimeout bounds the discovery of a server that has come back, before it is
	// healthy again whatever is known of it.
	catchUpTimeout = 5 * time.Second

	// maxReadyzBytes bounds the answer of /readyz, a line per check.
	maxReadyzBytes = 64 << 10
)

// member is a server of a pool, with what probing it remembers.
type member struct {
	pool   *Pool
	server *Server
	log    *slog.Logger
	cancel context.CancelFunc // of its goroutines; nil before they run

	probeNow   chan struct{}
	apisNow    chan struct{}
	detailsNow chan struct{}
	probed     chan struct{} // closed after the first round
	probedOnce sync.Once

	instances atomic.Pointer[[]string] // proxies that it is or has behind it

	away      atomic.Bool // a connection failed since the server was last well
	told      atomic.Bool // the log has said whether the server is healthy
	failures  int         // of probes in a row; watchHealth's
	discovery discovery
	details   details // watchDetails'
	news      news
	followers [2]*follower // of CRDs and APIServices; run by watchDetails
}

func newMember(p *Pool, end endpoint, sec *secrets) *member {
	m := &member{
		pool: p, log: p.cfg.Log.With("upstream", end.name),
		probeNow: make(chan struct{}, 1), apisNow: make(chan struct{}, 1),
		detailsNow: make(chan struct{}, 1), probed: make(chan struct{}),
	}
	m.server = newServer(&p.cfg, end, sec, m.dialFailed)
	m.discovery.get = m.server.Get
	m.heed()
	m.followers = [...]*follower{
		newFollower(m.server, crdResource, m.crdEvent),
		newFollower(m.server, apiServiceResource, m.apiServiceEvent),
	}
	return m
}

// state is what is known of the server: nothing, once it has been removed.
func (m *member) state() *State {
	for _, s := range m.pool.View().Servers {
		if s.Server == m.server {
			return s
		}
	}
	return m.unknown("removed")
}

// update changes what is known of the server. It reports false for one that has been
// removed, of which nothing is known any more.
func (m *member) update(change func(*State) bool) bool { return m.pool.update(m, change) }

func (m *member) firstRoundDone() { m.probedOnce.Do(func() { close(m.probed) }) }

// watchHealth probes until ctx is done.
func (m *member) watchHealth(ctx context.Context) {
	every(ctx, m.pool.cfg.ProbeInterval, m.probeNow, func() { m.probe(ctx) })
}

func (m *member) probe(ctx context.Context) {
	probeCtx, cancel := context.WithTimeout(ctx, m.pool.cfg.ProbeTimeout)
	defer cancel()
	start, doubts := time.Now(), m.server.doubts.Load()
	doc, err := m.server.Get(probeCtx, "/readyz", m.pool.instance.greeting(), maxReadyzBytes)
	if ctx.Err() != nil {
		return
	}
	if reason := m.leadsBack(doc); reason != "" {
		m.markDown(reason, start, false)
		m.firstRoundDone()
		return
	}
	if err == nil && doc.Status == 200 {
		m.markUp(ctx, start, time.Since(start))
		m.server.settled.Store(doubts)
		return
	}
	m.failures++
	reason, certain := unhealthyReason(doc, err)
	if certain || m.failures >= failuresToUnhealthy {
		m.markDown(reason, start, m.answers(doc, err))
		m.firstRoundDone()
		return
	}
	wake(m.probeNow) // the second opinion, now
}

// unhealthyReason says in words why a probe failed, and whether one such failure is
// enough.
func unhealthyReason(doc *Document, err error) (reason string, certain bool) {
	var e *Error
	switch {
	case errors.As(err, &e):
		return fmt.Sprintf("cannot %s: %v", e.Op, e.Err), e.Op == OpDial && !e.Timeout
	case err != nil:
		return err.Error(), false
	case doc.Status == 401 || doc.Status == 403:
		return fmt.Sprintf("/readyz answered %d: MVP's own credential may not read it", doc.Status), true
	}
	var failed []string
	for line := range strings.Lines(string(doc.Body)) {
		if check, ok := strings.CutPrefix(line, "[-]"); ok {
			failed = append(failed, strings.TrimSpace(check))
		}
	}
	reason = fmt.Sprintf("/readyz answered %d", doc.Status)
	if len(failed) > 0 {
		reason += ": " + preview(strings.Join(failed, ", "))
	}
	return reason, true
}

// markUp makes the server healthy. One that was down, or is in doubt, may have come back
// as another version, so what it serves is read first: a request must not be sent to it for what
// it no longer has.
func (m *member) markUp(ctx context.Context, when time.Time, took time.Duration) {
	m.failures = 0
	m.away.Store(false)
	fresh := false
	if !m.state().Healthy || m.server.Doubtful() {
		fresh = m.catchUp(ctx)
		if ctx.Err() != nil {
			return
		}
	}
	cameUp := false
	m.server.down.Store(false)
	m.update(func(s *State) bool {
		cameUp = !s.Healthy
		s.Stale = s.Stale && !fresh
		s.Healthy, s.Reason, s.LastProbe, s.Answering = true, "", when, false
		if cameUp {
			s.Since = time.Now()
		}
		s.Latency = average(s.Latency, took)
		return cameUp
	})
	if cameUp {
		m.told.Store(true)
		m.log.Info("upstream is healthy", "version", m.state().GitVersion)
		wake(m.detailsNow)
	}
}

func (m *member) catchUp(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	return m.discover(ctx)
}

// answers reports whether a server whose probe failed answers requests all the same, as
// far as anyone can tell: MVP's own credential has expired, the server or its etcd is
// slow, or it shuts down and still serves for its --shutdown-delay-duration. It does not
// if it has not been well since it was away, since then it may be starting.
func (m *member) answers(doc *Document, err error) bool {
	var e *Error
	if errors.As(err, &e) && !e.Timeout {
		m.away.Store(true)
	}
	switch {
	case m.away.Load():
		return false
	case err != nil:
		return e != nil && e.Timeout && e.Op == OpReadHead
	}
	return true
}

// markDown makes the server unhealthy. A zero when is not a probe's.
func (m *member) markDown(reason string, when time.Time, answering bool) (wentDown bool) {
	m.server.down.Store(true)
	here := m.update(func(s *State) bool {
		wentDown = s.Healthy
		changed := wentDown || s.Reason != reason || s.Answering != answering
		s.Healthy, s.Reason, s.Stale, s.Answering = false, reason, s.Synced, answering
		if wentDown || s.Since.IsZero() {
			s.Since = time.Now()
		}
		if !when.IsZero() {
			s.LastProbe = when
		}
		return changed
	})
	if wentDown || here && !m.told.Swap(true) { // also of one that has never been up
		m.log.Warn("upstream is unhealthy", "reason", reason)
	}
	if wentDown {
		wake(m.detailsNow) // its watches end
		m.pool.probeDown()
	}
	return wentDown
}

// dialFailed takes a request's failure to connect as a probe's, and has the server
// probed at once, in case it was a chance.
func (m *member) dialFailed(err error) {
	m.away.Store(true)
	if m.markDown(fmt.Sprintf("cannot %s: %v", OpDial, err), time.Time{}, false) {
		wake(m.probeNow)
	}
}

// average is an exponentially weighted moving average over about the last five.
func average(old, sample time.Duration) time.Duration {
	if old == 0 {
		return sample
	}
	return old + (sample-old)/5
}
