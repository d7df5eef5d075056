package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// goneDelay is how long a short request may take before its connection is
// watched for the client's leaving: most are answered sooner and pay nothing.
const goneDelay = 100 * time.Millisecond

// exchange is one request on its way: what is known of it so far. Only the
// goroutine that serves the request touches it.
type exchange struct {
	s     *Server
	st    *state // of this request, from its first step to its last
	in    *front.Request
	start time.Time

	ctx    context.Context // done when the client leaves
	cancel context.CancelFunc

	req    engine.Request
	header wire.Header // the lines that go upstream
	body   body

	decision *engine.Decision
	conv     *engine.Conversion // nil: the request is not converted

	server   *upstream.State   // that answers
	failed   []*upstream.State // that could not be reached for this request
	answer   *upstream.Response
	warnings []string

	ending ender // of a stream, when the proxy shuts down

	err error // what the client was answered, if it was an error of ours
}

// Handle answers one request. It is a front.Handler.
func (s *Server) Handle(in *front.Request) *front.Response {
	x := s.begin(in)
	resp := x.respond()
	resp.Done = func(written int64, err error) { x.end(resp.Status, written, err) }
	return resp
}

func (s *Server) begin(in *front.Request) *exchange {
	x := &exchange{s: s, st: s.state.Load(), in: in, start: time.Now()}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	x.body.init(in)
	s.metrics.inflight.Inc()
	return x
}

// respond runs the exchange and makes its error, or its panic, an answer.
func (x *exchange) respond() (resp *front.Response) {
	defer func() {
		if p := recover(); p != nil {
			x.s.cfg.Log.Error("a request panicked", "panic", p, "stack", string(debug.Stack()))
			resp = x.fail(fmt.Errorf("a fault in the proxy (%T), which is in its log", p))
		}
	}()
	resp, err := x.exchange()
	if err != nil {
		return x.fail(err)
	}
	return resp
}

// maxAttempts bounds on how many servers a request is tried.
const maxAttempts = 3

// exchange takes the request through its steps. Every step returns an error;
// only respond answers one.
//
// A server that could not be reached is left out, and the request takes all its
// steps again as if that server were not there: it goes to another one, or, where
// that was the last one of its version, is converted.
func (x *exchange) exchange() (*front.Response, error) {
	if err := x.parse(); err != nil {
		return nil, err
	}
	x.guard()
	if x.s.draining.Load() && x.req.DecodedPath == "/readyz" {
		return nil, unavailable("the proxy is shutting down")
	}
	for attempt := 1; ; attempt++ {
		resp, err := x.attempt()
		if err == nil || attempt == maxAttempts || !x.again(err) {
			return resp, err
		}
		x.failed = append(x.failed, x.server)
		x.s.metrics.retries.Inc()
	}
}

// attempt is the way of a request from its head to the beginning of its answer.
func (x *exchange) attempt() (*front.Response, error) {
	if err := x.identify(); err != nil {
		return nil, err
	}
	if err := x.decide(); err != nil {
		return nil, err
	}
	if resp, err := x.discover(); resp != nil || err != nil {
		return resp, err
	}
	if err := x.choose(); err != nil {
		return nil, err
	}
	if x.upgrade() {
		return x.tunnel()
	}
	if x.conv != nil {
		return x.converted()
	}
	if err := x.forward(x.outbound(x.in.Target, x.body.reader(), x.in.ContentLength)); err != nil {
		return nil, err
	}
	return x.pass(), nil
}

// again reports whether the request may go to another server after err: when it
// is certain that nothing can have been executed, or when it only reads.
func (x *exchange) again(err error) bool {
	var up *upstream.Error
	if x.ctx.Err() != nil || !errors.As(err, &up) || !x.body.repeatable() {
		return false
	}
	return !up.Sent || readOnly(x.in.Method)
}

// parse says what the request asks for.
func (x *exchange) parse() error {
	req, err := engine.ParseRequest(x.in.Method, x.in.Target)
	if err != nil {
		return err
	}
	req.UserAgent = x.in.Header.Get("User-Agent")
	req.ContentType = x.in.Header.Get("Content-Type")
	x.req = req
	return nil
}

// guard cancels the request when its client leaves: at once for what may run
// for ever, later for what is usually done by then.
func (x *exchange) guard() {
	after := goneDelay
	if x.long() {
		after = 0
		x.s.streams.add(x)
	}
	x.in.OnGone(x.cancel, after)
}

