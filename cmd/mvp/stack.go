package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/policies/objects"
	"github.com/mixed-version-proxy/mvp/proxy"
	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// stackConfig is what a running MVP is made of.
type stackConfig struct {
	policies         policies.Options
	objects          *objects.Config // of the policies that are objects; nil: none are
	upstream         upstream.Config
	follow           func(*upstream.Pool) (follow, error) // nil: the servers stay
	certificates     *front.Certificates
	front            front.Config // Handler, Certificates and Log are set here
	identity         proxy.Identity
	maxBody, maxHeld int64
	passWatches      bool
	resumeTime       time.Duration

	listen, adminListen string // addresses
	delay, grace        time.Duration
	log, accessLog      *slog.Logger
}

// stack is a running MVP: policies, upstreams, proxy, front and admin listener.
type stack struct {
	cfg      stackConfig
	policies *policies.Store
	objects  *policyObjects // may be nil
	pool     *upstream.Pool
	follow   follow // may be nil
	proxy    *proxy.Server
	front    *front.Server
	admin    *http.Server

	clients, admins net.Listener
}

// newStack makes everything and listens; nothing is served before run.
func newStack(cfg stackConfig) (*stack, error) {
	s := &stack{cfg: cfg}
	changed := func() {
		if s.proxy != nil {
			s.proxy.Changed()
		}
	}
	store, err := policies.Open(cfg.policies, cfg.log, func(*engine.Set) { changed() })
	if err != nil {
		return nil, &exitError{exitPolicies, policyErrors(err)}
	}
	s.policies = store

	cfg.upstream.Log = cfg.log
	cfg.upstream.OnChange = func(*upstream.View) {
		changed()
		if s.objects != nil {
			s.objects.viewChanged()
		}
	}
	if s.pool, err = upstream.New(cfg.upstream); err != nil {
		return nil, &exitError{exitUsage, err}
	}
	if cfg.follow != nil {
		if s.follow, err = cfg.follow(s.pool); err != nil {
			return nil, &exitError{exitUsage, err}
		}
	}
	if cfg.objects != nil {
		if s.objects, err = newPolicyObjects(*cfg.objects, store, s.pool, cfg.log); err != nil {
			return nil, &exitError{exitUsage, err}
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		policyMetrics{store})
	s.proxy, err = proxy.New(proxy.Config{
		Policies: store.Current, Upstreams: s.pool, Identity: cfg.identity, MaxBody: cfg.maxBody, MaxHeldBodies: cfg.maxHeld,
		PassWatches: cfg.passWatches, ResumeTime: cfg.resumeTime,
		Log: cfg.log, AccessLog: cfg.accessLog, Metrics: registry,
	})
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	if err := s.newFront(registry); err != nil {
		return nil, &exitError{exitUsage, err}
	}
	s.admin = &http.Server{
		Handler: s.proxy.Admin(proxy.AdminConfig{
			Policies: func() any { return s.reportPolicies() },
			Metrics:  promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
			Ready:    s.ready,
			Notes:    func() []string { return append(notes(store.Status()), missingNotes(s.proxy.MissingFields())...) },
		}),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(cfg.log.Handler(), slog.LevelDebug),
	}
	return s, s.open()
}

// ready adds to the proxy's own readiness that policies which are objects are known, and
// that requests are decided by them.
func (s *stack) ready() error {
	if s.objects == nil {
		return nil
	}
	if err := s.objects.Ready(); err != nil {
		return err
	}
	if !s.objects.used.Load() {
		if !s.proxy.Uses(s.policies.Current()) {
			return errors.New("the policy objects of the cluster are read and not in use yet")
		}
		s.objects.used.Store(true)
	}
	return nil
}

func (s *stack) newFront(registry prometheus.Registerer) error {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mvp_requests_refused_total", Help: "Connections and requests refused before they were understood, by why.",
	}, []string{"reason"})
	if err := registry.Register(refused); err != nil {
		return err
	}
	cfg := s.cfg.front
	cfg.Handler, cfg.Certificates, cfg.Log = s.proxy.Handle, s.cfg.certificates, s.cfg.log
	cfg.OnRefuse = func(_ netip.AddrPort, r front.Refusal) { refused.WithLabelValues(r.Reason).Inc() }
	var err error
	s.front, err = front.New(cfg)
	return err
}

func (s *stack) open() error {
	var err error
	if s.clients, err = net.Listen("tcp", s.cfg.listen); err != nil {
		return fmt.Errorf("cannot listen for clients: %w", err)
	}
	if s.admins, err = net.Listen("tcp", s.cfg.adminListen); err != nil {
		s.clients.Close()
		return fmt.Errorf("cannot listen for administrators: %w", err)
	}
	return nil
}

// run serves until ctx is done, then ends gracefully: streams are ended, short
// requests finished, and what is left after the grace period cut.
func (s *stack) run(ctx context.Context) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, groupCtx := errgroup.WithContext(background)
	group.Go(func() error { return s.policies.Run(groupCtx) })
	group.Go(func() error { return s.pool.Run(groupCtx) })
	if s.objects != nil {
		group.Go(func() error {
			_ = s.pool.WaitSynced(groupCtx) // fails at the end alone, and then Run returns at once
			return s.objects.Run(groupCtx)
		})
	}
	if s.follow != nil {
		group.Go(func() error { return s.follow(groupCtx) })
	}
	group.Go(func() error { return s.proxy.Run(groupCtx) })
	group.Go(func() error { s.cfg.certificates.Run(groupCtx); return nil })
	group.Go(func() error { return s.front.Serve(s.clients) })
	group.Go(func() error { return ignoreClosed(s.admin.Serve(s.admins)) })
	group.Go(func() error {
		select {
		case <-ctx.Done():
		case <-groupCtx.Done(): // another part failed
		}
		s.shutdown(ctx.Err() != nil)
		stop()
		return nil
	})
	return group.Wait()
}

// shutdown says that MVP is not ready, gives load balancers the time to see it,
// and then ends what is under way. Nobody sees it where a part failed: asked is
// false.
func (s *stack) shutdown(asked bool) {
	s.cfg.log.Info("shutting down", "delay", s.cfg.delay.String(), "grace", s.cfg.grace.String())
	s.proxy.Drain()
	if asked {
		time.Sleep(s.cfg.delay)
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.grace)
	defer cancel()
	s.proxy.EndStreams()
	if err := s.front.Shutdown(ctx); err != nil {
		s.cfg.log.Warn("some requests were cut off at the end of the grace period", "error", err)
	}
	s.admin.Close()
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
