package dryrun

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// convert makes the request that a server gets, and the answer that the client
// gets.
func (r *run) convert() error {
	r.Links = r.links()
	target, err := r.Conversion.Target(&r.Request)
	if err != nil {
		return err
	}
	sent, err := r.toServer()
	if err != nil {
		return err
	}
	r.sent = true
	answer, err := r.toClient(r.Response)
	if err != nil {
		return fmt.Errorf("on the way back: %w", err)
	}
	r.Outcome, r.Target, r.Sent, r.Answer = Converted, target, sent, answer
	whole := r.Request.Verb == "create" || r.Request.Verb == "update"
	if !whole || !r.decision.ConvertBody || sent == nil {
		return nil
	}
	r.Preserves = r.Request.Verb == "update" && r.Conversion.Preserves()
	if err := r.validate(); err != nil {
		return err
	}
	unheard := &convert.Vars{Request: r.Request.Vars()} // nobody has asked for it
	if r.Back, err = r.Conversion.Object(nil, sent, convert.ToClient, unheard); err != nil {
		return fmt.Errorf("on the way back: %w", err)
	}
	return nil
}

func (r *run) vars() *convert.Vars {
	return &convert.Vars{Request: r.Request.Vars(), Acted: r.opts.Acted}
}

// toServer converts the request's body.
func (r *run) toServer() ([]byte, error) {
	if r.Body == nil || !r.decision.ConvertBody {
		return r.Body, nil
	}
	body, err := r.withoutMisplaced()
	if err != nil {
		return nil, err
	}
	sent, err := r.request(r.Conversion, body)
	if errors.Is(err, convert.ErrNeedsObject) {
		r.NeedsObject = true
		return nil, nil
	}
	if err == nil && r.opts.Trace {
		r.trace(body, sent, convert.ToServer, r.request)
	}
	return sent, err
}

// request converts the body of a request by c.
func (r *run) request(c *engine.Conversion, body []byte) ([]byte, error) {
	if r.Request.Verb != "patch" {
		return c.Object(nil, body, convert.ToServer, r.vars())
	}
	switch mediaType(r.Request.ContentType) {
	case StrategicMergePatch:
		return c.StrategicMergePatch(nil, body, r.vars())
	case JSONPatch:
		return c.JSONPatch(nil, body, r.vars())
	case ApplyPatch:
		return c.Apply(nil, body, r.vars())
	}
	return c.MergePatch(nil, body, r.vars())
}

// toClient converts a server's answer.
func (r *run) toClient(response []byte) ([]byte, error) {
	if response == nil || !r.decision.ConvertBody {
		return response, nil
	}
	answer, err := r.answer(r.Conversion, response)
	if err == nil && r.opts.Trace {
		r.trace(response, answer, convert.ToClient, r.answer)
	}
	return answer, err
}

// answer converts an answer by c.
func (r *run) answer(c *engine.Conversion, body []byte) ([]byte, error) {
	var out bytes.Buffer
	var err error
	switch {
	case refuses(body):
		return c.Status(nil, body), nil
	case r.Request.Watch:
		err = c.Watch(&out, bytes.NewReader(body), r.vars())
	default:
		err = c.Answer(&out, bytes.NewReader(body), r.vars())
	}
	if err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// refuses reports whether body is the Status of a request that failed.
func refuses(body []byte) bool {
	var status struct {
		Kind   string `json:"kind"`
		Status any    `json:"status"`
	}
	return json.Unmarshal(body, &status) == nil && status.Kind == "Status" && status.Status == "Failure"
}
