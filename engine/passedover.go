package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// PassedOver are the policies that could not convert or route a request and say that
// it then goes on without them. Those that failed before are in the decision. The zero
// PassedOver holds none; it is for one goroutine.
type PassedOver struct {
	policies []int // by their index in the set
	ignored  []Ignored
	last     *Conversion // the last one that failed
	err      error       // why that failed
}

// Add reports whether the request takes its steps again without the policy that failed
// with err, so that nothing that this policy did before is left. The conversion of the
// request is c, nil for none. What is wrong with the client's object is not the policy's
// failure, and what a server has seen stays as it is: then do not call Add.
func (p *PassedOver) Add(err error, c *Conversion) bool {
	var eval *EvalError
	if errors.As(err, &eval) && eval.Ignore {
		return p.add(Ignored{Policy: eval.Policy, Index: eval.Index, Reason: eval.Reason, Err: err})
	}
	var failed *convert.Error
	if c == nil || !c.Ignore || !errors.As(err, &failed) || failed.Invalid {
		return false
	}
	reason := ReasonProgram
	if errors.Is(err, context.DeadlineExceeded) {
		reason = ReasonTime
	}
	if !p.add(Ignored{Policy: c.Policy, Index: c.Index, Reason: reason, Err: err}) {
		return false
	}
	p.last, p.err = c, err
	return true
}

// add reports whether failed was not among p yet.
func (p *PassedOver) add(failed Ignored) bool {
	if slices.Contains(p.policies, failed.Index) {
		return false
	}
	p.policies, p.ignored = append(p.policies, failed.Index), append(p.ignored, failed)
	return true
}

// Policies are their indexes in the set, for [Input.Without]. The caller must not change
// the slice.
func (p *PassedOver) Policies() []int { return p.policies }

// Ignored is what is told of them. The caller must not change the slice.
func (p *PassedOver) Ignored() []Ignored { return p.ignored }

// InVain returns the conversion that was passed over last, and its failure, which then
// stands: call it where no other policy converts the request and no server serves it as it
// is. It is nil where none was passed over.
func (p *PassedOver) InVain() (*Conversion, error) {
	if p.err == nil {
		return nil, nil
	}
	p.ignored = slices.DeleteFunc(p.ignored, func(failed Ignored) bool { return failed.Index == p.last.Index })
	return p.last, p.err
}
