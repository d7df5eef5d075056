package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/mixed-version-proxy/mvp/proxy/builtin"
	"github.com/mixed-version-proxy/mvp/proxy/front"
)

var copyBuffers = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

// body is a request's body: streamed as long as nobody has to look into it, held
// from then on.
type body struct {
	in      *front.Request
	budget  *budget
	taken   int64 // of the budget
	held    []byte
	isHeld  bool
	touched bool // some byte of the stream has been read

	begun []byte // what had been read when it could not be held
	fault error  // why
}

func (b *body) init(in *front.Request, budget *budget) { b.in, b.budget = in, budget }

// holdTime is how long a client may take to send a body that is held: as long as
// kube-apiserver gives a whole request. A stream that is not held has no limit.
const holdTime = time.Minute

// bytes reads the body whole, once. It returns a *front.BodyTooLargeError above
// limit.
func (b *body) bytes(limit int64) ([]byte, error) {
	if b.isHeld {
		return b.held, nil
	}
	if b.in.ContentLength > limit {
		return nil, &front.BodyTooLargeError{Limit: limit}
	}
	if b.fault != nil {
		return nil, b.fault
	}
	b.touched = true
	raw, err := b.read(limit)
	if err != nil {
		b.begun, b.fault = raw, err
		return nil, err
	}
	b.held, b.isHeld = raw, true
	return raw, nil
}

// read is what could be read of the body, all of it without an error.
func (b *body) read(limit int64) (raw []byte, err error) {
	deadline := time.Now().Add(holdTime)
	for {
		if len(raw) == cap(raw) {
			grown, err := b.grow(raw, limit)
			if err != nil {
				return raw, err
			}
			raw = grown
		}
		n, err := b.in.Body.Read(raw[len(raw):cap(raw)])
		raw = raw[:len(raw)+n]
		switch {
		case int64(len(raw)) > limit:
			return raw, &front.BodyTooLargeError{Limit: limit}
		case errors.Is(err, io.EOF):
			return raw, nil
		case err != nil:
			return raw, err
		case time.Now().After(deadline):
			return raw, &statusError{
				code: http.StatusRequestTimeout, reason: metav1.StatusReasonTimeout,
				message: fmt.Sprintf("the body of the request took longer than %v", holdTime),
			}
		}
	}
}

// grow makes room for more of the body, as much again as has arrived, within the
// budget that all requests share.
func (b *body) grow(raw []byte, limit int64) ([]byte, error) {
	const first = 4 << 10
	size := int64(max(2*cap(raw), first))
	if n := b.in.ContentLength; n >= 0 && size > n+1 {
		size = n + 1 // one more, for the read that finds the end
	}
	size = min(size, limit+1)
	if size <= int64(cap(raw)) {
		size = int64(cap(raw)) + 1 // a body longer than it said: the next read tells
	}
	if !b.budget.take(size - b.taken) {
		return nil, &statusError{
			code: http.StatusTooManyRequests, reason: metav1.StatusReasonTooManyRequests, retryAfter: 1,
			message: "the proxy holds as many request bodies as it may; try again",
		}
	}
	b.taken = size
	grown := make([]byte, len(raw), size)
	copy(grown, raw)
	return grown, nil
}

// reserve takes n bytes more of the budget, for what is held of the answer.
func (b *body) reserve(n int64) error {
	if !b.budget.take(n) {
		return &statusError{
			code: http.StatusTooManyRequests, reason: metav1.StatusReasonTooManyRequests, retryAfter: 1,
			message: "the proxy holds as much of requests and answers as it may; try again",
		}
	}
	b.taken += n
	return nil
}

// release gives back what the body took of the budget.
func (b *body) release() {
	b.budget.give(b.taken)
	b.taken = 0
}

// budget is the memory that the held bodies of all requests may take together.
// Whoever sends them has not been authenticated by anyone yet.
type budget struct {
	limit int64 // bytes
	used  atomic.Int64
}

func (b *budget) take(n int64) bool {
	if b.used.Add(n) <= b.limit {
		return true
	}
	b.used.Add(-n)
	return false
}

func (b *budget) give(n int64) { b.used.Add(-n) }

// smallBody is up to which size a body is held, so that it can be sent again when
// a server turns out to be gone, or refuses it: nearly all objects are smaller, the
// releases of Helm and most CustomResourceDefinitions among them.
const smallBody = 256 << 10

