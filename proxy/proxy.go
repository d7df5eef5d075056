// Package proxy is the only way of a request through MVP: identify, parse,
// decide, choose an upstream, convert, forward, convert the answer.
//
// serve.go reads from top to bottom as one request goes. Everything that can
// change while requests run (the policies, what each kube-apiserver serves, the
// merged discovery) is one immutable state behind one atomic pointer; a request
// takes it once and keeps it to its end.
//
// The package speaks no HTTP itself: proxy/front reads requests and writes
// answers, proxy/upstream talks to the kube-apiservers, engine knows what the
// policies mean.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// Config is what a Server needs. The zero value of an optional field is its
// default.
type Config struct {
	// Policies returns the live set. It is called at each rebuild of the state,
	// must be fast and never return nil. Required.
	Policies func() *engine.Set

	// Upstreams are the kube-apiservers behind this proxy. Required.
	Upstreams *upstream.Pool

	// Identity says how the servers learn who a client is. Default: from its bearer
	// token only.
	Identity Identity

	// Log gets what an operator must know. Required.
	Log *slog.Logger

	// AccessLog gets one record a request, when its answer has ended. Nil: none.
	AccessLog *slog.Logger

	// Metrics is where the proxy registers its metrics. Nil: not registered.
	Metrics prometheus.Registerer

	// MaxBody is the largest request body that is decoded for a policy, in bytes;
	// a larger one is answered 413. What no policy looks into is streamed and not
	// limited. Default DefaultMaxBody.
	MaxBody int64

	// MaxHeldBodies is how much memory the bodies that are held at one moment may
	// take together, in bytes; above it requests are answered 429. Default
	// DefaultMaxHeldBodies.
	MaxHeldBodies int64

	// HungTime is how long a server may fail its health checks until the watches
	// that it serves are moved to others, or ended where that cannot be. Default
	// DefaultHungTime.
	HungTime time.Duration

	// PassWatches passes watches on as they come: one whose server goes away ends.
	// Else it goes on with another server.
	PassWatches bool

	// ResumeTime is how long a watch whose server went away may wait for one that
	// takes it on, until it is ended. Default DefaultResumeTime.
	ResumeTime time.Duration
}

// DefaultMaxBody is the apiserver's own limit of a request body, so that MVP
// never refuses what the server would take.
const DefaultMaxBody = 3 << 20

// DefaultMaxHeldBodies is some 170 bodies of the largest size at once, or 60,000
// of the usual 8 KiB.
const DefaultMaxHeldBodies = 512 << 20

// Server decides and forwards. Its methods may be called by any number of
// goroutines.
type Server struct {
	cfg     Config
	auth    *authenticator
	metrics *metrics
	tallies tallies
	state   atomic.Pointer[state]
	set     atomic.Pointer[engine.Set] // of Config.Policies, that state is made of
	builder *builder
	v2      *openAPIV2
	streams streams
	watches *watches

	draining atomic.Bool
	bodies   budget
	patches  keyedLocks
	audits   auditSlots
	alive    alive

	// rebuild has room for one token: a change that comes while a rebuild runs
	// makes exactly one more.
	rebuild chan struct{}
}

// New returns a Server that answers 503 until Run has built its first state.
func New(cfg Config) (*Server, error) {
	switch {
	case cfg.Policies == nil:
		return nil, errors.New("cannot make a proxy: Config.Policies is not set")
	case cfg.Upstreams == nil:
		return nil, errors.New("cannot make a proxy: Config.Upstreams is not set")
	case cfg.Log == nil:
		return nil, errors.New("cannot make a proxy: Config.Log is not set")
	}
	if cfg.MaxBody < 0 || cfg.MaxHeldBodies < 0 || cfg.ResumeTime < 0 {
		return nil, errors.New("cannot make a proxy: Config.MaxBody, Config.MaxHeldBodies and Config.ResumeTime must not be negative")
	}
	cfg.MaxBody = cmp.Or(cfg.MaxBody, DefaultMaxBody)
	cfg.MaxHeldBodies = cmp.Or(cfg.MaxHeldBodies, DefaultMaxHeldBodies)
	cfg.ResumeTime = cmp.Or(cfg.ResumeTime, DefaultResumeTime)
	auth, err := newAuthenticator(cfg.Identity, cfg.Upstreams)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, auth: auth, rebuild: make(chan struct{}, 1), audits: make(auditSlots, auditsAtOnce)}
	s.builder = newBuilder(cfg.Log, newDocuments(cfg.Log, s.Changed))
	s.v2 = newOpenAPIV2(cfg.Log)
	s.bodies.limit = cfg.MaxHeldBodies
	s.alive.ended, s.alive.hung = s.endStreamsOf, cmp.Or(cfg.HungTime, DefaultHungTime)
	s.state.Store(&state{set: cfg.Policies(), view: cfg.Upstreams.View(), replaced: make(chan struct{})})
	m, err := newMetrics(cfg.Metrics, collector{s})
	if err != nil {
		return nil, err
	}
	s.metrics, s.tallies.metrics = m, m
	s.watches = newWatches(cfg.Log, m.watchMoved)
	return s, nil
}

