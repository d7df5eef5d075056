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

	endTrip func() // of the last round trip; may be nil

	req    engine.Request
	who    identity
	header wire.Header // the lines that go upstream
	body   body

	decision *engine.Decision
	judged   *tally             // of the policies that decided; the state may be a newer one
	conv     *engine.Conversion // nil: the request is not converted
	patch    []byte             // of a request that is: the body, in JSON, without what is dropped
	passed   engine.PassedOver  // policies that could not convert the request
	sent     bool               // something of this attempt has gone to a server
	audit    audit              // what policies in audit mode would do beside deciding

	server    *upstream.State   // that answers
	waitUntil time.Time         // for a server, once there was none
	failed    []*upstream.State // that could not be reached for this request, or refused it
	refusal   *refusedError     // the best of theirs; nil: none refused it
	full      *upstream.Error   // one had no connection left for it; nil: none
	answer    *upstream.Response
	held      heldAnswer // the beginning of answer's body
	warnings  []string
	skew      string // one more warning, of a write that succeeds; "" for none

	ending ender  // of a stream, when the proxy shuts down
	watch  *watch // nil: the request is none, or passes as it comes

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
	x.body.init(in, &s.bodies)
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
	switch {
	case err == nil:
		return resp
	case x.ending.ended():
		return x.fail(errEnded)
	}
	return x.fail(err)
}

// errDraining is what /readyz says while the proxy leaves, errEnded what a stream
// is answered that was told to end before it had begun.
var (
	errDraining = unavailable("the proxy is shutting down")
	errEnded    = unavailable("the proxy or its server is shutting down; ask again")
)

// maxAttempts bounds on how many servers a request is tried.
const maxAttempts = 3

// exchange takes the request through its steps. Every step returns an error;
// only respond answers one.
//
// A server that could not be reached or refused the request is left out, and the
// request takes all its steps again as if that server were not there: it goes to
// another one, or, where that was the last one of its version, is converted.
func (x *exchange) exchange() (*front.Response, error) {
	if err := x.parse(); err != nil {
		return nil, err
	}
	x.st.tally.ask(x)
	x.guard()
	if resp, err := x.ring(); resp != nil || err != nil {
		return resp, err
	}
	if x.s.draining.Load() && x.req.DecodedPath == "/readyz" {
		return nil, errDraining
	}
	if err := x.authenticate(); err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		resp, err := x.attempt()
		if err == nil {
			return resp, nil
		}
		if x.passOver(err) {
			attempt--
			continue
		}
		if errors.Is(err, errNoServer) && x.awaitServer() {
			attempt = 0
			continue
		}
		if attempt == maxAttempts || !x.again(err) {
			return x.lastWord(err)
		}
		x.s.metrics.retried(x, err)
		x.leaveOut(err)
	}
}

