package upstream

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

var errUpgradeBody = errors.New("a request to upgrade must not have a body")

// Upgrade sends req, which asks for another protocol with the lines Connection and
// Upgrade in its Header, on a connection of its own. If the server agrees (101) it
// returns the connection, on which bytes that came with the 101 are read first; the
// caller must close it, and ctx no longer matters to it. Otherwise the connection is
// nil and the response is an ordinary one, to be read and closed. A request that asks
// to upgrade has no body.
//
// The error is always an *Error.
func (s *Server) Upgrade(ctx context.Context, req *Request) (*Response, net.Conn, error) {
	if req.ContentLength != 0 {
		return nil, nil, s.fail(ctx, OpRequest, false, errUpgradeBody)
	}
	out, _, err := s.prepare(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	defer putRequest(out)
	leave := s.openStream()
	c, err := s.dial(ctx, connKind{credential: req.Credential, long: true})
	if err != nil {
		leave()
		return nil, nil, err
	}
	x := s.begin(ctx, c, req, leave)
	resp, tunnel, failed := x.upgrade(*out)
	if failed != nil {
		x.abandon()
		leave()
		return nil, nil, failed
	}
	return resp, tunnel, nil
}

func (x *exchange) upgrade(out []byte) (*Response, net.Conn, *Error) {
	h, failed := x.send(out, false)
	if failed != nil {
		return nil, nil, failed
	}
	if h.status != 101 {
		if failed := x.accept(h); failed != nil {
			return nil, nil, failed
		}
		return &x.resp, nil, nil
	}
	if !x.unhook() {
		return nil, nil, x.fail(OpReadHead, context.Cause(x.ctx))
	}
	_ = x.c.SetDeadline(time.Time{})
	x.state.Store(exchangeFinished) // its Body has ended; the connection goes on
	x.resp = Response{Status: h.status, Reason: h.reason, Header: h.header, Body: x}
	return &x.resp, &tunnel{conn: x.c, leave: sync.OnceFunc(x.leave)}, nil
}

// tunnel is a connection after a 101.
type tunnel struct {
	*conn
	leave func()
}

// Read returns what came with the 101 first.
func (t *tunnel) Read(b []byte) (int, error) { return t.br.Read(b) }

// Close counts the tunnel out.
func (t *tunnel) Close() error {
	t.leave()
	return t.conn.Close()
}

// CloseWrite tells the server that nothing more will be sent.
func (t *tunnel) CloseWrite() error {
	if half, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
