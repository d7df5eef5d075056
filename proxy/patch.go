package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// The forms of a patch, by their media types.
const (
	mergePatch          = "application/merge-patch+json"
	strategicMergePatch = "application/strategic-merge-patch+json"
	jsonPatch           = "application/json-patch+json"
	applyPatch          = "application/apply-patch+yaml"
)

func patchType(contentType string) string {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	return mediaType
}

// maxConflicts is how often a patch that had to be worked out from the object is
// worked out again because somebody else wrote the object meanwhile: as often as
// kube-apiserver's own patch handler does.
const maxConflicts = 5

// readModifyWrite executes a patch that no policy can rewrite as it stands, with
// the client's own credential: read the object, convert it, patch it in the
// client's version, convert it back, and write the difference under the
// condition that nobody else wrote meanwhile.
func (x *exchange) readModifyWrite(target string) (*front.Response, error) {
	patch, err := x.body.bytes(x.s.cfg.MaxBody)
	if err != nil {
		return nil, err
	}
	path, _, _ := strings.Cut(target, "?")
	for attempt := 1; ; attempt++ {
		object, err := x.read(path)
		if object == nil || err != nil {
			return x.answerOr(err)
		}
		diff, err := x.patchFor(object, patch)
		if err != nil {
			return nil, err
		}
		out := x.outbound(target, bytes.NewReader(diff), int64(len(diff)))
		out.Header = x.header.Clone(0)
		out.Header.Set("Content-Type", mergePatch)
		if err := x.forward(out); err != nil {
			return nil, err
		}
		if x.answer.Status != http.StatusConflict || attempt == maxConflicts {
			return x.convertAnswer()
		}
		_ = x.answer.Body.Close()
	}
}

// answerOr hands on the server's refusal to read, or err.
func (x *exchange) answerOr(err error) (*front.Response, error) {
	if err != nil {
		return nil, err
	}
	return x.convertAnswer()
}

// read gets the object that is to be patched, in the server's version. It
// returns nil when the server refused; x.answer then says why.
func (x *exchange) read(path string) ([]byte, error) {
	header := x.header.Clone(1)
	header.DelName("Content-Type")
	header.Set("Accept", "application/json")
	err := x.forward(&upstream.Request{Method: http.MethodGet, Target: path, Host: x.in.Host, Header: header})
	if err != nil || x.answer.Status != http.StatusOK {
		return nil, err
	}
	defer x.answer.Body.Close()
	object, err := io.ReadAll(io.LimitReader(x.answer.Body, x.s.cfg.MaxBody+1))
	if err != nil {
		return nil, err
	}
	if int64(len(object)) > x.s.cfg.MaxBody {
		return nil, fmt.Errorf("%s holds more than %d bytes and cannot be patched through a conversion", path, x.s.cfg.MaxBody)
	}
	return object, nil
}

// patchFor works out the merge patch on the server's object that does what patch
// does on the client's.
func (x *exchange) patchFor(object, patch []byte) ([]byte, error) {
	seen, err := x.conv.Object(nil, object, convert.ToClient, x.vars())
	if err != nil {
		return nil, err
	}
	patched, err := x.patched(seen, patch)
	if err != nil {
		return nil, err
	}
	wanted, err := x.conv.Object(nil, patched, convert.ToServer, x.vars())
	if err != nil {
		return nil, err
	}
	diff, err := convert.MergePatchDiff(object, wanted)
	if err != nil {
		return nil, err
	}
	return withResourceVersion(diff, object)
}

func (x *exchange) patched(object, patch []byte) ([]byte, error) {
	switch patchType(x.req.ContentType) {
	case mergePatch:
		return convert.MergePatchApply(object, patch)
	case jsonPatch:
		return applyJSONPatch(object, patch)
	case strategicMergePatch:
		return x.applyStrategicMergePatch(object, patch)
	}
	return nil, unsupported(x.req.ContentType)
}

// applyStrategicMergePatch merges as the Go type of the client's version says.
// Custom resources have none; kube-apiserver refuses such a patch of them, too.
func (x *exchange) applyStrategicMergePatch(object, patch []byte) ([]byte, error) {
	from := x.conv.From
	gvk := schema.GroupVersionKind{Group: from.Group, Version: from.Version, Kind: x.st.kind(from)}
	typed, err := scheme.Scheme.New(gvk)
	if err != nil {
		return nil, unsupported(x.req.ContentType)
	}
	patched, err := strategicpatch.StrategicMergePatch(object, patch, typed)
	if err != nil {
		return nil, &statusError{
			code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest, err: err,
			message: fmt.Sprintf("cannot apply the strategic merge patch to %s: %v", x.req.String(), err),
		}
	}
	return patched, nil
}

// maxJSONPatchOperations is kube-apiserver's own limit.
const maxJSONPatchOperations = 10000

func applyJSONPatch(object, patch []byte) ([]byte, error) {
	invalid := func(err error) error {
		return &statusError{
			code: http.StatusUnprocessableEntity, reason: metav1.StatusReasonInvalid, err: err,
			message: fmt.Sprintf("the server rejected our request due to an error in our request: %v", err),
		}
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, &statusError{
			code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest, err: err,
			message: fmt.Sprintf("cannot read the JSON patch: %v", err),
		}
	}
	if len(operations) > maxJSONPatchOperations {
		return nil, invalid(fmt.Errorf("the patch has %d operations, at most %d are allowed", len(operations), maxJSONPatchOperations))
	}
	patched, err := operations.Apply(object)
	if err != nil {
		return nil, invalid(err)
	}
	return patched, nil
}

// withResourceVersion adds to diff the condition that object is still what the
// server holds. A condition of the client's own stays.
func withResourceVersion(diff, object []byte) ([]byte, error) {
	var read struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(object, &read); err != nil {
		return nil, fmt.Errorf("cannot read the object's resourceVersion: %w", err)
	}
	var patch, metadata map[string]json.RawMessage
	if err := json.Unmarshal(diff, &patch); err != nil {
		return nil, fmt.Errorf("cannot read the patch that was worked out: %w", err)
	}
	if raw, ok := patch["metadata"]; ok {
		if err := json.Unmarshal(raw, &metadata); err != nil {
			return nil, fmt.Errorf("cannot read the metadata of the patch that was worked out: %w", err)
		}
	}
	if _, ok := metadata["resourceVersion"]; ok || read.Metadata.ResourceVersion == "" {
		return diff, nil
	}
	condition, err := json.Marshal(read.Metadata.ResourceVersion)
	if err != nil {
		return nil, err
	}
	if metadata == nil {
		metadata = map[string]json.RawMessage{}
	}
	metadata["resourceVersion"] = condition
	if patch["metadata"], err = json.Marshal(metadata); err != nil {
		return nil, err
	}
	return json.Marshal(patch)
}
