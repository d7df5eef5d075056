package upstream

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

var (
	errUpgraded   = errors.New("the server switched protocols (101) though nobody asked it to")
	errBodyClosed = errors.New("the body was closed")
)

// exchange is one request and its answer on one connection. It is the Body of its
// response.
type exchange struct {
	server *Server
	ctx    context.Context
	c      *conn
	req    *Request
	leave  func()      // counts the request out
	unhook func() bool // takes the connection from ctx

	resp    Response
	payload payload
	upload  *upload // of a streamed request body; nil without one
	keep    bool    // the server takes another request after this one
	wrote   bool    // a byte was handed to the connection
	state   atomic.Int32
}

// The states of an exchange. Whoever moves it out of exchangeOpen settles what
// becomes of the connection.
const (
	exchangeOpen     int32 = iota
	exchangeFinished       // the answer was read to its end
	exchangeClosed         // Close came first
	exchangeFailed         // the connection did
)

func (s *Server) begin(ctx context.Context, c *conn, req *Request, leave func()) *exchange {
	x := &exchange{server: s, ctx: ctx, c: c, req: req, leave: leave}
	x.unhook = context.AfterFunc(ctx, c.cut)
	return x
}

// roundTrip ends with the head of the answer, or with the connection closed.
func (x *exchange) roundTrip(out []byte, streamed bool) (*Response, *Error) {
	h, failed := x.send(out, streamed)
	if failed == nil && h.status == 101 {
		failed = x.fail(OpReadHead, errUpgraded)
	}
	if failed == nil {
		failed = x.accept(h)
	}
	if failed != nil {
		x.abandon()
		return nil, failed
	}
	return &x.resp, nil
}

// abandon closes the connection of an exchange that came to no answer.
func (x *exchange) abandon() {
	x.unhook()
	_ = x.c.Close()
	x.upload.stop()
}

// send writes the request and reads the head of the answer.
func (x *exchange) send(out []byte, streamed bool) (head, *Error) {
	_ = x.c.SetDeadline(time.Now().Add(x.server.cfg.HeaderTimeout))
	n, writeErr := x.c.Write(out)
	x.wrote = n > 0
	if writeErr == nil && streamed {
		x.upload = startUpload(x.c, x.req, x.server.cfg.HeaderTimeout)
	}
	if x.req.Long { // a followed log has no head before its first line
		_ = x.c.SetReadDeadline(time.Time{})
	}
	// Also after a failed write: the server may have answered and closed.
	h, err := readFinalHead(x.c.br, x.server.cfg.MaxHeadBytes)
	switch {
	case err != nil && writeErr != nil:
		return head{}, x.fail(OpWrite, writeErr)
	case err != nil:
		return head{}, x.fail(OpReadHead, err)
	}
	x.keep = writeErr == nil
	if x.upload == nil {
		_ = x.c.SetDeadline(time.Time{})
	} else {
		x.upload.answered()
	}
	return h, nil
}

// accept makes the response of h.
func (x *exchange) accept(h head) *Error {
	kind, length, err := h.frame(x.req.Method)
	if err != nil {
		return x.fail(OpReadHead, err)
	}
	x.keep = x.keep && h.minor == '1' && kind != framingClose && !h.header.HasToken("Connection", "close")
	x.payload = payload{r: x.c.br, framing: kind, left: max(length, 0)}
	x.resp = Response{Status: h.status, Reason: h.reason, Header: h.header, ContentLength: length, Body: x}
	if kind == framingNone {
		x.settle(exchangeFinished)
	}
	return nil
}

// fail makes the error of an exchange that broke off.
func (x *exchange) fail(op string, err error) *Error {
	if x.ctx.Err() == nil {
		op, err = x.upload.explain(op, err)
		if op != OpRequestBody && !isTimeout(err) {
			x.server.broke()
		}
	}
	return x.server.fail(x.ctx, op, x.wrote, err)
}

// mayRepeat reports whether the request may be sent again on a new connection,
// because an old one failed before it took any of it or before an answer began.
func (x *exchange) mayRepeat(failed *Error, streamed bool) bool {
	if !x.c.reused || x.c.received || streamed || failed.Timeout || x.ctx.Err() != nil {
		return false
	}
	return !x.wrote || x.req.Method == "GET" || x.req.Method == "HEAD"
}

// settle moves the exchange out of exchangeOpen, gives up the connection, and counts
// the request out. It reports whether it was the first to do so.
func (x *exchange) settle(state int32) bool {
	if !x.state.CompareAndSwap(exchangeOpen, state) {
		return false
	}
	mine := x.unhook() // else ctx is done and the connection closed
	if mine && state == exchangeFinished && x.keep && x.upload.complete() {
		x.server.idle.put(x.c)
	} else {
		_ = x.c.Close()
	}
	x.leave()
	return true
}

// Read implements Response.Body.
func (x *exchange) Read(b []byte) (int, error) {
	if x.state.Load() != exchangeOpen {
		return 0, x.ended()
	}
	n, err := x.payload.Read(b)
	if err == nil {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		x.settle(exchangeFinished)
	} else if x.settle(exchangeFailed) {
		return n, x.fail(OpReadBody, err)
	}
	return n, x.ended()
}

// ended is the error of reads after the exchange was settled.
func (x *exchange) ended() error {
	if x.state.Load() == exchangeFinished {
		return io.EOF
	}
	return x.server.fail(x.ctx, OpReadBody, true, errBodyClosed)
}

// Close implements Response.Body.
func (x *exchange) Close() error {
	x.settle(exchangeClosed)
	x.upload.stop()
	return nil
}
