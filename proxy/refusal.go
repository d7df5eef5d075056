package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// refusedError is an answer by which a server says that it has not executed a request, for
// a reason of its own, so that another one may execute it. As an error it makes the
// request take all its steps again without that server; when nobody else can answer
// it, it is what the client gets, unchanged.
type refusedError struct {
	why      string
	server   *upstream.State
	answer   *upstream.Response // its body can still be read whole
	conv     *engine.Conversion
	decision *engine.Decision
	warnings []string
}

func (r *refusedError) Error() string {
	return fmt.Sprintf("%s refused the request with %d: %s", r.server.Name, r.answer.Status, r.why)
}

// Why a server refuses a request, as metrics name it.
const (
	refusedGone        = "gone"        // it does not know the path (any more, or yet)
	refusedStopping    = "stopping"    // it shuts down
	refusedStarting    = "starting"    // it has just started
	refusedUnavailable = "unavailable" // it does not reach the server of an aggregated API
	refusedUnreadable  = "unreadable"  // it cannot decode what a newer one stored
	refusedMedia       = "media_type"  // it does not take the form of the body
)

// maxRefusal is the size in bytes up to which an answer is looked at: a Status with
// one of the messages below and a long name in its details is less.
const maxRefusal = 4 << 10

// sayings are the answers of kube-apiservers that mean a refusal. The texts are
// compared whole: an answer that a client, a webhook or an aggregated server could
// bring about by quoting one is none. Those of plain text come from net/http and the
// filters before any handler; the others are the message of a Status.
var sayings = []saying{
	{status: http.StatusNotFound, plain: true, text: "404 page not found\n", why: refusedGone},
	// So it is with a group that the server has in another version (the service error
	// of go-restful), and with nothing else that its own handlers answer: those name
	// what they did not find.
	{status: http.StatusNotFound, text: "the server could not find the requested resource", why: refusedGone},
	{status: http.StatusTooManyRequests, plain: true, text: "The apiserver is shutting down, please try again later.\n", why: refusedStopping},
	{status: http.StatusServiceUnavailable, text: "apiserver is shutting down", why: refusedStopping},
	{
		status: http.StatusServiceUnavailable, why: refusedStarting,
		text: "the request has been made before all known HTTP paths have been installed, please try again",
	},
	// From here on the server may have begun: a deletecollection that lists page by
	// page has deleted some. What only reads is all that may go elsewhere.
	{status: http.StatusTooManyRequests, prefix: "storage is (re)initializing", reads: true, why: refusedStarting},
	{status: http.StatusServiceUnavailable, text: "apiserver cacher is stopped", reads: true, why: refusedStopping},
	{status: http.StatusServiceUnavailable, plain: true, text: "service unavailable\n", reads: true, why: refusedUnavailable},
	{status: http.StatusInternalServerError, prefix: "no kind ", inside: "is registered for ", reads: true, why: refusedUnreadable},
}

type saying struct {
	status               int
	plain                bool // text is the whole body; else a Status has it
	text, prefix, inside string
	reads                bool // of requests that only read
	why                  string
}

func (s *saying) says(message string) bool {
	if s.text != "" {
		return message == s.text
	}
	return strings.HasPrefix(message, s.prefix) && strings.Contains(message, s.inside)
}

// refused finds out whether the answer is a refusal; nil: it is the client's.
func (x *exchange) refused() *refusedError {
	switch x.answer.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		if !x.server.Server.Doubtful() {
			return nil
		}
	case http.StatusNotFound, http.StatusUnsupportedMediaType, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusServiceUnavailable:
	default:
		return nil
	}
	if x.proxied() || x.in.Method == http.MethodHead {
		return nil
	}
	why := x.whyRefused()
	if why == "" {
		return nil
	}
	x.noticeRefusal(why)
	return &refusedError{why: why, server: x.server, answer: x.answer, conv: x.conv, decision: x.decision, warnings: x.warnings}
}

