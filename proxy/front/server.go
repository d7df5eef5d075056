package front

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

var noDeadline time.Time

// Server serves a Handler on any number of listeners. Its methods may be called
// from any goroutine.
type Server struct {
	cfg      Config
	http     *fasthttp.Server
	tls      *tls.Config // nil: plain HTTP
	stopping chan struct{}

	mu        sync.Mutex
	stopped   bool
	listeners map[net.Listener]bool
	conns     map[*conn]bool
	addresses map[netip.Addr]int // connections of each
}

// New makes a server. Its error names every field of cfg that is wrong.
func New(cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg:       cfg,
		stopping:  make(chan struct{}),
		listeners: make(map[net.Listener]bool),
		conns:     make(map[*conn]bool),
		addresses: make(map[netip.Addr]int),
	}
	if cfg.Certificates != nil {
		s.tls = cfg.Certificates.serverConfig()
	}
	s.http = &fasthttp.Server{
		Handler:        s.handle,
		ErrorHandler:   s.readFailed,
		HeaderReceived: headerReceived,
		ExpectHandler:  s.expect,
		Logger:         silent{},

		ReadTimeout: cfg.HeadTimeout,
		IdleTimeout: cfg.IdleTimeout,

		ReadBufferSize:  cfg.MaxHeadBytes,
		WriteBufferSize: 512, // for 100 Continue, and for answers that are dropped

		// Bodies stream. fasthttp enforces no limit then, but waits for as much of
		// the body as the limit before it calls the handler: one byte.
		StreamRequestBody:            true,
		MaxRequestBodySize:           1,
		DisablePreParseMultipartForm: true,

		// Connections are counted at accept.
		Concurrency: math.MaxInt32,

		NoDefaultServerHeader: true,
		NoDefaultDate:         true,
		NoDefaultContentType:  true,
		SecureErrorLogMessage: true,
	}
	return s, nil
}

// silent is fasthttp's log. What it has to say of a connection is returned by
// ServeConn too.
type silent struct{}

func (silent) Printf(string, ...any) {}

// Connections is the number of client connections, unfinished handshakes and
// tunnels included.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

func (s *Server) refused(client netip.AddrPort, r Refusal) {
	if s.cfg.OnRefuse != nil {
		s.cfg.OnRefuse(client, r)
	}
}

// Shutdown ends the server in order. Listeners close at once, and so do
// connections that wait for a request; requests under way are answered with
// Connection: close; streams and tunnels are told by Request.ShuttingDown and
// waited for. When ctx ends, whatever is left is closed, and the error is that of
// ctx. Serve returns nil meanwhile. Later calls wait likewise.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	ticker := time.NewTicker(shutdownPoll)
	defer ticker.Stop()
	for s.closeIdle() > 0 {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return s.closeAll(ctx, ticker)
		}
	}
	return nil
}

// stop closes the listeners and tells the streams, once.
func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.stopped = true
	close(s.stopping)
	for ln := range s.listeners {
		if err := ln.Close(); err != nil {
			s.cfg.Log.Warn("cannot close a listener", "address", ln.Addr().String(), "error", err)
		}
	}
}

// closeIdle closes the connections without a request and returns how many there
// still are.
func (s *Server) closeIdle() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for c := range s.conns {
		c.closeIfIdle(now)
	}
	return len(s.conns)
}

// closeAll closes every connection, and gives their handlers a moment to notice.
func (s *Server) closeAll(ctx context.Context, ticker *time.Ticker) error {
	n := s.killAll()
	for deadline := time.Now().Add(shutdownReap); s.killAll() > 0 && time.Now().Before(deadline); {
		<-ticker.C
	}
	return fmt.Errorf("closed %d connections before they ended: %w", n, ctx.Err())
}

func (s *Server) killAll() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.kill()
	}
	return len(s.conns)
}
