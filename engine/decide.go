package engine

import (
	"errors"
	"slices"

	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// Input is one request and what is known around it.
type Input struct {
	// Request is what is asked for. Required.
	Request *Request

	// User returns who asks. It is called when the first expression that names user
	// is evaluated, and at most once. A nil User, and nil, nil, mean that it is not
	// known; like an error, which the [EvalError] wraps, that fails the expression.
	User func() (*User, error)

	// Object returns the JSON body as sent; nil, nil if there is none. It is
	// called when the first expression that looks at the body is evaluated, and
	// at most once. A nil Object is no body. An error fails the expression; the
	// [EvalError] wraps it.
	Object func() ([]byte, error)

	// Caller returns what request.caller is: see there. Nil: "".
	Caller func() string

	// Without are policies that are passed over, by their index in [Set.Policies].
	Without []int

	// Cluster is what the servers are together.
	Cluster Cluster

	// Served reports whether a healthy upstream serves the resource. Nil: none
	// does, so that every conversion takes place.
	Served func(group, version, resource string) bool

	// Known reports whether an upstream, healthy or not, serves the resource: nothing is
	// converted to what none does. Nil: one does.
	Known func(group, version, resource string) bool
}

// User is who sends a request.
type User struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// Cluster is what the kube-apiservers are together.
type Cluster struct {
	Mixed    bool    // they are of more than one version
	Min, Max Version // of those that are known
}

// Decision is what the policies say about one request. It is for one goroutine
// at a time and must not be changed.
type Decision struct {
	// Policies are those that do something to the request, in order, and Indexes
	// where each is in [Set.Policies].
	Policies []string
	Indexes  []int

	// Denied is the refusal, or nil. The policies after the one that denies are
	// not asked.
	Denied *Denial

	// Warnings are for the client.
	Warnings []string

	// Conversion is the one to make; nil for none. The URL then always is the
	// one of Conversion.To. No second conversion follows from it.
	Conversion *Conversion

	// ConvertBody says that the bodies are of the converted kind. It is false
	// without a Conversion, and for a subresource other than status: a Scale or an
	// Eviction is a kind of its own.
	ConvertBody bool

	// Audited is what policies in audit mode would do.
	Audited []Audit

	// Ignored are the policies that failed and were passed over, since that is what
	// they say.
	Ignored []Ignored

	vars    *vars     // kept for routes only
	routes  []*policy // those that have one
	heard   []*policy // those in audit mode that have a route or a preference
	prefers []*Preference
}

// Ignored is a policy that failed on a request and was passed over, as if its match
// did not hold.
type Ignored struct {
	Policy string
	Index  int // of the policy in [Set.Policies]
	Reason Reason
	Err    error // an [*EvalError]; it may show values of the object
}

// Denial is a refusal by a policy.
type Denial struct{ Policy, Message string }

// Audit is one thing that a policy in audit mode would do.
type Audit struct {
	Policy string `json:"policy"`
	Index  int    `json:"-"` // of the policy in [Set.Policies]

	// Effect is "deny", "warn", "route", "prefer", "convert", or "error" for an
	// expression that failed.
	Effect string `json:"effect"`

	// Detail is the message of a deny, warn or error, the version that is
	// preferred, or the two versions of a conversion.
	Detail string `json:"detail,omitempty"`

	// Conversion is the one that would convert the bodies; nil for none, also where
	// only the URL would be converted: see [Decision.ConvertBody].
	Conversion *Conversion `json:"-"`
}

// nothing is the decision on a request that no policy may apply to.
var nothing = &Decision{}

// Decide runs the policies on one request, in their order. A policy that applies
// is asked for a deny, then for a warning, a route and a conversion. Of the
// conversions that would take place the first is made.
//
// The error is an [*EvalError]; there is then no decision. A policy in audit mode
// never fails a request, and one that says so is passed over when it fails, unless
// the body cannot be read: a client must not be able to choose that.
func (s *Set) Decide(in *Input) (*Decision, error) {
	candidates := s.index.find(in.Request)
	p := candidates.next()
	if p == nil {
		return nothing, nil
	}
	d := &Decision{vars: newVars(in)}
	for ; p != nil && d.Denied == nil; p = candidates.next() {
		if slices.Contains(in.Without, p.order) {
			continue
		}
		v, err := p.judge(d.vars)
		switch {
		case p.Audit:
			d.audit(p, v, err)
		case err != nil && d.ignores(p, err):
		case err != nil:
			d.vars.release()
			return nil, err
		default:
			d.apply(p, v)
		}
	}
	d.finish(in.Request)
	return d, nil
}

// verdict is what one policy says about a request.
type verdict struct {
	deny, warn              string
	route, prefer, converts bool
}

// judge asks p about the request of v. After a deny it asks nothing else.
func (p *policy) judge(v *vars) (verdict, error) {
	var out verdict
	applies, err := p.applies(v)
	if err != nil || !applies {
		return out, err
	}
	if p.deny != nil {
		if out.deny, err = p.deny.message(v); err != nil || out.deny != "" {
			return out, err
		}
	}
	if p.warn != nil {
		if out.warn, err = p.warn.message(v); err != nil {
			return out, err
		}
	}
	out.route = p.route != nil
	out.prefer = p.prefer != nil && p.prefer.matches(v.in.Request)
	out.converts = p.converts() && p.conversion.takesPlace(v.in)
	return out, nil
}

// applies reports whether p is about the request of v at all.
func (p *policy) applies(v *vars) (bool, error) {
	r := v.in.Request
	switch {
	case p.match != nil && p.match.whole:
		return p.match.pins.admits(r), nil
	case p.match != nil:
		return p.match.holds(v)
	case p.conversion != nil:
		return isOf(r, p.conversion.From), nil
	case p.prefer != nil:
		return p.prefer.matches(r), nil
	}
	return true, nil
}

func isOf(r *Request, v convert.Version) bool {
	return r.IsResource && r.Group == v.Group && r.Version == v.Version && r.Resource == v.Resource
}

func (c *Conversion) takesPlace(in *Input) bool {
	if !isOf(in.Request, c.From) {
		return false
	}
	if c.When != WhenAlways && in.Served != nil && in.Served(c.From.Group, c.From.Version, c.From.Resource) {
		return false
	}
	return c.reach(in) != nil
}

// apply adds what p says to d.
func (d *Decision) apply(p *policy, v verdict) {
	acts := false
	if v.deny != "" {
		d.Denied, acts = &Denial{Policy: p.Name, Message: v.deny}, true
	}
	if v.warn != "" {
		d.Warnings, acts = append(d.Warnings, v.warn), true
	}
	if v.route {
		d.routes, acts = append(d.routes, p), true
	}
	if v.prefer {
		d.prefers, acts = append(d.prefers, p.prefer), true
	}
	if v.converts && d.Conversion == nil {
		d.Conversion, acts = p.conversion.reach(d.vars.in), true
	}
	if acts {
		d.Policies, d.Indexes = append(d.Policies, p.Name), append(d.Indexes, p.order)
	}
}

// audit notes what p, in audit mode, would do.
func (d *Decision) audit(p *policy, v verdict, err error) {
	note := func(does bool, effect, detail string) {
		if does {
			d.Audited = append(d.Audited, Audit{Policy: p.Name, Index: p.order, Effect: effect, Detail: detail})
		}
	}
	if err != nil {
		note(true, "error", err.Error())
		return
	}
	if v.route || v.prefer {
		d.heard = append(d.heard, p)
	}
	note(v.deny != "", "deny", v.deny)
	note(v.warn != "", "warn", v.warn)
	note(v.route, "route", "")
	note(v.prefer, "prefer", p.Info.Prefer)
	note(v.converts, "convert", p.From+" to "+p.To)
	if r := d.vars.in; v.converts && ownKind(r.Request.Subresource) {
		d.Audited[len(d.Audited)-1].Conversion = p.conversion.reach(r)
	}
}

// ignores reports whether p, which failed with err, says that it is then passed
// over, and notes that it is.
func (d *Decision) ignores(p *policy, err error) bool {
	var eval *EvalError
	if !errors.As(p.passable(d.vars, err), &eval) || !eval.Ignore {
		return false
	}
	d.Ignored = append(d.Ignored, Ignored{Policy: p.Name, Index: p.order, Reason: eval.Reason, Err: err})
	return true
}

// passable returns err, which p failed with, and has it say whether p is then passed
// over.
func (p *policy) passable(v *vars, err error) error {
	var eval *EvalError
	if errors.As(err, &eval) {
		eval.Index, eval.Ignore = p.order, p.Ignore && v.objectErr == nil
	}
	return err
}

// finish settles what is known only after the last policy.
func (d *Decision) finish(r *Request) {
	d.ConvertBody = d.Conversion != nil && ownKind(r.Subresource)
	if len(d.routes)+len(d.heard) == 0 {
		d.vars.release()
		d.vars = nil
	}
}

// ownKind reports whether the bodies of a subresource are of the resource's own
// kind. Those of the others (scale, eviction, binding, token, exec, …) are kinds of
// their own, the same in every version.
func ownKind(subresource string) bool {
	switch subresource {
	case "", "status",
		"approval",                      // of CertificateSigningRequests
		"finalize",                      // of Namespaces
		"ephemeralcontainers", "resize": // of Pods
		return true
	}
	return false
}