func (x *exchange) whyRefused() string {
	if x.answer.Status == http.StatusUnsupportedMediaType {
		return x.whyUnsupported()
	}
	if x.answer.Status == http.StatusUnauthorized || x.answer.Status == http.StatusForbidden {
		return x.whyForbidden()
	}
	contentType := x.answer.Header.Get("Content-Type")
	plain := strings.HasPrefix(contentType, "text/plain")
	if x.answer.Status == http.StatusNotFound && !x.expected() {
		return ""
	}
	body, ok := x.peekAnswer()
	if !ok {
		return ""
	}
	message := string(body)
	if !plain {
		if message, ok = statusMessage(contentType, body); !ok {
			return ""
		}
	}
	for i := range sayings {
		s := &sayings[i]
		if s.status == x.answer.Status && s.plain == plain && s.says(message) && (!s.reads || x.reads()) {
			return s.why
		}
	}
	return ""
}

// whyForbidden takes a request away from a server that may have been started a moment
// ago, and does not know yet who may do what. Nobody's request is executed before that.
func (x *exchange) whyForbidden() string {
	if _, ok := x.peekAnswer(); !ok {
		return ""
	}
	return refusedStarting
}

// whyUnsupported takes a write in a binary form to another server where there is one
// of another version: a newer one may take what this one does not. A form that none
// ever took is not carried around.
func (x *exchange) whyUnsupported() string {
	form := patchType(x.req.ContentType)
	binary := form == mediaProtobuf || strings.HasPrefix(form, "application/cbor") || strings.HasPrefix(form, "application/apply-patch+cbor")
	if !binary || !x.st.cluster.Mixed {
		return ""
	}
	if _, ok := x.peekAnswer(); !ok {
		return ""
	}
	return refusedMedia
}

// proxied reports whether the answer is that of a service, a pod or a node behind the
// server, which may say anything.
func (x *exchange) proxied() bool { return x.req.Subresource == "proxy" || x.req.Verb == "proxy" }

// expected reports whether the server was thought to serve the resource, or one that
// may be new: of a group that has CustomResourceDefinitions.
func (x *exchange) expected() bool {
	if !x.req.IsResource {
		return false
	}
	want := x.wanted()
	if x.server.Serves(want.group, want.version, want.name) {
		return true
	}
	for _, crd := range x.server.CRDs {
		if crd.Group == want.group {
			return true
		}
	}
	return false
}

// peekAnswer reads a short body without taking it from the answer. It reports false
// for one that is too long, encoded, or breaks off.
func (x *exchange) peekAnswer() (body []byte, ok bool) {
	a := x.answer
	if a.ContentLength > maxRefusal || a.Header.Has("Content-Encoding") {
		return nil, false
	}
	body, err := io.ReadAll(io.LimitReader(a.Body, maxRefusal+1))
	a.Body = &peeked{io.MultiReader(bytes.NewReader(body), a.Body), a.Body}
	return body, err == nil && len(body) <= maxRefusal
}

// peeked is a body of which the beginning has been read.
type peeked struct {
	io.Reader
	io.Closer
}

// statusMessage is the message of a Status in any form that a server writes one in.
func statusMessage(contentType string, body []byte) (string, bool) {
	var status metav1.Status
	var err error
	switch patchType(contentType) {
	case "application/json":
		err = json.Unmarshal(body, &status)
	case "application/yaml":
		err = yaml.Unmarshal(body, &status)
	case "application/cbor":
		err = cbor.Unmarshal(body, &status)
	case mediaProtobuf:
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		got, ok := object.(*metav1.Status)
		if err != nil || !ok {
			return "", false
		}
		return got.Message, true
	default:
		return "", false
	}
	return status.Message, err == nil && status.Kind == "Status"
}

// noticeRefusal has the server looked at now, not at the next turn.
func (x *exchange) noticeRefusal(why string) {
	switch why {
	case refusedGone:
		x.server.Server.NoticeGone()
	case refusedStopping, refusedStarting:
		x.server.Server.ProbeNow()
	}
}

// refusalReason is why a server refused a request, "" for another error.
func refusalReason(err error) string {
	var r *refusedError
	if errors.As(err, &r) {
		return r.why
	}
	return ""
}
