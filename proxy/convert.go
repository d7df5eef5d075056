package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/proxy/front"
)

// converted forwards the request in the server's version and answers it in the
// client's. Nothing is forwarded unless the whole request could be converted.
func (x *exchange) converted() (*front.Response, error) {
	target, err := x.convertedHead()
	if err != nil {
		return nil, err
	}
	body, err := x.convertedBody()
	if errors.Is(err, convert.ErrNeedsObject) {
		return x.readModifyWrite(target)
	}
	if err != nil {
		return nil, err
	}
	if x.preserves() {
		return x.update(target, body)
	}
	out := x.outbound(target, nil, 0)
	if body != nil {
		out.Body, out.ContentLength = bytes.NewReader(body), int64(len(body))
	}
	if err := x.forward(out); err != nil {
		return nil, err
	}
	return x.convertAnswer()
}

// convertedHead makes the head of the request in the server's version: its header
// lines, and its target, which it returns.
func (x *exchange) convertedHead() (string, error) {
	target, err := x.convertedTarget()
	if err != nil {
		return "", err
	}
	if x.decision.ConvertBody { // else the answer passes in whatever form it comes
		if err := x.narrowAccept(); err != nil {
			return "", err
		}
	}
	// Only plain JSON can be converted as it streams by.
	x.header.DelName("Accept-Encoding")
	x.header.Add("Accept-Encoding", "identity")
	return target, nil
}

// convertedTarget is the request target in the server's version: the path's
// group, version and resource, and the fields and labels that selectors name.
func (x *exchange) convertedTarget() (string, error) {
	target, err := x.conv.Target(&x.req)
	var selector *engine.SelectorError
	if errors.As(err, &selector) {
		return "", &statusError{code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest, message: selector.Error()}
	}
	return target, err
}

// convertedBody is the request's body in the server's version; nil where the
// request has none.
func (x *exchange) convertedBody() ([]byte, error) {
	raw, err := x.body.bytes(x.s.cfg.MaxBody)
	if err != nil || len(raw) == 0 {
		return nil, err
	}
	if x.req.Verb == "delete" || x.req.Verb == "deletecollection" {
		return x.deleteOptions(raw)
	}
	if !x.decision.ConvertBody { // Scale, Eviction, … are the same in every version
		return raw, nil
	}
	doc, err := x.toJSON(raw)
	if err != nil {
		return nil, err
	}
	if doc, err = x.validated(raw, doc); err != nil {
		return nil, err
	}
	if x.req.Verb == "patch" {
		x.patch = doc
		return x.convertedPatch(doc)
	}
	if len(doc) > 0 && !isJSON(x.req.ContentType) {
		x.header.Set("Content-Type", "application/json")
	}
	return x.conv.Object(nil, doc, convert.ToServer, x.vars())
}

// convertedPatch rewrites a patch. ErrNeedsObject: only the patched object can
// be converted.
func (x *exchange) convertedPatch(doc []byte) ([]byte, error) {
	switch form := patchType(x.req.ContentType); form {
	case mergePatch:
		return x.conv.MergePatch(nil, doc, x.vars())
	case strategicMergePatch:
		return x.conv.StrategicMergePatch(nil, doc, x.vars())
	case jsonPatch:
		return x.conv.JSONPatch(nil, doc, x.vars())
	case applyPatch, applyPatchCBOR:
		if form == applyPatchCBOR {
			x.header.Set("Content-Type", applyPatch)
		}
		converted, err := x.conv.Apply(nil, doc, x.vars())
		return jsonAsYAML(converted), err
	}
	return nil, x.unsupported()
}

// deleteOptions gives the body of a delete. Typed clients label their
// DeleteOptions with the version they speak, which the server need not know; the
// label is all that changes.
func (x *exchange) deleteOptions(raw []byte) ([]byte, error) {
	switch form := patchType(x.req.ContentType); {
	case form == mediaProtobuf:
		return relabelled(raw, x.conv.From.APIVersion(), x.conv.To.APIVersion())
	case form == mediaCBOR:
		doc, err := x.cborToJSON(raw)
		if err != nil {
			return nil, err
		}
		raw = doc
		x.header.Set("Content-Type", string(formJSON))
	case x.req.ContentType != "" && !isJSON(x.req.ContentType):
		return raw, nil
	}
	var options map[string]json.RawMessage
	var apiVersion string
	mine := json.Unmarshal(raw, &options) == nil && json.Unmarshal(options["apiVersion"], &apiVersion) == nil &&
		apiVersion == x.conv.From.APIVersion()
	if !mine { // also what is no JSON at all: the server says what is wrong with it
		return raw, nil
	}
	label, err := json.Marshal(x.conv.To.APIVersion())
	if err != nil {
		return nil, err
	}
	options["apiVersion"] = label
	return json.Marshal(options)
}

