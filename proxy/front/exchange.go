package front

import (
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/valyala/fasthttp"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// exchange is one request and its answer, in one piece of memory.
type exchange struct {
	conn    *conn
	request Request
	body    body
	writer  bodyWriter
}

// handle is what fasthttp calls for each request it has read.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	c := ctx.Conn().(*conn)
	if !c.begin() {
		s.leave(ctx, c)
		return
	}
	h, refusal := parseHead(rawHeadOf(ctx))
	if refusal != nil {
		s.refuse(ctx, c, refusal)
		return
	}
	x := newExchange(ctx, c, h)
	c.start(x.body.source != nil)
	resp := s.call(&x.request)
	if resp.isTunnel() {
		s.tunnel(ctx, x, resp)
		return
	}
	s.answer(ctx, x, resp)
}

func rawHeadOf(ctx *fasthttp.RequestCtx) rawHead {
	h := &ctx.Request.Header
	return rawHead{method: h.Method(), target: h.RequestURI(), proto: h.Protocol(), lines: h.RawHeaders()}
}

func newExchange(ctx *fasthttp.RequestCtx, c *conn, h head) *exchange {
	x := &exchange{conn: c, writer: bodyWriter{conn: c}}
	x.body = body{conn: c, left: h.contentLength, ended: h.contentLength == 0}
	x.request = Request{
		Method: h.method, Target: h.target, Host: h.host, Header: h.header,
		ContentLength: h.contentLength, Body: http.NoBody,
		RemoteAddr: c.remote, PeerCertificates: c.peer,
		exchange: x,
	}
	if h.contentLength != 0 {
		x.body.source = ctx.RequestBodyStream()
		x.request.Body = &x.body
	}
	return x
}

// call runs the handler and gives an answer that can be sent, whatever happens.
func (s *Server) call(req *Request) (resp *Response) {
	defer func() {
		if p := recover(); p != nil {
			s.logPanic("the handler", p)
			resp = fault()
		}
	}()
	resp = s.cfg.Handler(req)
	err := check(resp)
	if err == nil {
		return resp
	}
	s.cfg.Log.Error("bad answer", "error", err)
	if resp != nil && resp.isTunnel() {
		return resp // its Tunnel has something to clean up
	}
	instead := fault()
	if resp != nil && resp.Done != nil {
		done := resp.Done
		instead.Done = func(int64, error) { done(0, err) }
	}
	return instead
}

// fault answers in place of a handler that failed.
func fault() *Response {
	return statusResponse(http.StatusInternalServerError, "a fault in the proxy, which is in its log")
}

// answer writes resp, ends the exchange and makes fasthttp go on to the next
// request or close.
func (s *Server) answer(ctx *fasthttp.RequestCtx, x *exchange, resp *Response) {
	c := x.conn
	closing := resp.Close || !x.body.reusable() || s.isStopping() || ctx.Request.Header.ConnectionClose()
	if resp.Stream == nil {
		x.body.close() // nobody reads it any more, and the answer must not wait
	}

	w := &x.writer
	err := w.send(resp, x.request.Method == http.MethodHead, closing)
	c.unread = !x.body.close() && err == nil
	c.end()
	s.settle(ctx, c, closing || err != nil)
	s.done(resp, w.written, err)
}

// send writes the whole answer.
func (w *bodyWriter) send(resp *Response, isHead, closing bool) error {
	f, length, hasBody := frame(resp, isHead)
	w.begin(resp, f, length, closing)
	switch {
	case !hasBody:
		w.left = 0 // whatever length a HEAD was told
	case resp.Stream != nil:
		if w.err == nil {
			w.run(resp)
		}
	default:
		_, _ = w.Write(resp.Bytes) // finish reports the error
	}
	return w.finish()
}

// settle tells fasthttp that the request is answered: what it writes now is
// dropped, and must be flushed for that before the next request of a pipeline.
// A write deadline, even none, makes it flush.
func (s *Server) settle(ctx *fasthttp.RequestCtx, c *conn, closing bool) {
	c.answered = true
	c.draining = c.unread && !closing
	ctx.Response.SkipBody = true
	if closing {
		ctx.SetConnectionClose()
	}
	_ = ctx.SetWriteDeadline(noDeadline)
}

func (s *Server) done(resp *Response, written int64, err error) {
	if resp.Done == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			s.logPanic("the Done of an answer", p)
		}
	}()
	resp.Done(written, err)
}

// refuse answers a request that is not to reach the handler, and closes: where
// the next one begins is not certain.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, c *conn, r *Refusal) {
	w := bodyWriter{conn: c}
	err := w.send(statusResponse(r.Code, r.Message), ctx.Request.Header.IsHead(), true)
	if err != nil {
		s.cfg.Log.Debug("cannot answer a refused request", "client", c.remote, "error", err)
	}
	c.unread = err == nil
	s.settle(ctx, c, true)
	s.refused(c.remote, *r)
}

// leave closes a connection without a word.
func (s *Server) leave(ctx *fasthttp.RequestCtx, c *conn) {
	c.unread = false
	s.settle(ctx, c, true)
}

// readFailed is what fasthttp calls when it cannot read a request.
func (s *Server) readFailed(ctx *fasthttp.RequestCtx, err error) {
	c := ctx.Conn().(*conn)
	r := refusalFor(err, s.cfg.MaxHeadBytes)
	if r == nil || c.phase.Load() != phaseActive {
		// The client is gone, or never said a word.
		s.leave(ctx, c)
		return
	}
	s.refuse(ctx, c, r)
}

// refusalFor says what the client is told when fasthttp could not read its
// request: never fasthttp's own words, which quote the request. Nil: the client
// is gone.
func refusalFor(err error, maxHead int) *Refusal {
	var small *fasthttp.ErrSmallBuffer
	var op *net.OpError
	switch {
	case errors.As(err, &small):
		return headTooLarge(maxHead)
	case isTimeout(err):
		return &Refusal{Reason: RefusedTimeout, Code: http.StatusRequestTimeout, Message: "the request did not come in time"}
	case errors.Is(err, fasthttp.ErrUnsupportedTransferEncoding):
		return unsupported(http.StatusNotImplemented, "the only transfer coding that is understood is chunked, once")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.As(err, &op):
		return nil
	}
	return malformed("the request is not well-formed HTTP/1.1")
}

// headerReceived lets fasthttp see every expectation as the one it knows, so that
// it asks expect before it waits for a body.
func headerReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if v := h.Peek(fasthttp.HeaderExpect); v != nil && string(v) != "100-continue" {
		h.Set(fasthttp.HeaderExpect, "100-continue")
	}
	return fasthttp.RequestConfig{}
}

// expect decides, before the body, whether fasthttp invites the client to send
// it. What is refused here never reaches handle.
func (s *Server) expect(ctx *fasthttp.RequestCtx) int {
	c := ctx.Conn().(*conn)
	if !c.begin() {
		s.leave(ctx, c)
		return fasthttp.StatusServiceUnavailable
	}
	if _, refusal := parseHead(rawHeadOf(ctx)); refusal != nil {
		s.refuse(ctx, c, refusal)
		return refusal.Code
	}
	return fasthttp.StatusContinue
}

// statusResponse is an answer of the front itself.
func statusResponse(code int, message string) *Response {
	return &Response{
		Status: code,
		Header: wire.Header{
			{Name: "Content-Type", Value: "application/json"},
			{Name: "Cache-Control", Value: "no-cache, private"},
		},
		Bytes: statusJSON(code, message),
	}
}
