package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Explanation is what one policy makes of one request, and why it does no more.
type Explanation struct {
	Policy string     `json:"policy"`
	Index  int        `json:"-"` // of the policy in [Set.Policies]
	Pos    source.Pos `json:"-"`

	// Acts is true if the policy does something to the request, or in audit mode
	// would.
	Acts bool `json:"acts"`

	// Reasons say why the policy does nothing, or not all that it could: one for
	// each of its roles. Empty if there is nothing that it leaves out.
	Reasons []string `json:"reasons,omitempty"`

	// Match is its predicate, part by part, each before those that it is made of.
	// Empty if it has none, or was not asked.
	Match []Part `json:"match,omitempty"`
}

// Part is a part of a predicate: what stands beside &&, || and ? :, or after !, or
// the whole.
type Part struct {
	// Text is the part as it is written, or in CEL's own spelling where it goes over
	// several lines.
	Text string `json:"text"`

	// Pos is where it stands.
	Pos source.Pos `json:"pos"`

	// Depth is how many parts it is in.
	Depth int `json:"depth"`

	// Operator is "&&", "||", "!" or "? :" for a part that is made of others, else "".
	Operator string `json:"operator,omitempty"`

	// Value is "true", "false" or another value as CEL writes it; "error: " and why;
	// "" if it is not known.
	Value string `json:"value"`

	// Reads are the values that a part without an operator looks at: those that are
	// numbers, texts, bools, null or lists of texts.
	Reads []Read `json:"reads,omitempty"`
}

// Read is a value that an expression looks at.
type Read struct {
	Name  string `json:"name"` // as written: "object.spec.replicas"
	Value string `json:"value"`
}

// Explain says of every policy, in order, what it makes of a request. What acts is
// what Decide says; the predicates are evaluated once more, all parts of them, also
// those that the decision did not need.
//
// It costs many times what Decide does and is for tests, not for serving. What a
// Secret holds is not in Reads.
func (s *Set) Explain(in *Input) []Explanation {
	x := explainer{in: in, vars: newVars(in)}
	defer x.vars.release()
	x.decision, x.err = s.Decide(in)
	all := make([]Explanation, len(s.policies))
	for i, p := range s.policies {
		all[i] = x.explain(p)
	}
	return all
}

// explainer explains one request.
type explainer struct {
	in   *Input
	vars *vars

	decision *Decision // nil if err is set
	err      error

	ended string // why the policies that follow are not asked; "" while they are
}

func (x *explainer) explain(p *policy) Explanation {
	e := Explanation{Policy: p.Name, Index: p.order, Pos: p.Pos, Acts: x.acts(p)}
	if slices.Contains(x.in.Without, p.order) {
		e.Reasons = []string{"it is passed over, since it failed on this request"}
		return e
	}
	if x.ended != "" {
		e.Reasons = []string{x.ended}
		return e
	}
	x.reasons(p, &e)
	var failed *EvalError
	switch {
	case errors.As(x.err, &failed) && failed.Policy == p.Name && !p.Audit:
		x.ended = fmt.Sprintf("it is not asked: the policy %s failed", p.Name)
	case x.decision != nil && x.decision.Denied != nil && x.decision.Denied.Policy == p.Name && e.Acts:
		x.ended = fmt.Sprintf("it is not asked: the policy %s denies the request", p.Name)
	}
	return e
}

func (x *explainer) acts(p *policy) bool {
	if x.decision == nil {
		return false
	}
	return slices.Contains(x.decision.Indexes, p.order) ||
		slices.ContainsFunc(x.decision.Audited, func(a Audit) bool { return a.Index == p.order })
}

// reasons asks p in the order in which Decide does.
func (x *explainer) reasons(p *policy, e *Explanation) {
	because := func(format string, args ...any) { e.Reasons = append(e.Reasons, fmt.Sprintf(format, args...)) }
	r := x.in.Request
	convertsOnly := p.conversion != nil && p.route == nil && p.deny == nil && p.warn == nil && p.prefer == nil
	if p.conversion != nil && (p.match == nil || convertsOnly) && !isOf(r, p.conversion.From) {
		because("it is about %s; %s", p.From, otherResource(r, p.conversion.From))
		return
	}
	if convertsOnly && p.ShadowedBy != "" {
		because("the policy %s takes its place", p.ShadowedBy)
		return
	}
	if p.match != nil {
		e.Match = p.match.parts(x.vars, x.vars)
		switch holds, err := p.match.holds(x.vars); {
		case err != nil:
			because("its match fails: %v", reasonOf(err))
			return
		case !holds && x.vars.noObject && slices.ContainsFunc(e.Match, Part.failed):
			because("its match looks into the body, and the request has none")
			return
		case !holds:
			because("its match is false")
			return
		}
	}
	x.messages(p, because)
	if p.prefer != nil && !p.prefer.matches(r) {
		because("it prefers servers for %s", preferred(p.prefer))
	}
	if p.conversion != nil {
		x.conversion(p, because)
	}
}

// messages says what a deny and a warn do not say.
func (x *explainer) messages(p *policy, because func(string, ...any)) {
	for _, m := range []*expr{p.deny, p.warn} {
		if m == nil {
			continue
		}
		message, err := m.message(x.vars)
		switch {
		case err != nil:
			because("its %s fails: %v", m.role.name, reasonOf(err))
			return
		case message == "":
			because("its %s says nothing", m.role.name)
		case m == p.deny:
			return // nothing else is asked of it
		}
	}
}

// conversion says why the conversion of p, which is asked for it, is not made.
func (x *explainer) conversion(p *policy, because func(string, ...any)) {
	c := p.conversion
	switch made := x.made(); {
	case !isOf(x.in.Request, c.From):
		because("it converts %s; %s", p.From, otherResource(x.in.Request, c.From))
	case p.ShadowedBy != "":
		because("the policy %s converts instead", p.ShadowedBy)
	case c.reach(x.in) == nil:
		because("it converts to %s, which no server serves", p.To)
	case !c.takesPlace(x.in):
		because("it converts only while no server serves %s, and one does", p.From)
	case made != "" && made != p.Name && !p.Audit:
		because("the policy %s, which is before it, converts", made)
	}
}

// made is the policy whose conversion is made; "" for none.
func (x *explainer) made() string {
	if x.decision == nil || x.decision.Conversion == nil {
		return ""
	}
	return x.decision.Conversion.Policy
}

// otherResource says in what r is not for v.
func otherResource(r *Request, v convert.Version) string {
	switch {
	case !r.IsResource:
		return "the request is for no resource"
	case r.Resource != v.Resource:
		return fmt.Sprintf("the resource of the request is %s", source.Quote(r.Resource))
	case r.Group != v.Group:
		return fmt.Sprintf("the group of the request is %s", source.Quote(r.Group))
	}
	return fmt.Sprintf("the version of the request is %s", source.Quote(r.Version))
}

func preferred(p *Preference) string {
	v := convert.Version{Group: p.Group, Version: p.ClientVersion}
	if p.ClientVersion == "" {
		v.Version = "*"
	}
	return v.APIVersion() + " " + p.Resource
}

// reasonOf is why an expression failed, without where, which stands beside it.
func reasonOf(err error) error {
	var failed *EvalError
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}