// Changed says that the policies or the upstreams changed. It never blocks.
func (s *Server) Changed() {
	select {
	case s.rebuild <- struct{}{}:
	default:
	}
}

// Run rebuilds the state after each change until ctx is done. The first state
// waits until every server has been read whole or found unhealthy: with half of
// what they say, a request could be answered 404, or converted without the types
// of its fields.
func (s *Server) Run(ctx context.Context) error {
	if s.cfg.Upstreams.WaitSynced(ctx) != nil {
		return nil // ctx is done
	}
	var reading sync.WaitGroup
	reading.Go(func() { s.builder.docs.run(ctx) })
	reading.Go(func() { s.v2.run(ctx) })
	defer reading.Wait()
	defer s.alive.close()
	defer s.watches.close()

	var live *engine.Set
	adoption := adoption{}
	for {
		view := s.cfg.Upstreams.View()
		if set := s.cfg.Policies(); set != live {
			if adoption.ready(set, s.builder.docs.want(view, documentsOf(set))) {
				live = set
			}
		} else {
			s.builder.docs.want(view, documentsOf(live))
		}
		if live != nil {
			next := s.builder.build(live, view, s.state.Load())
			next.alive = s.alive.update(view)
			next.tally = s.tallies.update(next)
			close(s.state.Swap(next).replaced)
			s.set.Store(live)
			s.alive.endRemoved()
			s.v2.want(view, derivedV2(next, conversionsOf(live)))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.rebuild:
		case <-adoption.late():
			adoption.stop()
		}
	}
}

// adoptTime is how long new policies may wait for the documents that tell their
// fields' types.
const adoptTime = 3 * time.Second

// adoption is when new policies take the place of the old ones: when all that they
// need has been read, or tried, or takes too long.
type adoption struct {
	set   *engine.Set
	timer *time.Timer // of set; nil when it does not wait
}

// ready reports whether set may be used now, given whether something it needs is
// pending.
func (a *adoption) ready(set *engine.Set, pending bool) bool {
	if a.set != set {
		a.stop()
		a.set = set
		if pending {
			a.timer = time.NewTimer(adoptTime)
		}
		return !pending
	}
	if !pending || a.timer == nil {
		a.stop()
		return true
	}
	return false
}

// late is received from when the set has waited for long enough.
func (a *adoption) late() <-chan time.Time {
	if a.timer == nil {
		return nil
	}
	return a.timer.C
}

func (a *adoption) stop() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}

// Uses reports whether requests are decided by set, which Config.Policies returned.
func (s *Server) Uses(set *engine.Set) bool { return s.set.Load() == set }

// Ready reports whether requests can be answered, and why not.
func (s *Server) Ready() error {
	if s.draining.Load() {
		return errors.New("the proxy is shutting down")
	}
	st := s.state.Load()
	if st.merged == nil || st.merged.Empty() {
		return errors.New("no kube-apiserver has said yet what it serves: " + reasons(s.cfg.Upstreams.View()))
	}
	if len(st.up) > 0 {
		return nil
	}
	return errors.New("no kube-apiserver is healthy: " + reasons(st.view))
}

// reasons says of each server why it is not usable.
func reasons(view *upstream.View) string {
	if len(view.Servers) == 0 {
		return "none has been found yet"
	}
	var list []string
	for _, server := range view.Servers {
		switch {
		case !server.Healthy && server.Reason != "":
			list = append(list, server.Name+": "+server.Reason)
		case !server.Synced && server.Problem != "":
			list = append(list, server.Name+": "+server.Problem)
		case !server.Synced:
			list = append(list, server.Name+" has not said yet what it serves")
		}
	}
	return strings.Join(list, "; ")
}

// Synced reports whether every kube-apiserver is healthy and requests are served
// by what all of them said of themselves.
func (s *Server) Synced() bool {
	view := s.state.Load().view
	if view.Generation != s.cfg.Upstreams.View().Generation {
		return false
	}
	for _, server := range view.Servers {
		if !server.Healthy || !server.Synced {
			return false
		}
	}
	return s.Ready() == nil
}
