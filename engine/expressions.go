package engine

// Expression is one expression of a policy, taken apart.
type Expression struct {
	Policy int    // by its index in [Set.Policies]
	Role   string // "match", "deny", "warn" or "route"

	// Parts are as in [Explanation.Match].
	Parts []Part
}

// Expressions takes the expressions of all policies apart, but of those that are shipped.
// Their parts have no values.
func (s *Set) Expressions() []Expression {
	var all []Expression
	for _, p := range s.policies {
		if p.Origin == OriginLibrary {
			continue
		}
		for _, x := range []*expr{p.match, p.deny, p.warn, p.route} {
			if x != nil {
				all = append(all, Expression{p.order, x.role.name, x.parts(nil, nil)})
			}
		}
	}
	return all
}

// Evaluated is Expressions for those that are asked about a request: their parts have
// values. A route is among them once for each of the upstreams.
//
// It costs as much as Explain, and is for tests, too.
func (s *Set) Evaluated(in *Input, upstreams []*Upstream) []Expression {
	e := evaluation{vars: newVars(in), upstreams: upstreams}
	defer e.vars.release()
	for _, p := range s.policies {
		if p.Origin != OriginLibrary && e.ask(p) {
			break // denied: no other policy is asked
		}
	}
	return e.all
}

// evaluation asks policies as judge does.
type evaluation struct {
	vars      *vars
	upstreams []*Upstream
	all       []Expression
}

// ask asks p, and reports whether it denies the request.
func (e *evaluation) ask(p *policy) bool {
	if p.conversion != nil && p.onlyConverts() && !isOf(e.vars.in.Request, p.conversion.From) {
		return false
	}
	if p.match != nil {
		e.evaluate(p, p.match)
	}
	if applies, err := p.applies(e.vars); err != nil || !applies {
		return false
	}
	if p.deny != nil {
		e.evaluate(p, p.deny)
		if message, err := p.deny.message(e.vars); err != nil || message != "" {
			return !p.Audit
		}
	}
	if p.warn != nil {
		e.evaluate(p, p.warn)
	}
	if p.route != nil {
		for _, u := range e.upstreams {
			activation := &routeVars{vars: e.vars, upstream: &upstreamValue{u}}
			e.all = append(e.all, Expression{p.order, p.route.role.name, p.route.parts(e.vars, activation)})
		}
	}
	return false
}

func (e *evaluation) evaluate(p *policy, x *expr) {
	e.all = append(e.all, Expression{p.order, x.role.name, x.parts(e.vars, e.vars)})
}
