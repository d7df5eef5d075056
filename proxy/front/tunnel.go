package front

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// errTunnelBody is of an upgrade whose body was not read: where the tunnel's
// bytes begin is then not known.
var errTunnelBody = errors.New("cannot open the tunnel: the request body was not read to its end")

// tunnel gives the connection up to a 101. fasthttp hands it over on a goroutine
// of its own; it writes nothing, since it would skip the handover when either
// side said Connection: close.
func (s *Server) tunnel(ctx *fasthttp.RequestCtx, x *exchange, resp *Response) {
	c := x.conn
	err := check(resp)
	if !x.body.close() && err == nil {
		err = errTunnelBody
	}
	c.end()
	c.tunnelled = true
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(hijacked net.Conn) {
		defer s.release(c)
		t := &tunnelConn{Conn: c.Conn, in: hijacked}
		if err == nil {
			err = c.send(appendTunnelHead(nil, resp))
			noDeadlines(c)
		}
		s.runTunnel(t, resp, err)
	})
}

// noDeadlines lets a tunnel be as silent, and as slow, as it likes.
func noDeadlines(c *conn) {
	_ = c.Conn.SetDeadline(noDeadline)
	patient(c.tcp)
}

// runTunnel calls the tunnel, with a dead connection after an error, because the
// tunnel has the server's side to clean up.
func (s *Server) runTunnel(t *tunnelConn, resp *Response, err error) {
	if err != nil {
		_ = t.Close()
	}
	func() {
		defer func() {
			if p := recover(); p != nil {
				s.logPanic("a tunnel", p)
				err = errors.New("the tunnel panicked")
			}
		}()
		resp.Tunnel(t)
	}()
	t.end()
	s.done(resp, t.written.Load(), err)
}

// tunnelConn is the client's connection inside a tunnel. Reads go through
// fasthttp, which holds the bytes that came with the request, and takes its
// reader back when the tunnel returns: end keeps a forgotten reader away from it.
type tunnelConn struct {
	net.Conn
	in      io.Reader
	written atomic.Int64

	mu    sync.Mutex // held during a Read
	ended bool
}

// Read implements net.Conn.
func (t *tunnelConn) Read(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return 0, net.ErrClosed
	}
	return t.in.Read(p)
}

// Write implements net.Conn.
func (t *tunnelConn) Write(p []byte) (int, error) {
	n, err := t.Conn.Write(p)
	t.written.Add(int64(n))
	return n, err
}

// CloseWrite tells the client that nothing more will be sent, and still reads
// what it sends: a connection that is closed with bytes unread is reset, and may
// take with it what was sent last.
func (t *tunnelConn) CloseWrite() error {
	if half, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return t.Close()
}

// end closes the connection and waits for a pending Read to notice.
func (t *tunnelConn) end() {
	_ = t.Close()
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
}
