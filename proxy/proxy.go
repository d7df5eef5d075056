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
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

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

	// Log gets what an operator must know. Required.
	Log *slog.Logger

	// AccessLog gets one record a request, when its answer has ended. Nil: none.
	AccessLog *slog.Logger

	// Metrics is where the proxy registers its metrics. Nil: not registered.
	Metrics prometheus.Registerer

	// MaxBody is the largest request body, and the largest single object of an
	// answer, that is decoded for a policy, in bytes; a larger request is
	// answered 413. What no policy looks into is streamed and not limited.
	// Default DefaultMaxBody.
	MaxBody int64
}

// DefaultMaxBody is the apiserver's own limit of a request body, so that MVP
// never refuses what the server would take.
const DefaultMaxBody = 3 << 20

// Server decides and forwards. Its methods may be called by any number of
// goroutines.
type Server struct {
	cfg     Config
	metrics *metrics
	state   atomic.Pointer[state]
	builder *builder
	streams streams

	draining atomic.Bool

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
	if cfg.MaxBody == 0 {
		cfg.MaxBody = DefaultMaxBody
	}
	s := &Server{cfg: cfg, rebuild: make(chan struct{}, 1), builder: newBuilder(cfg.Log)}
	s.state.Store(&state{set: cfg.Policies(), view: cfg.Upstreams.View()})
	m, err := newMetrics(cfg.Metrics)
	if err != nil {
		return nil, err
	}
	s.metrics = m
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
	synced := s.cfg.Upstreams.WaitSynced(ctx)
	for synced == nil {
		next := s.builder.build(ctx, s.cfg.Policies(), s.cfg.Upstreams.View(), s.state.Load())
		s.state.Store(next)
		select {
		case <-ctx.Done():
			return nil
		case <-s.rebuild:
		}
	}
	return nil // ctx was done before
}

// Ready reports whether requests can be answered, and why not.
func (s *Server) Ready() error {
	if s.draining.Load() {
		return errors.New("the proxy is shutting down")
	}
	st := s.state.Load()
	if st.merged == nil || st.merged.Empty() {
		return errors.New("no kube-apiserver has said yet what it serves")
	}
	for _, server := range st.view.Servers {
		if server.Healthy {
			return nil
		}
	}
	return errors.New("no kube-apiserver is healthy")
}

// Synced reports whether every kube-apiserver is healthy and requests are served
// by what all of them said of themselves.
func (s *Server) Synced() bool {
	for _, server := range s.state.Load().view.Servers {
		if !server.Healthy || !server.Synced {
			return false
		}
	}
	return s.Ready() == nil
}