// long reports whether the request may run without an end of its own: a watch, a
// followed log, a proxied service.
func (x *exchange) long() bool {
	switch {
	case x.req.Verb == "watch", x.upgrade():
		return true
	case x.req.Subresource == "log", x.req.Subresource == "proxy":
		return true
	}
	return x.req.Verb == "proxy"
}

// decide asks the policies.
func (x *exchange) decide() error {
	decision, err := x.st.set.Decide(&engine.Input{
		Request: &x.req,
		Object:  x.object,
		Cluster: x.st.cluster,
		Served:  x.served,
	})
	if err != nil {
		return err
	}
	x.decision = decision
	x.warnings = append(x.warnings[:0], decision.Warnings...)
	x.conv = decision.Conversion
	if d := decision.Denied; d != nil {
		return &statusError{
			code: http.StatusForbidden, reason: metav1.StatusReasonForbidden,
			message: fmt.Sprintf("%s: denied by policy %q: %s", x.req.String(), d.Policy, d.Message),
		}
	}
	return nil
}

// outbound is the request as it goes to a server.
func (x *exchange) outbound(target string, body io.Reader, length int64) *upstream.Request {
	return &upstream.Request{
		Method:        x.in.Method,
		Target:        target,
		Host:          x.in.Host,
		Header:        x.header,
		Body:          body,
		ContentLength: length,
		Long:          x.long(),
	}
}

// forward sends out to the server that was chosen.
func (x *exchange) forward(out *upstream.Request) error {
	answer, err := x.server.Server.RoundTrip(x.ctx, out)
	if err != nil {
		return err
	}
	x.answer = answer
	return nil
}

func readOnly(method string) bool {
	return method == http.MethodGet || method == http.MethodHead
}

// pass hands the server's answer on as it came.
func (x *exchange) pass() *front.Response {
	resp := &front.Response{
		Status: x.answer.Status,
		Header: x.answerHeader(),
		Length: x.answer.ContentLength,
	}
	if x.in.Method == http.MethodHead || x.answer.Status == http.StatusNoContent || x.answer.Status == http.StatusNotModified {
		resp.NoBody = true
		return resp
	}
	resp.Stream = x.copyBody
	return resp
}

// answerHeader is the server's lines as they go to the client: without those of
// its connection, with our warnings. The front writes the framing.
func (x *exchange) answerHeader() wire.Header {
	h := x.answer.Header.Clone(len(x.warnings))
	length := h.Get("Content-Length")
	h.EndToEnd(nil)
	h.DelName("Content-Length")
	if length != "" && (x.in.Method == http.MethodHead || x.answer.Status == http.StatusNotModified) {
		h.Add("Content-Length", length) // of the body that a GET would have had
	}
	for _, w := range x.warnings {
		h.Add("Warning", warning(w))
	}
	return h
}

// copyBuffer is how much of a body is read at a time: what one TLS record and a
// socket buffer take well.
const copyBuffer = 32 << 10

// copyBody streams the server's body: what one read gives goes out at once.
func (x *exchange) copyBody(w io.Writer) error {
	buf := copyBuffers.Get().(*[copyBuffer]byte)
	defer copyBuffers.Put(buf)
	events := newFrames(x.answer.Header.Get("Content-Type"))
	for {
		n, err := x.answer.Body.Read(buf[:])
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
			events.pass(buf[:n])
			if x.req.Verb == "watch" && x.ending.at(events.whole()) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) || (err != nil && x.ending.ended()) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read the answer of %s: %w", x.server.Name, err)
		}
	}
}

// end is called when the answer has been written, or could not be.
func (x *exchange) end(status int, written int64, err error) {
	if x.answer != nil && x.answer.Body != nil {
		// Nothing to tell anyone: a body that was not read to its end takes its
		// connection with it.
		_ = x.answer.Body.Close()
	}
	x.cancel()
	x.s.streams.remove(x)
	if x.err == nil {
		x.err = err
	}
	x.s.metrics.inflight.Dec()
	x.s.metrics.observe(x, status)
	x.log(status, written)
}

// object is the request's body in JSON, for policies that look into it.
func (x *exchange) object() ([]byte, error) {
	raw, err := x.body.bytes(x.s.cfg.MaxBody)
	if err != nil || len(bytes.TrimSpace(raw)) == 0 {
		return nil, err
	}
	return toJSON(raw, x.req.ContentType)
}
