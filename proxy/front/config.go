package front

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"
)

// Defaults of [Config].
const (
	// DefaultMaxHeadBytes leaves room for a bearer token with many group claims
	// and for long selectors. kube-apiserver takes 1 MiB, but each connection
	// holds a buffer of this size.
	DefaultMaxHeadBytes = 128 << 10

	// DefaultHandshakeTimeout is the time that kube-apiserver's own clients wait
	// for a handshake.
	DefaultHandshakeTimeout = 10 * time.Second

	// DefaultHeadTimeout is about kube-apiserver's 32 s.
	DefaultHeadTimeout = 30 * time.Second

	// DefaultIdleTimeout is longer than the 90 s after which client-go drops an
	// idle connection, so that the client closes first and never writes a request
	// into a connection that is just being closed.
	DefaultIdleTimeout = 3 * time.Minute

	// DefaultBodyTimeout and DefaultWriteTimeout bound silence, not transfers:
	// they start anew with every byte.
	DefaultBodyTimeout  = time.Minute
	DefaultWriteTimeout = time.Minute

	// DefaultMaxConnections is about 5 GiB of watches over TLS.
	DefaultMaxConnections = 1 << 16
)

// Config is what a [Server] needs. The zero value of an optional field is its
// default. Negative values are an error.
type Config struct {
	// Handler answers the requests. Required.
	Handler Handler

	// Certificates makes the server speak TLS with them. Nil: plain HTTP, which
	// shows every bearer token to the network; for loopback only.
	Certificates *Certificates

	// MaxHeadBytes is the largest request head, in bytes: the request line and
	// all header lines. Above it the client gets a 431. Each connection holds a
	// buffer of this size, of which the kernel backs only what was used. Default
	// DefaultMaxHeadBytes; less than 4096 is an error.
	MaxHeadBytes int

	// HandshakeTimeout is how long a TLS handshake may take from accept. Default
	// DefaultHandshakeTimeout.
	HandshakeTimeout time.Duration

	// HeadTimeout is how long a head may take: on a new connection from its start,
	// later from its first byte. Default DefaultHeadTimeout.
	HeadTimeout time.Duration

	// IdleTimeout is how long a connection may wait for its next request. Default
	// DefaultIdleTimeout.
	IdleTimeout time.Duration

	// BodyTimeout is how long one Read of a request body may wait. A body that
	// keeps coming may take for ever. Default DefaultBodyTimeout.
	BodyTimeout time.Duration

	// WriteTimeout is how long a client may take nothing of an answer before its
	// connection is closed. A stream that has nothing to say, and a tunnel, are
	// not bounded. Default DefaultWriteTimeout.
	WriteTimeout time.Duration

	// MaxConnections is how many client connections there may be, tunnels and
	// unfinished handshakes included; more are closed at once. Default
	// DefaultMaxConnections.
	MaxConnections int

	// MaxConnectionsPerAddress is the same per client address. 0: no limit, which
	// is right behind a load balancer, where all clients have one address.
	MaxConnectionsPerAddress int

	// Log gets what operators should see: panics and failures to accept; at debug
	// level, why connections ended. Never tokens or bodies. Nil: slog.Default.
	Log *slog.Logger

	// OnRefuse is called for every connection and request that is refused before
	// the handler, on any goroutine; it must be quick. May be nil.
	OnRefuse func(client netip.AddrPort, refusal Refusal)
}

// Limits that no configuration changes.
const (
	// minHeadBytes is what an ordinary kubectl request with a token needs.
	minHeadBytes = 4 << 10

	// maxHeaderLines bounds what a handler that walks the lines once per line has
	// to do for one request: 16 million comparisons, some 50 ms. Two thousand
	// Impersonate-Group lines fit.
	maxHeaderLines = 4096

	// maxConnectionOptions bounds the names that Connection lists, each of which
	// a proxy looks for among all lines.
	maxConnectionOptions = 64

	// maxMethodLength is beyond any registered method (RFC 9110 section 16.1).
	maxMethodLength = 20

	// drainTimeout is how long an answered connection waits for the rest of a
	// request body that nobody read, in order to be used again.
	drainTimeout = time.Second

	// maxDrainBytes is how much of such a body fasthttp reads before it gives the
	// connection up; a longer rest is announced with Connection: close.
	maxDrainBytes = 256 << 10

	// lingerTimeout and maxLingerBytes bound how long a closing connection still
	// takes what the client sends: closing with unread bytes resets it, and the
	// client may lose the answer that tells it why.
	lingerTimeout  = 500 * time.Millisecond
	maxLingerBytes = 4 << 20

	// newConnectionGrace is how long Shutdown leaves a connection open that has
	// not sent a byte: its request may be under way.
	newConnectionGrace = time.Second

	// shutdownPoll is how often Shutdown looks for connections that became idle.
	shutdownPoll = 20 * time.Millisecond

	// shutdownReap is how long Shutdown waits, after its time is up and it closed
	// what was left, for handlers to notice.
	shutdownReap = time.Second
)

// withDefaults returns cfg with its defaults filled in, or says all that is
// wrong.
func (cfg Config) withDefaults() (Config, error) {
	var errs []error
	if cfg.Handler == nil {
		errs = append(errs, errors.New("Handler is not set"))
	}
	duration := func(name string, d *time.Duration, def time.Duration) {
		if *d < 0 {
			errs = append(errs, fmt.Errorf("%s is %v, want a positive duration", name, *d))
		}
		if *d == 0 {
			*d = def
		}
	}
	duration("HandshakeTimeout", &cfg.HandshakeTimeout, DefaultHandshakeTimeout)
	duration("HeadTimeout", &cfg.HeadTimeout, DefaultHeadTimeout)
	duration("IdleTimeout", &cfg.IdleTimeout, DefaultIdleTimeout)
	duration("BodyTimeout", &cfg.BodyTimeout, DefaultBodyTimeout)
	duration("WriteTimeout", &cfg.WriteTimeout, DefaultWriteTimeout)
	number := func(name string, n *int, def, least int) {
		if *n == 0 {
			*n = def
		}
		if *n < least {
			errs = append(errs, fmt.Errorf("%s is %d, want at least %d", name, *n, least))
		}
	}
	number("MaxHeadBytes", &cfg.MaxHeadBytes, DefaultMaxHeadBytes, minHeadBytes)
	number("MaxConnections", &cfg.MaxConnections, DefaultMaxConnections, 1)
	number("MaxConnectionsPerAddress", &cfg.MaxConnectionsPerAddress, 0, 0)
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if len(errs) > 0 {
		return cfg, fmt.Errorf("cannot make the front end: %w", errors.Join(errs...))
	}
	return cfg, nil
}
