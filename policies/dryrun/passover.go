package dryrun

import (
	"context"
	"errors"
	"slices"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// passed are the policies that could not convert or route a request and say that it
// then goes on without them.
type passed struct {
	policies []int // by their index in the set
	ignored  []engine.Ignored
	last     *engine.Conversion // the last one that failed
	err      error              // why that failed
}

// passOver reports whether the request takes its steps again without the policy that
// failed with err, as in a proxy. What a server has seen stays as it is, and so does
// what is wrong with the client's object.
func (r *run) passOver(err error) bool {
	if r.sent {
		return false
	}
	var eval *engine.EvalError
	if errors.As(err, &eval) && eval.Ignore {
		return r.passed.add(engine.Ignored{Policy: eval.Policy, Index: eval.Index, Reason: eval.Reason, Err: err})
	}
	var failed *convert.Error
	c := r.Conversion
	if c == nil || !c.Ignore || !errors.As(err, &failed) || failed.Invalid {
		return false
	}
	reason := engine.ReasonProgram
	if errors.Is(err, context.DeadlineExceeded) {
		reason = engine.ReasonTime
	}
	if !r.passed.add(engine.Ignored{Policy: c.Policy, Index: c.Index, Reason: reason, Err: err}) {
		return false
	}
	r.passed.last, r.passed.err = c, err
	return true
}

// add reports whether failed was not among p yet.
func (p *passed) add(failed engine.Ignored) bool {
	if slices.Contains(p.policies, failed.Index) {
		return false
	}
	p.policies, p.ignored = append(p.policies, failed.Index), append(p.ignored, failed)
	return true
}

// servedWithout returns the failure of the policy that was passed over where
// nothing is won by that: no other policy converts the request, and no server
// serves it as it is.
func (r *run) servedWithout() error {
	p := &r.passed
	if p.err == nil || r.Conversion != nil || served(r.servers, r.Request.Group, r.Request.Version, r.Request.Resource) {
		return nil
	}
	r.Conversion = p.last
	r.Ignored = slices.DeleteFunc(r.Ignored, func(failed engine.Ignored) bool { return failed.Index == p.last.Index })
	return p.err
}
