package proxy

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// again reports whether the request may go to another server after err: when it
// is certain that nothing can have been executed, or when it only reads. A server
// that takes too long has the request still; another one would only have it too.
func (x *exchange) again(err error) bool {
	if x.ctx.Err() != nil || !x.body.repeatable() {
		return false
	}
	if refusalReason(err) != "" {
		return true
	}
	var up *upstream.Error
	if !errors.As(err, &up) {
		return false
	}
	switch {
	case up.Op == upstream.OpRequest, up.Op == upstream.OpRequestBody: // not the server's fault
		return false
	case !up.Sent:
		return true
	}
	return !up.Timeout && x.reads()
}

// awaitServerTime is how long a request waits when there is no server to ask: where the
// last one is lost just before the next one is known to be back, that is a moment.
const awaitServerTime = time.Second

// awaitServer waits until there is a server that takes requests and has not failed this
// one, or has come back since. It reports whether the request may take its steps again.
func (x *exchange) awaitServer() bool {
	if x.refusal != nil || x.full != nil || !x.body.repeatable() {
		return false
	}
	if x.waitUntil.IsZero() {
		x.waitUntil = time.Now().Add(awaitServerTime)
	}
	timer := time.NewTimer(time.Until(x.waitUntil))
	defer timer.Stop()
	for time.Now().Before(x.waitUntil) {
		st := x.s.state.Load()
		failed := slices.DeleteFunc(slices.Clone(x.failed), func(f *upstream.State) bool { return !stillUp(st.up, f) })
		if len(st.up) > len(failed) {
			x.st, x.failed = st, failed
			return true
		}
		select {
		case <-st.replaced:
		case <-timer.C:
			return false
		case <-x.ctx.Done():
			return false
		}
	}
	return false
}

// stillUp reports whether up has the server as it was: it has not been down since.
func stillUp(up []*upstream.State, server *upstream.State) bool {
	return slices.ContainsFunc(up, func(s *upstream.State) bool { return s.Name == server.Name && s.Since.Equal(server.Since) })
}

// reads reports whether the request changes nothing wherever it is executed. A GET
// of exec, attach or proxy does: it is how a WebSocket asks for them.
func (x *exchange) reads() bool {
	if !readOnly(x.in.Method) || x.upgrade() {
		return false
	}
	switch x.req.Verb {
	case "get", "list", "watch":
		return x.req.Subresource == "" || x.req.Subresource == "status" || x.req.Subresource == "scale"
	}
	return false
}

func readOnly(method string) bool {
	return method == http.MethodGet || method == http.MethodHead
}

// leaveOut lets the request be decided again as if the server were not there that
// failed it with err, nor those that would fail it alike.
func (x *exchange) leaveOut(err error) {
	x.failed = append(x.failed, x.server)
	switch refusalReason(err) {
	case refusedMedia, refusedUnreadable: // a matter of the version
		for _, s := range x.st.view.Servers {
			if s != x.server && effectiveVersion(s) == effectiveVersion(x.server) {
				x.failed = append(x.failed, s)
			}
		}
	}
	var up *upstream.Error
	if errors.As(err, &up) && up.Op == upstream.OpWait {
		x.full = up
	}
	var r *refusedError
	if errors.As(err, &r) && (x.refusal == nil || x.refusal.why == refusedGone) {
		x.refusal = r // one that does not know the kind says less than one that is stopping
	}
}

// lastWord is the answer when err ends the request: a server's refusal, if nobody
// else could be asked, or that one was full.
func (x *exchange) lastWord(err error) (*front.Response, error) {
	var r *refusedError
	if errors.As(err, &r) {
		x.leaveOut(err)
	}
	if r = x.refusal; r == nil || !nobodyAsked(err) {
		if x.full != nil && nobodyAsked(err) {
			err = x.full // that there is no other server says less
		}
		return nil, err
	}
	x.server, x.answer, x.conv, x.decision, x.warnings = r.server, r.answer, r.conv, r.decision, r.warnings
	if x.conv != nil {
		return x.convertAnswer()
	}
	return x.pass(), nil
}

// nobodyAsked reports whether err means that no server has executed the request.
func nobodyAsked(err error) bool {
	var r *refusedError
	var up *upstream.Error
	var status *statusError
	switch {
	case errors.As(err, &r):
		return true
	case errors.As(err, &up):
		return !up.Sent
	}
	return errors.As(err, &status) && status.code == http.StatusServiceUnavailable
}
