package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/mixed-version-proxy/mvp/proxy/front"
)

var copyBuffers = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

// body is a request's body: streamed as long as nobody has to look into it, held
// from then on.
type body struct {
	in      *front.Request
	held    []byte
	isHeld  bool
	touched bool // some byte of the stream has been read
}

func (b *body) init(in *front.Request) { b.in = in }

// bytes reads the body whole, once. It returns a *front.BodyTooLargeError above
// limit.
func (b *body) bytes(limit int64) ([]byte, error) {
	if b.isHeld {
		return b.held, nil
	}
	b.touched = true
	raw, err := b.in.ReadBody(limit)
	if err != nil {
		return nil, err
	}
	b.held, b.isHeld = raw, true
	return raw, nil
}

// reader gives the body for one sending.
func (b *body) reader() io.Reader {
	if b.isHeld {
		return bytes.NewReader(b.held)
	}
	if b.in.ContentLength == 0 {
		return nil
	}
	return (*streamed)(b)
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

// toJSON gives a request body in JSON. YAML is what kubectl sends to
// server-side apply, and what the apiserver takes everywhere else too.
func toJSON(raw []byte, contentType string) ([]byte, error) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil && contentType != "" {
		return nil, unsupported(contentType)
	}
	switch mediaType {
	case "", "application/json", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/json-patch+json":
		return raw, nil
	case "application/yaml", "application/apply-patch+yaml":
		converted, err := yaml.YAMLToJSON(raw)
		if err != nil {
			return nil, &statusError{
				code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest, err: err,
				message: fmt.Sprintf("cannot read the body as YAML: %v", err),
			}
		}
		return converted, nil
	case mediaProtobuf:
		return protobufToJSON(raw, contentType)
	}
	return nil, unsupported(contentType)
}

// protobufToJSON decodes an object of a kind of Kubernetes' own, in the version
// that it was sent in. Custom resources have no protobuf form.
func protobufToJSON(raw []byte, contentType string) ([]byte, error) {
	object, gvk, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	switch {
	case runtime.IsNotRegisteredError(err):
		return nil, unsupported(contentType)
	case err != nil:
		return nil, &statusError{
			code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest, err: err,
			message: fmt.Sprintf("cannot read the body as %s: %v", mediaProtobuf, err),
		}
	}
	object.GetObjectKind().SetGroupVersionKind(*gvk)
	return json.Marshal(object)
}

// unsupported is the apiserver's answer to a body in a form it does not take; a
// client that tried protobuf or CBOR falls back to JSON after it.
func unsupported(contentType string) error {
	return &statusError{
		code: http.StatusUnsupportedMediaType, reason: metav1.StatusReasonUnsupportedMediaType,
		message: fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: "+
			"application/json, application/yaml, application/vnd.kubernetes.protobuf; it is %s, and this request is converted or examined by a policy", clip(contentType)),
	}
}
