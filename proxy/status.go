package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/engine/source"
	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// statusPolicyFailed is the reason of an answer that a policy's own failure
// made: a mistake in the policy, not in the request.
const statusPolicyFailed metav1.StatusReason = "PolicyFailed"

// statusClientGone is what the log and the metrics say of a client that left
// before it was answered. Nobody receives it.
const statusClientGone = 499

// statusError is an answer that MVP makes itself, as a metav1.Status.
type statusError struct {
	code       int
	reason     metav1.StatusReason
	message    string
	retryAfter int // seconds; 0: no Retry-After line
	causes     []metav1.StatusCause
	err        error // what it comes from, for the log
}

func (e *statusError) Error() string { return e.message }
func (e *statusError) Unwrap() error { return e.err }

// deniedError says which policy refused a request. What the policy says may show
// values of the object, so that is the client's only.
type deniedError struct{ policy string }

func (e *deniedError) Error() string { return fmt.Sprintf("denied by policy %q", e.policy) }

// unavailable is the answer when a request could be served, but not now.
func unavailable(format string, args ...any) *statusError {
	return &statusError{
		code:       http.StatusServiceUnavailable,
		reason:     metav1.StatusReasonServiceUnavailable,
		message:    fmt.Sprintf(format, args...),
		retryAfter: 1,
	}
}

// toStatus says what a client is told of err. It is the one place that knows.
func toStatus(err error) *statusError {
	var status *statusError
	if errors.As(err, &status) {
		return status
	}
	var target *engine.BadTargetError
	if errors.As(err, &target) {
		return &statusError{code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest, message: err.Error(), err: err}
	}
	var tooLarge *front.BodyTooLargeError
	if errors.As(err, &tooLarge) {
		return &statusError{
			code: http.StatusRequestEntityTooLarge, reason: metav1.StatusReasonRequestEntityTooLarge,
			message: err.Error(), err: err,
		}
	}
	var unread *front.BodyError
	if errors.As(err, &unread) {
		reason := metav1.StatusReasonBadRequest
		if unread.Code == http.StatusRequestTimeout {
			reason = metav1.StatusReasonTimeout
		}
		return &statusError{code: unread.Code, reason: reason, message: unread.Error(), err: err}
	}
	var badBody *engine.BodyError
	if errors.As(err, &badBody) {
		return &statusError{code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest, message: badBody.Error(), err: err}
	}
	var eval *engine.EvalError
	if errors.As(err, &eval) {
		told := *eval
		told.Pos = forClients(told.Pos)
		return &statusError{code: http.StatusInternalServerError, reason: statusPolicyFailed, message: told.Error(), err: err}
	}
	var conversion *convert.Error
	if errors.As(err, &conversion) {
		return conversionStatus(conversion)
	}
	var up *upstream.Error
	if errors.As(err, &up) {
		return upstreamStatus(up)
	}
	if errors.Is(err, context.Canceled) {
		return &statusError{code: statusClientGone, message: "the client left before it was answered", err: err}
	}
	return &statusError{
		code: http.StatusInternalServerError, reason: metav1.StatusReasonInternalError,
		message: "mvp: " + err.Error(), err: err,
	}
}

// forClients leaves out of a position where on the proxy's machine the file is.
func forClients(pos source.Pos) source.Pos {
	pos.File = filepath.Base(pos.File)
	return pos
}

func conversionStatus(failed *convert.Error) *statusError {
	told := *failed
	told.Pos = forClients(told.Pos)
	e := &told
	if !e.Invalid {
		return &statusError{code: http.StatusInternalServerError, reason: statusPolicyFailed, message: e.Error(), err: e}
	}
	if e.Path == "" {
		return &statusError{code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest, message: e.Error(), err: e}
	}
	return &statusError{
		code: http.StatusUnprocessableEntity, reason: metav1.StatusReasonInvalid, message: e.Error(), err: e,
		causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: e.Path, Message: e.Msg}},
	}
}

// upstreamStatus answers a failed round trip. A request that no server can have
// executed may be sent again by the client; one that may have been must not be,
// so it carries no Retry-After.
func upstreamStatus(e *upstream.Error) *statusError {
	switch {
	case errors.Is(e.Err, context.Canceled):
		return &statusError{code: statusClientGone, message: "the client left before it was answered", err: e}
	case e.Op == upstream.OpWait:
		status := unavailable("a kube-apiserver that could answer has as many requests under way as MVP sends it at once, try again: %v", e)
		status.err = e
		return status
	case !e.Sent:
		status := unavailable("no kube-apiserver could be reached: %v", e)
		status.err = e
		return status
	case e.Timeout:
		return &statusError{
			code: http.StatusGatewayTimeout, reason: metav1.StatusReasonTimeout, err: e,
			message: fmt.Sprintf("the kube-apiserver did not answer in time, the request may have been executed: %v", e),
		}
	}
	return &statusError{
		code: http.StatusBadGateway, reason: metav1.StatusReasonInternalError, err: e,
		message: fmt.Sprintf("the kube-apiserver broke off, the request may have been executed: %v", e),
	}
}

// fail answers err. It is the only function that makes an error answer.
func (x *exchange) fail(err error) *front.Response {
	status := x.forWatch(toStatus(err))
	x.err = err
	header := wire.Header{
		{Name: "Content-Type", Value: "application/json"},
		{Name: "Cache-Control", Value: "no-cache, private"},
	}
	if status.retryAfter > 0 {
		header.Add("Retry-After", strconv.Itoa(status.retryAfter))
	}
	return &front.Response{Status: status.code, Header: header, Bytes: append(x.statusBody(status), '\n'), NoBody: x.in.Method == http.MethodHead}
}

// forWatch makes a watch that cannot be served now one that is to come back, as
// kube-apiserver does while its watch cache starts: after a 429 an informer (client-go's
// Reflector) asks again for the same watch, after a 503 it lists everything anew.
func (x *exchange) forWatch(status *statusError) *statusError {
	if !x.endless() || status.code != http.StatusServiceUnavailable {
		return status
	}
	later := *status
	later.code, later.reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
	return &later
}

// statusBody writes a Status as JSON.
func (x *exchange) statusBody(status *statusError) []byte {
	details, message := x.details(status), status.message
	var conversion *convert.Error
	if details != nil && status.reason == metav1.StatusReasonInvalid && errors.As(status.err, &conversion) {
		kind := schema.GroupKind{Group: details.Group, Kind: details.Kind}
		message = fmt.Sprintf("%v %q is invalid: %s", kind, details.Name, message) // as kube-apiserver says it
	}
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Message:  message,
		Reason:   status.reason,
		Details:  details,
		Code:     int32(status.code),
	})
	if err != nil { // a Status has only strings and numbers
		panic(err)
	}
	return body
}

func (x *exchange) details(status *statusError) *metav1.StatusDetails {
	var strict *strictError
	if errors.As(status.err, &strict) {
		return strict.details(status.causes)
	}
	if !x.req.IsResource && status.retryAfter == 0 && len(status.causes) == 0 {
		return nil
	}
	kind := x.req.Resource
	if status.reason == metav1.StatusReasonInvalid && x.conv != nil { // as kube-apiserver names what is invalid
		kind = cmp.Or(x.st.kind(x.conv.From), kind)
	}
	return &metav1.StatusDetails{
		Name:              x.req.Name,
		Group:             x.req.Group,
		Kind:              kind,
		Causes:            status.causes,
		RetryAfterSeconds: int32(status.retryAfter),
	}
}
