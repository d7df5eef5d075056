package upstream

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// Server is one kube-apiserver, to which it makes round trips. It is safe for
// concurrent use. A Pool makes them.
type Server struct {
	end     endpoint
	cfg     *Config
	secrets *secrets

	dialer   net.Dialer
	sessions sessions
	idle     *idleConns
	slots    chan struct{} // one element per short request under way
	vacate   func()        // takes an element out
	streams  atomic.Int64

	addresses atomic.Pointer[map[netip.Addr]bool] // of the host's name; nil: not known

	// dialFailed is told of each dial that the server, not this machine, is to blame
	// for. Never nil.
	dialFailed func(error)

	signs signs

	// down is whether the server is not healthy at present.
	down atomic.Bool

	// doubts counts connections that broke off, settled is how many of them a probe has
	// followed that went well.
	doubts, settled atomic.Uint64
}

// Down reports whether the server is not healthy at present, where [State.Healthy] is of
// the moment of its view.
func (s *Server) Down() bool { return s.down.Load() }

func newServer(cfg *Config, end endpoint, sec *secrets, dialFailed func(error)) *Server {
	s := &Server{
		end: end, cfg: cfg, secrets: sec, dialFailed: dialFailed,
		dialer: net.Dialer{KeepAliveConfig: keepAlive},
		slots:  make(chan struct{}, cfg.MaxConnsPerServer),
	}
	s.vacate = func() { <-s.slots }
	s.idle = newIdleConns(cfg.MaxIdlePerServer, cfg.IdleTimeout, s.usable)
	s.idle.died = s.closedIdle
	return s
}

// Name is the server's name in the configuration.
func (s *Server) Name() string { return s.end.name }

// URL is scheme://host:port.
func (s *Server) URL() string { return s.end.url }

// Inflight is the number of requests now under way, without Long ones and upgrades.
func (s *Server) Inflight() int { return len(s.slots) }

// Streams is the number of Long requests and upgraded connections now open.
func (s *Server) Streams() int { return int(s.streams.Load()) }

// usable reports whether an idle connection still leads where a new one would, under
// the same trust.
func (s *Server) usable(c *conn) bool {
	if s.end.tls && c.era != s.secrets.current().era {
		return false
	}
	known := s.addresses.Load()
	return known == nil || !c.ip.IsValid() || (*known)[c.ip]
}

// enter counts a request in, waiting while too many short ones are under way. The
// function it returns counts it out.
func (s *Server) enter(ctx context.Context, req *Request) (leave func(), err error) {
	switch {
	case req.probe:
		return func() {}, nil
	case req.Long:
		return s.openStream(), nil
	}
	select {
	case s.slots <- struct{}{}:
		return s.vacate, nil
	default:
	}
	timer := time.NewTimer(s.cfg.DialTimeout)
	defer timer.Stop()
	select {
	case s.slots <- struct{}{}:
		return s.vacate, nil
	case <-ctx.Done():
		return nil, s.fail(ctx, OpWait, false, ctx.Err())
	case <-timer.C:
		return nil, s.fail(ctx, OpWait, false, context.DeadlineExceeded)
	}
}

func (s *Server) openStream() (leave func()) {
	s.streams.Add(1)
	return func() { s.streams.Add(-1) }
}

// fail makes an Error. When ctx is done, that is the cause, whatever the closed
// connection said.
func (s *Server) fail(ctx context.Context, op string, sent bool, err error) *Error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	timeout := isTimeout(err) || errors.Is(ctx.Err(), context.DeadlineExceeded)
	return &Error{Server: s.end.name, Op: op, Sent: sent, Timeout: timeout, Err: err}
}
