package engine

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// pin is a variable that must have one of some values for a policy to be about a
// request.
type pin struct {
	variable int      // a text of the request: see Request.text
	values   []string // sorted; none: the policy is about no request
}

func (p *pin) has(value string) bool {
	_, ok := slices.BinarySearch(p.values, value)
	return ok
}

// pins are what is certain of the requests that a policy is about, one for each
// variable. A request that they do not admit need not be shown to the policy.
type pins []pin

// admits reports whether the policy may be about r.
func (p pins) admits(r *Request) bool {
	for i := range p {
		if value, _ := r.text(p[i].variable); !p[i].has(value) {
			return false
		}
	}
	return true
}

// of returns the values that variable may have; ok is false if it may have any.
func (p pins) of(variable int) (values []string, ok bool) {
	for i := range p {
		if p[i].variable == variable {
			return p[i].values, true
		}
	}
	return nil, false
}

// and is what holds where both p and q do.
func (p pins) and(q pins) pins {
	both := slices.Clone(p)
	for _, b := range q {
		i := slices.IndexFunc(both, func(a pin) bool { return a.variable == b.variable })
		if i < 0 {
			both = append(both, b)
			continue
		}
		both[i].values = slices.DeleteFunc(slices.Clone(both[i].values), func(v string) bool { return !b.has(v) })
	}
	return both
}

// or is what holds where p or q does.
func (p pins) or(q pins) (either pins) {
	for _, a := range p {
		if values, ok := q.of(a.variable); ok {
			either = append(either, newPin(a.variable, slices.Concat(a.values, values)...))
		}
	}
	return either
}

func newPin(variable int, values ...string) pin {
	slices.Sort(values)
	return pin{variable, slices.Compact(values)}
}

func pinsOfVersion(v convert.Version) pins {
	return pins{{varGroup, []string{v.Group}}, {varVersion, []string{v.Version}}, {varResource, []string{v.Resource}}}
}

func pinsOfPreference(p *Preference) pins {
	out := pins{{varGroup, []string{p.Group}}, {varResource, []string{p.Resource}}}
	if p.ClientVersion != "" {
		out = append(out, pin{varVersion, []string{p.ClientVersion}})
	}
	return out
}

// pinsOf returns what must hold for e to be anything but false. In CEL false &&
// error is false and false || false is false, so an expression that is not
// evaluated for another request cannot have failed there either. whole says that e
// is true for all requests that the pins admit: it need not be evaluated at all.
func pinsOf(ast *celast.AST, e celast.Expr) (p pins, whole bool) {
	if e.Kind() != celast.CallKind {
		return nil, false
	}
	args := e.AsCall().Args()
	switch e.AsCall().FunctionName() {
	case operators.LogicalAnd:
		p, whole = pinsOf(ast, args[0])
		for _, arg := range args[1:] {
			q, all := pinsOf(ast, arg)
			p, whole = p.and(q), whole && all
		}
	case operators.LogicalOr:
		p, whole = pinsOf(ast, args[0])
		for _, arg := range args[1:] {
			q, all := pinsOf(ast, arg)
			// Of two variables each could have its value from another side.
			whole = whole && all && len(p) == 1 && len(q) == 1 && p[0].variable == q[0].variable
			p = p.or(q)
		}
	case operators.Equals:
		if variable, ok := textVariable(ast, args[0]); ok {
			return pinned(variable, args[1])
		}
		if variable, ok := textVariable(ast, args[1]); ok {
			return pinned(variable, args[0])
		}
	case operators.In:
		if variable, ok := textVariable(ast, args[0]); ok && args[1].Kind() == celast.ListKind {
			return pinned(variable, args[1].AsList().Elements()...)
		}
	}
	return p, whole
}

// textVariable returns which text of the request e is, if it is one.
func textVariable(ast *celast.AST, e celast.Expr) (variable int, ok bool) {
	reference, ok := ast.ReferenceMap()[e.ID()]
	if !ok {
		return 0, false
	}
	variable = variableIndex(reference.Name)
	_, ok = (&Request{}).text(variable)
	return variable, ok
}

// pinned pins variable to string literals; to nothing if one of them is anything
// else.
func pinned(variable int, literals ...celast.Expr) (p pins, whole bool) {
	values := make([]string, 0, len(literals))
	for _, e := range literals {
		if e.Kind() != celast.LiteralKind {
			return nil, false
		}
		s, ok := e.AsLiteral().(types.String)
		if !ok {
			return nil, false
		}
		values = append(values, string(s))
	}
	return pins{newPin(variable, values...)}, true
}
