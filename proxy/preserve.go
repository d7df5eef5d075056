package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/proxy/front"
)

// preserves reports whether the request replaces a whole object of which the
// client's version cannot hold all fields, and the policy says which.
func (x *exchange) preserves() bool {
	return x.req.Verb == "update" && x.decision.ConvertBody && x.conv.Preserves()
}

// update executes such a request: read the object with the client's own
// credential, put the fields that the client cannot know into body, and write that
// under the condition that the object is still the one that was read. Nothing is
// remembered from the client's read, so nothing stale can come back.
//
// A client's own condition stays. Where it does not hold for the object that was
// read, the fields would be of another state than the rest: the answer is the
// conflict that the server would have answered.
func (x *exchange) update(target string, body []byte) (*front.Response, error) {
	path, _, _ := strings.Cut(target, "?")
	unlock, err := x.s.patches.lock(x.ctx, path)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for attempt := 1; ; attempt++ {
		// The fields are the object's, also where only a subresource is written.
		current, err := x.read(strings.TrimSuffix(path, "/"+x.req.Subresource))
		if err != nil {
			return nil, err
		}
		whole, conditional := body, true
		switch {
		case current != nil:
			whole, conditional, err = x.kept(body, current)
			if err != nil {
				return nil, err
			}
		case x.answer.Status != http.StatusNotFound:
			return x.convertAnswer()
		default: // nothing to preserve: the update creates it, or is refused
			_ = x.answer.Body.Close()
		}
		if err := x.forward(x.outbound(target, bytes.NewReader(whole), int64(len(whole)))); err != nil {
			return nil, err
		}
		if x.answer.Status != http.StatusConflict || conditional || attempt == maxConflicts {
			return x.convertAnswer()
		}
		_ = x.answer.Body.Close()
	}
}

// kept is body with the preserved fields of current, under the condition that
// current is what the server has. conditional says that the client set one itself.
func (x *exchange) kept(body, current []byte) (whole []byte, conditional bool, err error) {
	now, err := convert.ResourceVersion(current)
	if err != nil {
		return nil, false, fmt.Errorf("cannot read the resourceVersion of the object of %s: %w", x.server.Name, err)
	}
	wanted, err := convert.ResourceVersion(body)
	if err != nil {
		return body, true, nil //nolint:nilerr // the server says what is wrong with it
	}
	conditional = wanted != "" && wanted != "0"
	if conditional && wanted != now {
		return nil, false, x.conflict()
	}
	whole, err = x.conv.Keep(body, current, x.vars())
	if err != nil || conditional || !x.mayBeUnconditional() {
		return whole, conditional, err
	}
	condition, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": now}})
	if err != nil {
		return nil, false, err
	}
	whole, err = convert.MergePatchApply(whole, condition)
	return whole, false, err
}

// mayBeUnconditional reports whether servers take an update without a
// resourceVersion. They refuse it of a custom resource, and shall do so through a
// conversion.
func (x *exchange) mayBeUnconditional() bool { return scheme.Scheme.IsGroupRegistered(x.conv.To.Group) }

// conflict is what kube-apiserver answers when the object was written since the
// client has read it.
func (x *exchange) conflict() error {
	resource := x.conv.From.Resource
	if group := x.conv.From.Group; group != "" {
		resource += "." + group
	}
	return &statusError{
		code: http.StatusConflict, reason: metav1.StatusReasonConflict,
		message: fmt.Sprintf("Operation cannot be fulfilled on %s %q: the object has been modified; "+
			"please apply your changes to the latest version and try again", resource, clip(x.req.Name)),
	}
}