// vars is what jq programs see as $request.
func (x *exchange) vars() *convert.Vars {
	if !x.conv.UsesJQ() {
		return nil
	}
	return &convert.Vars{Request: x.req.Vars()}
}

// smallList is how much of a list is converted before any of it is sent, so that a
// policy's failure is still a Status. What is larger streams, and a failure breaks
// it off. A single object is always converted first.
const smallList = 256 << 10

// convertAnswer hands the server's answer on in the client's version.
func (x *exchange) convertAnswer() (*front.Response, error) {
	head := x.in.Method == http.MethodHead && x.succeeded() && x.decision.ConvertBody
	if head {
		if err := x.askForBody(); err != nil {
			return nil, err
		}
	}
	success := x.succeeded()
	if success {
		x.warnings = append(x.warnings, x.convertedWarning())
	}
	if x.decision.ConvertBody {
		if err := x.inflate(); err != nil {
			return nil, err
		}
		x.convertWarnings()
	}
	resp := x.pass()
	resp.NoBody = resp.NoBody && !head // the front leaves it out, and tells its length
	if resp.NoBody || !x.decision.ConvertBody {
		return resp, nil
	}
	if contentType := x.answer.Header.Get("Content-Type"); !isJSON(contentType) {
		if !success {
			return resp, nil // a plain text error is nobody's object
		}
		return nil, &statusError{
			code: http.StatusBadGateway, reason: metav1.StatusReasonInternalError,
			message: fmt.Sprintf("%s answered %s where JSON was asked for, which cannot be converted to %s",
				x.server.Name, clip(contentType), x.conv.From.APIVersion()),
		}
	}
	resp.Length = -1
	resp.Header.DelName("ETag") // of other bytes
	if !success {
		return x.convertRefusal(resp)
	}
	if x.req.Verb == "watch" {
		if !x.watch.follows(x.answer) {
			resp.Stream = func(w io.Writer) error { return x.convertWatch(w, x.answer.Body) }
		}
		return x.watched(resp), nil
	}
	return x.convertDocument(resp)
}

// convertWatch streams the events; one that is complete when the proxy shuts
// down is the last. An event that a policy fails on becomes an ERROR event, which
// tells the client why the watch ends.
func (x *exchange) convertWatch(w io.Writer, events io.Reader) error {
	err := x.conv.Watch(w, events, x.vars())
	var conversion *convert.Error
	switch {
	case x.ending.ended():
		return nil
	case errors.As(err, &conversion):
		x.err = err
		event := append([]byte(`{"type":"ERROR","object":`), x.statusBody(toStatus(err))...)
		_, err = w.Write(append(event, "}\n"...))
	}
	return err
}

func (x *exchange) convertDocument(resp *front.Response) (*front.Response, error) {
	limit := convert.MaxAnswerObjectBytes + 1
	if x.req.Verb == "list" || x.req.Verb == "deletecollection" {
		limit = smallList
	}
	head, err := io.ReadAll(io.LimitReader(x.answer.Body, int64(limit)))
	if err != nil {
		return nil, err
	}
	if len(head) < limit {
		var out bytes.Buffer
		if err := x.conv.Answer(&out, bytes.NewReader(head), x.vars()); err != nil {
			return nil, err
		}
		return x.written(resp, out.Bytes())
	}
	return x.streamed(resp, func(w io.Writer) error {
		return x.conv.Answer(w, io.MultiReader(bytes.NewReader(head), x.answer.Body), x.vars())
	})
}

func (x *exchange) succeeded() bool { return x.answer.Status >= 200 && x.answer.Status < 300 }

// askForBody asks the server for the body of what it has answered to a HEAD: the type and
// length that the client's GET would have are known when that has been converted.
func (x *exchange) askForBody() error {
	_ = x.answer.Body.Close()
	target, err := x.convertedTarget()
	if err != nil {
		return err
	}
	out := x.outbound(target, nil, 0)
	out.Method = http.MethodGet
	return x.forward(out)
}

func (x *exchange) convertedWarning() string {
	return fmt.Sprintf("%s %s is answered from %s by the policy %s; move to %s",
		x.conv.From.APIVersion(), x.conv.From.Resource, x.conv.To.APIVersion(), x.conv.Policy, x.conv.To.APIVersion())
}