// reader gives the body for one sending.
func (b *body) reader() (io.Reader, error) {
	if n := b.in.ContentLength; n > 0 && n <= smallBody {
		if _, err := b.bytes(smallBody); err != nil {
			return nil, err
		}
	}
	switch {
	case b.isHeld:
		return bytes.NewReader(b.held), nil
	case b.in.ContentLength == 0:
		return nil, nil
	case len(b.begun) > 0: // for a policy whose failure does not fail the request
		return io.MultiReader(bytes.NewReader(b.begun), (*streamed)(b)), nil
	}
	return (*streamed)(b), nil
}

// repeatable reports whether the body can be sent once more.
func (b *body) repeatable() bool { return b.isHeld || !b.touched }

// streamed is the body on its way through, noting that it has begun.
type streamed body

func (s *streamed) Read(p []byte) (int, error) {
	s.touched = true
	return s.in.Body.Read(p)
}

// mediaProtobuf is the form that kubectl and controllers prefer for Kubernetes'
// own kinds.
const mediaProtobuf = "application/vnd.kubernetes.protobuf"

// toJSON gives the request's body in JSON. kube-apiserver takes YAML wherever it
// takes JSON, and kubectl sends it to server-side apply.
func (x *exchange) toJSON(raw []byte) ([]byte, error) {
	switch form := patchType(x.req.ContentType); form {
	case "application/json", "":
		if form == "" && x.req.ContentType != "" || x.req.Verb == "patch" {
			return nil, x.unsupported()
		}
		return raw, nil
	case "application/yaml", mediaProtobuf, mediaCBOR:
		if x.req.Verb == "patch" {
			return nil, x.unsupported()
		}
		switch form {
		case mediaProtobuf:
			return x.protobufToJSON(raw)
		case mediaCBOR:
			return x.cborToJSON(raw)
		}
		return yamlToJSON(raw)
	case mergePatch, strategicMergePatch, jsonPatch, applyPatch, applyPatchCBOR:
		if x.req.Verb != "patch" {
			return nil, x.unsupported()
		}
		switch form {
		case applyPatch:
			return yamlToJSON(raw)
		case applyPatchCBOR:
			return x.cborToJSON(raw)
		}
		return raw, nil
	}
	return nil, x.unsupported()
}

func yamlToJSON(raw []byte) ([]byte, error) {
	converted, err := yaml.YAMLToJSON(raw)
	if err != nil {
		return nil, &statusError{
			code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest, err: err,
			message: fmt.Sprintf("cannot read the body as YAML: %v", err),
		}
	}
	return converted, nil
}

// protobufPrefix is what every message of Kubernetes in protobuf begins with.
var protobufPrefix = []byte("k8s\x00")

// protobufToJSON decodes an object of a kind of Kubernetes' own, in the version
// that it was sent in. Custom resources have no protobuf form.
func (x *exchange) protobufToJSON(raw []byte) ([]byte, error) {
	if !bytes.HasPrefix(raw, protobufPrefix) { // the decoder would try JSON and YAML
		return nil, &statusError{
			code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest,
			message: fmt.Sprintf("provided data does not appear to be a protobuf message, expected prefix %v", protobufPrefix),
		}
	}
	object, gvk, err := builtin.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	switch {
	case runtime.IsNotRegisteredError(err):
		return nil, x.unsupported()
	case err != nil:
		return nil, &statusError{
			code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest, err: err,
			message: fmt.Sprintf("cannot read the body as %s: %v", mediaProtobuf, err),
		}
	}
	object.GetObjectKind().SetGroupVersionKind(*gvk)
	return json.Marshal(object)
}

// unsupported is kube-apiserver's answer to a body in a form it does not take; a
// client that tried protobuf for a custom resource falls back to JSON after it.
func (x *exchange) unsupported() error {
	accepted := []string{"application/json", "application/yaml", mediaProtobuf, mediaCBOR}
	if x.req.Verb == "patch" {
		accepted = []string{jsonPatch, mergePatch, applyPatch, applyPatchCBOR, strategicMergePatch}
		if x.conv != nil && x.goType() == nil { // a custom resource
			accepted = accepted[:4]
		}
	}
	return &statusError{
		code: http.StatusUnsupportedMediaType, reason: metav1.StatusReasonUnsupportedMediaType,
		message: fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %s; "+
			"it is %q, and this request is converted or examined by a policy", strings.Join(accepted, ", "), clip(x.req.ContentType)),
	}
}
