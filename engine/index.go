package engine

import (
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// gvr is a resource of a group version.
type gvr struct{ group, version, resource string }

func gvrOf(v convert.Version) gvr { return gvr{v.Group, v.Version, v.Resource} }

// index finds the policies that may apply to a request, so that ten thousand of
// them for other resources cost nothing. A policy is in one of the three parts,
// or once per resource in byResource.
type index struct {
	byVersion  map[gvr][]*policy
	byResource map[string][]*policy // also "", for paths that are no resource
	general    []*policy
}

// add puts p, which comes after those that were added before, where it belongs.
func (x *index) add(p *policy) {
	onlyConverts := p.route == nil && p.deny == nil && p.warn == nil && p.prefer == nil
	switch {
	case onlyConverts && !p.converts():
		// A shipped policy that a user's replaces: nothing is left of it.
	case p.conversion != nil && (p.match == nil || onlyConverts):
		x.addVersion(gvrOf(p.conversion.From), p)
	case p.prefer != nil && p.match == nil && p.route == nil && p.deny == nil && p.warn == nil:
		x.addPreference(p)
	default:
		x.addMatch(p)
	}
}

func (x *index) addVersion(key gvr, p *policy) {
	if x.byVersion == nil {
		x.byVersion = map[gvr][]*policy{}
	}
	x.byVersion[key] = append(x.byVersion[key], p)
}

func (x *index) addResource(resource string, p *policy) {
	if x.byResource == nil {
		x.byResource = map[string][]*policy{}
	}
	x.byResource[resource] = append(x.byResource[resource], p)
}

func (x *index) addPreference(p *policy) {
	if p.prefer.ClientVersion != "" {
		x.addVersion(gvr{p.prefer.Group, p.prefer.ClientVersion, p.prefer.Resource}, p)
		return
	}
	x.addResource(p.prefer.Resource, p)
}

func (x *index) addMatch(p *policy) {
	if p.match != nil {
		if resources, ok := requiredResources(p.match.checked, p.match.checked.Expr()); ok {
			for resource := range resources {
				x.addResource(resource, p)
			}
			return
		}
	}
	x.general = append(x.general, p)
}

// candidates are the policies that may apply to a request: three lists, each in
// order.
type candidates [3][]*policy

func (x *index) find(r *Request) candidates {
	c := candidates{x.general, x.byResource[r.Resource], nil}
	if r.IsResource {
		c[2] = x.byVersion[gvr{r.Group, r.Version, r.Resource}]
	}
	return c
}

// next takes the first policy off c; nil when there is none.
func (c *candidates) next() *policy {
	first := -1
	for i, list := range c {
		if len(list) > 0 && (first < 0 || list[0].order < c[first][0].order) {
			first = i
		}
	}
	if first < 0 {
		return nil
	}
	p := c[first][0]
	c[first] = c[first][1:]
	return p
}

// requiredResources returns the values of request.resource for which e may be
// anything but false; ok is false if it cannot be told. In CEL false && error is
// false and false || false is false, so a policy that is not evaluated for
// another resource cannot have failed there either.
func requiredResources(ast *celast.AST, e celast.Expr) (resources map[string]bool, ok bool) {
	if e.Kind() != celast.CallKind {
		return nil, false
	}
	call := e.AsCall()
	args := call.Args()
	switch call.FunctionName() {
	case operators.LogicalAnd:
		for _, arg := range args {
			if some, known := requiredResources(ast, arg); known {
				resources, ok = intersect(resources, some, ok), true
			}
		}
		return resources, ok
	case operators.LogicalOr:
		resources = map[string]bool{}
		for _, arg := range args {
			some, known := requiredResources(ast, arg)
			if !known {
				return nil, false
			}
			for resource := range some {
				resources[resource] = true
			}
		}
		return resources, true
	case operators.Equals:
		if isResource(ast, args[1]) {
			return constants(args[0])
		}
		if isResource(ast, args[0]) {
			return constants(args[1])
		}
	case operators.In:
		if isResource(ast, args[0]) && args[1].Kind() == celast.ListKind {
			return constants(args[1].AsList().Elements()...)
		}
	}
	return nil, false
}

// intersect returns what is in both a and b; b if there is no a yet.
func intersect(a, b map[string]bool, hasA bool) map[string]bool {
	if !hasA {
		return b
	}
	both := map[string]bool{}
	for resource := range a {
		if b[resource] {
			both[resource] = true
		}
	}
	return both
}

// isResource reports whether e is the variable request.resource.
func isResource(ast *celast.AST, e celast.Expr) bool {
	reference, ok := ast.ReferenceMap()[e.ID()]
	return ok && reference.Name == "request.resource"
}

// constants returns the values of string literals.
func constants(literals ...celast.Expr) (map[string]bool, bool) {
	values := map[string]bool{}
	for _, e := range literals {
		if e.Kind() != celast.LiteralKind {
			return nil, false
		}
		s, ok := e.AsLiteral().(types.String)
		if !ok {
			return nil, false
		}
		values[string(s)] = true
	}
	return values, true
}
