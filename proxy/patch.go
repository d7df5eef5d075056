package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/proxy/builtin"
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
	if patchType(x.req.ContentType) == strategicMergePatch && x.goType() == nil {
		return nil, x.unsupported() // before anything is read
	}
	path, _, _ := strings.Cut(target, "?")
	unlock, err := x.s.patches.lock(x.ctx, path)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for attempt := 1; ; attempt++ {
		object, err := x.read(path)
		if object == nil || err != nil {
			return x.answerOr(err)
		}
		diff, conditional, err := x.patchFor(object, x.patch)
		if err != nil {
			return nil, err
		}
		out := x.outbound(target, bytes.NewReader(diff), int64(len(diff)))
		out.Header = x.header.Clone(0)
		out.Header.Set("Content-Type", mergePatch)
		if err := x.forward(out); err != nil {
			return nil, err
		}
		if x.answer.Status != http.StatusConflict || conditional || attempt == maxConflicts {
			return x.convertAnswer()
		}
		_ = x.answer.Body.Close()
	}
}

// keyedLocks lets one goroutine at a time work on what has one name, so that
// patches of one object that come through this proxy together follow each other
// instead of meeting in conflicts. The zero keyedLocks is ready.
type keyedLocks struct {
	mu    sync.Mutex
	locks map[string]*keyedLock
}

type keyedLock struct {
	free  chan struct{} // holds a token while nobody has the lock
	users int           // that have it or wait for it
}

// lock waits until nobody else has the name's lock. Its error is that of ctx.
func (k *keyedLocks) lock(ctx context.Context, name string) (unlock func(), err error) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]*keyedLock{}
	}
	l := k.locks[name]
	if l == nil {
		l = &keyedLock{free: make(chan struct{}, 1)}
		l.free <- struct{}{}
		k.locks[name] = l
	}
	l.users++
	k.mu.Unlock()

	leave := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(k.locks, name)
		}
	}
	select {
	case <-l.free:
		return func() { l.free <- struct{}{}; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
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
	if err := x.inflate(); err != nil {
		return nil, err
	}
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
// does on the client's, and reports whether the client set a condition itself.
//
// The difference is taken between what the client's object would be on the server
// before and after the patch, not from the server's own: what the client's version
// cannot hold is in neither, and so stays.
func (x *exchange) patchFor(object, patch []byte) (diff []byte, conditional bool, err error) {
	seen, err := x.conv.Object(nil, object, convert.ToClient, x.vars())
	if err != nil {
		return nil, false, err
	}
	patched, err := x.patched(seen, patch)
	if err != nil {
		return nil, false, err
	}
	before, err := x.conv.Object(nil, seen, convert.ToServer, x.vars())
	if err != nil {
		return nil, false, err
	}
	after, err := x.conv.Object(nil, patched, convert.ToServer, x.vars())
	if err != nil {
		return nil, false, err
	}
	if err := sameType(seen, patched); err != nil {
		return nil, false, err
	}
	if x.conv.Preserves() && (x.conv.Hides() || patchType(x.req.ContentType) != mergePatch) { // which says itself what goes
		if after, err = x.conv.Keep(after, object, x.vars()); err != nil {
			return nil, false, err
		}
	}
	if diff, err = convert.MergePatchDiff(before, after); err != nil {
		return nil, false, err
	}
	return withResourceVersion(diff, object)
}

// sameType refuses a patch that makes another kind or version of the object: what it means
// in the server's version nobody knows.
func sameType(object, patched []byte) error {
	var before, after metav1.TypeMeta
	if json.Unmarshal(object, &before) == nil && json.Unmarshal(patched, &after) == nil && before == after {
		return nil
	}
	return &statusError{
		code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest,
		message: fmt.Sprintf("the patch changes what the object is: its apiVersion and kind must stay %q and %q", before.APIVersion, before.Kind),
	}
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
	return nil, x.unsupported()
}

// applyStrategicMergePatch merges as the Go type of the client's version says.
// Custom resources have none; kube-apiserver refuses such a patch of them, too.
func (x *exchange) applyStrategicMergePatch(object, patch []byte) ([]byte, error) {
	patched, err := strategicpatch.StrategicMergePatch(object, patch, x.goType())
	if err != nil {
		return nil, &statusError{
			code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest, err: err,
			message: fmt.Sprintf("cannot apply the strategic merge patch to %s: %v", x.req.String(), err),
		}
	}
	return patched, nil
}

// goType is an object of the Go type of the client's version; nil for a custom
// resource.
func (x *exchange) goType() runtime.Object {
	from := x.conv.From
	return builtin.PatchType(schema.GroupVersionKind{Group: from.Group, Version: from.Version, Kind: x.st.kind(from)})
}

// A copy operation of a JSON patch can double the object, and a few dozen fill any
// memory; kube-apiserver sets the same limit.
func init() { jsonpatch.AccumulatedCopySizeLimit = DefaultMaxBody }

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
	var copies *jsonpatch.AccumulatedCopySizeError
	switch {
	case errors.As(err, &copies):
		return nil, &statusError{
			code: http.StatusRequestEntityTooLarge, reason: metav1.StatusReasonRequestEntityTooLarge, err: err,
			message: fmt.Sprintf("the copies of the JSON patch are larger than the limit of %d bytes", DefaultMaxBody),
		}
	case err != nil:
		return nil, invalid(err)
	}
	return patched, nil
}

// withResourceVersion adds to diff the condition that object is still what the
// server holds. A condition of the client's own stays.
func withResourceVersion(diff, object []byte) (conditioned []byte, conditional bool, err error) {
	var read struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(object, &read); err != nil {
		return nil, false, fmt.Errorf("cannot read the object's resourceVersion: %w", err)
	}
	var patch, metadata map[string]json.RawMessage
	if err := json.Unmarshal(diff, &patch); err != nil {
		return nil, false, fmt.Errorf("cannot read the patch that was worked out: %w", err)
	}
	if raw, ok := patch["metadata"]; ok {
		if err := json.Unmarshal(raw, &metadata); err != nil {
			return nil, false, fmt.Errorf("cannot read the metadata of the patch that was worked out: %w", err)
		}
	}
	_, ok := metadata["resourceVersion"]
	if ok || read.Metadata.ResourceVersion == "" {
		return diff, ok, nil
	}
	condition, err := json.Marshal(read.Metadata.ResourceVersion)
	if err != nil {
		return nil, false, err
	}
	if metadata == nil {
		metadata = map[string]json.RawMessage{}
	}
	metadata["resourceVersion"] = condition
	if patch["metadata"], err = json.Marshal(metadata); err != nil {
		return nil, false, err
	}
	conditioned, err = json.Marshal(patch)
	return conditioned, false, err
}