// attempt is the way of a request from its head to the beginning of its answer.
func (x *exchange) attempt() (*front.Response, error) {
	x.sent = false
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
	body, err := x.body.reader()
	if err != nil {
		return nil, err
	}
	if err := x.forward(x.outbound(x.in.Target, body, x.in.ContentLength)); err != nil {
		return nil, err
	}
	return x.passHeld()
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
	}
	if x.endless() {
		x.watch = newWatch(x)
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

// endless reports whether the request is a watch, which a shutdown may end: its
// client takes the end of the answer for that, and watches again. The client of a
// followed log would take it for the end of the log; like a download through a
// proxied service it may finish, or is broken off.
func (x *exchange) endless() bool { return x.req.Verb == "watch" }

// decide asks the policies.
func (x *exchange) decide() error {
	decision, err := x.st.set.Decide(&engine.Input{
		Request: &x.req,
		User:    x.user,
		Object:  x.object,
		Caller:  x.callerID,
		Cluster: x.st.cluster,
		Served:  x.served,
		Known:   x.known,
		Without: x.passed.Policies(),
	})
	if err != nil {
		return err
	}
	x.decision, x.judged = decision, x.st.tally
	x.warnings = append(x.warnings[:0], decision.Warnings...)
	x.conv = decision.Conversion
	if d := decision.Denied; d != nil {
		return &statusError{
			code: http.StatusForbidden, reason: metav1.StatusReasonForbidden, err: &deniedError{d.Policy},
			message: fmt.Sprintf("%s: denied by policy %q: %s", x.req.String(), d.Policy, d.Message),
		}
	}
	return x.servedWithout()
}

// outbound is the request as it goes to a server.
func (x *exchange) outbound(target string, body io.Reader, length int64) *upstream.Request {
	out := &upstream.Request{
		Method:        x.in.Method,
		Target:        target,
		Host:          x.in.Host,
		Header:        x.header,
		Body:          body,
		ContentLength: length,
		Long:          x.long(),
		Credential:    x.who.credential,
	}
	x.watch.asks(out)
	return out
}

// forward sends out to the server that was chosen. A request that only reads is
// taken away from a server that stops answering its health checks, and its answer
// is broken off when the server does not recover.
func (x *exchange) forward(out *upstream.Request) error {
	out.Credential = x.who.credential // whoever made it: all requests of an exchange are one client's
	if x.endTrip != nil {             // of an earlier round trip, whose answer is done with
		x.endTrip()
		x.endTrip = nil
	}
	ctx, life := x.ctx, x.st.alive[x.server.Name]
	if life.healthy == nil || !x.reads() {
		return x.trip(ctx, out)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(life.healthy, func() { cancel(errServerDown) })
	err := x.trip(ctx, out)
	stop()
	if err == nil && !x.endless() {
		stop = context.AfterFunc(life.answers, func() { cancel(errServerDown) })
	}
	x.endTrip = func() { stop(); cancel(nil) } // the body is read until the end of the exchange
	return err
}

func (x *exchange) trip(ctx context.Context, out *upstream.Request) error {
	start := time.Now()
	x.sent = true
	answer, err := x.server.Server.RoundTrip(ctx, out)
	if err != nil {
		return err
	}
	x.answer = answer
	x.st.tally.answered(x, start)
	if r := x.refused(); r != nil {
		return r
	}
	if x.endless() {
		x.place()
	}
	return nil
}

// pass hands the server's answer on as it came.
func (x *exchange) pass() *front.Response {
	resp := &front.Response{
		Status: x.answer.Status, Reason: x.answer.Reason, HasReason: true,
		Header: x.answerHeader(),
		Length: x.answer.ContentLength,
	}
	if x.in.Method == http.MethodHead || x.answer.Status == http.StatusNoContent || x.answer.Status == http.StatusNotModified {
		resp.NoBody = true
		return resp
	}
	resp.Stream = x.copyBody
	if x.watch.follows(x.answer) {
		resp.Stream = x.watch.copy
	}
	return resp
}

// answerHeader is the server's lines as they go to the client: without those of
// its connection, with our warnings. The front writes the framing.
func (x *exchange) answerHeader() wire.Header {
	h := x.answer.Header.Clone(len(x.warnings))
	h.EndToEnd(nil)
	if x.conv != nil || x.answer.Status == http.StatusSwitchingProtocols {
		h.DelName("Content-Length") // of another body, or of none; else the front keeps its place
	}
	for _, w := range x.warnings {
		h.Add("Warning", warning(w))
	}
	if x.skew != "" && x.answer.Status >= 200 && x.answer.Status < 300 {
		h.Add("Warning", warning(x.skew))
	}
	return h
}

// copyBuffer is how much of a body is read at a time: what one TLS record and a
// socket buffer take well.
const copyBuffer = 32 << 10

// copyBody streams the server's body: what one read gives goes out at once.
func (x *exchange) copyBody(w io.Writer) error { return x.copyFrom(w, x.answer.Body) }

func (x *exchange) copyFrom(w io.Writer, body io.Reader) error {
	buf := copyBuffers.Get().(*[copyBuffer]byte)
	defer copyBuffers.Put(buf)
	// An encoded event's end cannot be seen.
	events, plain := newFrames(x.answer.Header.Get("Content-Type")), !x.answer.Header.Has("Content-Encoding")
	for {
		n, err := body.Read(buf[:])
		if n > 0 {
			events.pass(buf[:n])
			end := plain && x.req.Verb == "watch" && x.ending.at(events.whole())
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
			if end {
				return nil
			}
		}
		if errors.Is(err, io.EOF) || err != nil && x.ending.ended() {
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
	if x.endTrip != nil {
		x.endTrip()
	}
	x.auditBodies()
	x.body.release()
	x.held.release()
	x.s.streams.remove(x)
	if x.err == nil {
		x.err = err
	}
	x.s.metrics.inflight.Dec()
	x.s.metrics.observe(x, status)
	x.log(status, written)
}

// object is the request's body in JSON, for policies that look into it.
//
// What goes to a proxied service is no object. A form that cannot be read is
// refused rather than passed over, or it would be the way round a policy.
func (x *exchange) object() ([]byte, error) {
	if !x.req.IsResource || x.req.Subresource == "proxy" || x.upgrade() {
		return nil, nil
	}
	raw, err := x.body.bytes(x.s.cfg.MaxBody)
	if err != nil || len(bytes.TrimSpace(raw)) == 0 {
		return nil, err
	}
	return x.toJSON(raw)
}
