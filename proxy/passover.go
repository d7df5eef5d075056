package proxy

import (
	"context"
	"errors"
	"slices"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// passedOver are the policies that could not convert or route a request and say that
// it then goes on without them. Those that failed before are in the decision.
type passedOver struct {
	policies []int // by their index in the set
	ignored  []engine.Ignored
	last     *engine.Conversion // the last one that failed
	err      error              // why that failed

	sent bool // something of this attempt has gone to a server
}

// passOver reports whether the request takes its steps again without the policy that
// failed with err. So nothing that this policy did before it failed is left.
func (x *exchange) passOver(err error) bool {
	var eval *engine.EvalError
	if errors.As(err, &eval) && eval.Ignore && !x.passed.sent && !slices.Contains(x.passed.policies, eval.Index) {
		x.passed.add(engine.Ignored{Policy: eval.Policy, Index: eval.Index, Reason: eval.Reason, Err: err})
		return true
	}
	return x.passConversion(err)
}

// passConversion is passOver for a conversion. What a server may have seen stays as
// it is, and so does what is wrong with the client's object: neither is the policy's
// failure on the way there.
func (x *exchange) passConversion(err error) bool {
	conv, failed := x.conv, (*convert.Error)(nil)
	if conv == nil || !conv.Ignore || x.passed.sent || !errors.As(err, &failed) || failed.Invalid ||
		slices.Contains(x.passed.policies, conv.Index) {
		return false
	}
	reason := engine.ReasonProgram
	if errors.Is(err, context.DeadlineExceeded) {
		reason = engine.ReasonTime
	}
	x.passed.add(engine.Ignored{Policy: conv.Policy, Index: conv.Index, Reason: reason, Err: err})
	x.passed.last, x.passed.err = conv, err
	return true
}

func (p *passedOver) add(failed engine.Ignored) {
	p.policies, p.ignored = append(p.policies, failed.Index), append(p.ignored, failed)
}

// servedWithout returns the failure of the policy that was passed over where
// nothing is won by that: no other policy converts the request, and no server
// serves it as it is.
func (x *exchange) servedWithout() error {
	p := &x.passed
	if p.err == nil || x.conv != nil || x.served(x.req.Group, x.req.Version, x.req.Resource) {
		return nil
	}
	x.conv = p.last
	p.ignored = slices.DeleteFunc(p.ignored, func(failed engine.Ignored) bool { return failed.Index == p.last.Index })
	return p.err
}

// ignored are the policies that failed on the request and were passed over.
func (x *exchange) ignored() []engine.Ignored {
	if x.decision == nil {
		return x.passed.ignored
	}
	return slices.Concat(x.decision.Ignored, x.passed.ignored)
}
