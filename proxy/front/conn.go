package front

import (
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// What a connection is doing, for Shutdown.
const (
	phaseNew    int32 = iota // no byte of a request has come
	phaseIdle                // between two requests
	phaseActive              // a request is being read or answered, or a tunnel is open
	phaseClosed              // Shutdown took it while it was new or idle
)

// writePiece is how much one write deadline covers: a client that takes this
// much within Config.WriteTimeout is slow, not stuck.
const writePiece = 64 << 10

// conn is one client connection from accept to close. fasthttp reads requests
// from it; what fasthttp writes to it is dropped once the exchange has been
// answered, because the package writes the answers itself. fasthttp leaves no
// way to write none.
//
// Beside the guard's state, and phase, only the goroutine that serves the
// connection touches the fields.
type conn struct {
	net.Conn          // speaks TLS where the server does
	tcp      net.Conn // as accepted

	server *Server
	remote netip.AddrPort
	peer   []*x509.Certificate
	opened time.Time

	phase atomic.Int32

	answered  bool // the request fasthttp is at has its answer
	draining  bool // fasthttp is about to read what is left of a request body
	unread    bool // the client may still be sending what nobody will read
	tunnelled bool // the connection belongs to a tunnel

	guardian
}

// begin claims the connection for a request that has been read. It fails when
// Shutdown closed the connection meanwhile.
func (c *conn) begin() bool {
	return c.phase.Load() == phaseActive || c.phase.CompareAndSwap(phaseIdle, phaseActive)
}

// Read is what fasthttp reads through, for the next request and for bodies.
func (c *conn) Read(p []byte) (int, error) {
	if c.draining {
		c.draining = false
		if err := c.Conn.SetReadDeadline(time.Now().Add(drainTimeout)); err != nil {
			return 0, err
		}
	}
	n, err := c.read(p)
	if n > 0 && c.phase.Load() != phaseActive {
		if !c.phase.CompareAndSwap(phaseIdle, phaseActive) && !c.phase.CompareAndSwap(phaseNew, phaseActive) {
			return 0, net.ErrClosed
		}
	}
	return n, err
}

// Write is what fasthttp writes through: 100 Continue, and the answers it
// believes to make.
func (c *conn) Write(p []byte) (int, error) {
	if c.answered {
		return len(p), nil
	}
	if err := c.send(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// send writes p, giving the client a new Config.WriteTimeout for each piece.
func (c *conn) send(p []byte) error {
	for len(p) > 0 {
		piece := p[:min(len(p), writePiece)]
		if err := c.Conn.SetWriteDeadline(time.Now().Add(c.server.cfg.WriteTimeout)); err != nil {
			return err
		}
		if _, err := c.Conn.Write(piece); err != nil {
			return err
		}
		p = p[len(piece):]
	}
	return nil
}

// SetReadDeadline is called by fasthttp between requests; the first call after
// an answer says that it is done with the old one.
func (c *conn) SetReadDeadline(t time.Time) error {
	if c.answered {
		c.answered, c.draining, c.unread = false, false, false
		c.phase.CompareAndSwap(phaseActive, phaseIdle)
	}
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline does nothing: send sets the deadlines.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline is called by fasthttp when it gives the connection up to a tunnel.
// It never fails, or fasthttp would drop the tunnel without calling it; a
// connection that is gone shows when it is used.
func (c *conn) SetDeadline(t time.Time) error {
	_ = c.Conn.SetDeadline(t)
	return nil
}

// Close ends the connection in order. With bytes unread a plain close would
// reset it, and the client might lose the answer that says why.
func (c *conn) Close() error {
	if c.unread {
		c.unread = false
		c.lingerUnread()
	}
	return c.Conn.Close()
}

// lingerUnread ends the sending side and takes for a while what still comes.
// Errors are no news: the connection is being closed.
func (c *conn) lingerUnread() {
	type halfCloser interface{ CloseWrite() error }
	for _, side := range []net.Conn{c.Conn, c.tcp} { // TLS first says goodbye
		if h, ok := side.(halfCloser); ok {
			_ = h.CloseWrite()
		}
	}
	if c.tcp.SetReadDeadline(time.Now().Add(lingerTimeout)) == nil {
		_, _ = io.CopyN(io.Discard, c.tcp, maxLingerBytes)
	}
}

// kill closes the connection at once, from any goroutine.
func (c *conn) kill() { _ = c.tcp.Close() }

// closeIfIdle closes the connection when no request is under way on it.
func (c *conn) closeIfIdle(now time.Time) {
	idle := c.phase.CompareAndSwap(phaseIdle, phaseClosed) ||
		now.Sub(c.opened) > newConnectionGrace && c.phase.CompareAndSwap(phaseNew, phaseClosed)
	if idle {
		c.kill()
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}
