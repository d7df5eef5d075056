package engine

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/cel-go/cel"

	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// policy is a compiled Policy. It never changes.
type policy struct {
	order int // among all policies of the set
	Info

	match, route, deny, warn *expr
	conversion               *Conversion
	prefer                   *Preference

	pins pins // of the requests that it is about

	warnings source.Errors
}

// Compile makes a set of policies, which apply in the order of their names (see
// [Policy.Name]): first those of files, then those of objects, then the shipped ones. The error is a [source.Errors] with all
// mistakes of all policies, in the order of their places.
func Compile(policies []Policy) (*Set, error) { return CompileWith(policies, Limits{}) }

// Limits are those of evaluation that an operator may set. The zero value of a
// field is its default.
type Limits struct {
	// ExpressionCost is how much the evaluation of one expression may cost, in CEL's
	// units. Default MaxExpressionCost.
	ExpressionCost uint64

	// Bodies bounds what the conversion of one body may cost.
	Bodies convert.Limits
}

// CompileWith is Compile with other limits.
func CompileWith(policies []Policy, limits Limits) (*Set, error) {
	limits.ExpressionCost = cmp.Or(limits.ExpressionCost, MaxExpressionCost)
	envs, err := celEnvironments()
	if err != nil {
		return nil, fmt.Errorf("cannot set up CEL: %w", err)
	}
	sorted := slices.Clone(policies)
	slices.SortStableFunc(sorted, func(a, b Policy) int { return inOrder(&a, &b) })
	c := compiler{envs: envs, limits: limits}
	c.compileAll(sorted)
	c.checkNames(sorted)
	c.checkConversions(sorted)
	if err := c.errs.Err(); err != nil {
		return nil, err
	}
	addChains(c.policies)
	return newSet(c.policies), nil
}

// compareNames orders the names of policies as strings, but the rules of one list
// in a document as the list does: "a/apiMigrationRules[2]" is before
// "a/apiMigrationRules[10]".
func compareNames(a, b string) int {
	listA, indexA := cutIndex(a)
	listB, indexB := cutIndex(b)
	return cmp.Or(cmp.Compare(listA, listB), cmp.Compare(indexA, indexB), cmp.Compare(a, b))
}

// cutIndex cuts the index in brackets off the name of a rule in a document, which
// has a slash. Of any other name it returns all, and -1.
func cutIndex(name string) (list string, index int) {
	list, bracketed, found := strings.Cut(name, "[")
	digits, closed := strings.CutSuffix(bracketed, "]")
	if !found || !closed || !strings.Contains(list, "/") || !parseNumbers([]string{digits}, &index) {
		return name, -1
	}
	return list, index
}

// inOrder orders policies as they apply: those of files, those of objects, the
// shipped ones, each in the order of their names.
func inOrder(a, b *Policy) int {
	return cmp.Or(cmp.Compare(originRank(a.Origin), originRank(b.Origin)), compareNames(a.Name, b.Name))
}

func originRank(origin string) int {
	switch origin {
	case OriginObject:
		return 1
	case OriginLibrary:
		return 2
	}
	return 0
}

type compiler struct {
	envs     *environments
	limits   Limits
	policies []*policy // those with mistakes too
	errs     source.Errors
}

// compileAll compiles the policies, on all processors: of ten thousand, parsing
// alone takes seconds. Its goroutines end before it returns.
func (c *compiler) compileAll(sorted []Policy) {
	c.policies = make([]*policy, len(sorted))
	workers := make([]worker, min(runtime.GOMAXPROCS(0), len(sorted)))
	var next atomic.Int64
	var running sync.WaitGroup
	for i := range workers {
		w := &workers[i]
		w.compiler = compiler{envs: c.envs, limits: c.limits}
		running.Go(func() {
			defer func() { w.panicked = recover() }()
			for n := int(next.Add(1)) - 1; n < len(sorted); n = int(next.Add(1)) - 1 {
				c.policies[n] = w.compile(&sorted[n], n)
			}
		})
	}
	running.Wait()
	for i := range workers {
		if workers[i].panicked != nil {
			panic(workers[i].panicked) // to whoever asked, who may survive it
		}
		c.errs = append(c.errs, workers[i].errs...)
	}
}

// worker compiles some of the policies.
type worker struct {
	compiler
	panicked any
}

// compile compiles the policy that is in the place order of all.
func (c *compiler) compile(in *Policy, order int) *policy {
	p := &policy{order: order, prefer: in.Prefer, Info: infoOf(in)}
	p.match = c.expr(c.envs.request, in.Name, roleMatch, in.Match)
	p.route = c.expr(c.envs.route, in.Name, roleRoute, in.Route)
	p.deny = c.expr(c.envs.request, in.Name, roleDeny, in.Deny)
	p.warn = c.expr(c.envs.request, in.Name, roleWarn, in.Warn)
	if in.Convert != nil {
		p.conversion = c.conversion(in, order)
	}
	if in.Route == nil && in.Deny == nil && in.Warn == nil && in.Convert == nil && in.Prefer == nil {
		c.errorAt(in.Pos, "policy %q does nothing: give it a conversion, a route, a preference, a deny or a warn", in.Name)
	}
	p.pins = p.allPins()
	p.warnings = p.allWarnings(in)
	return p
}

// allPins returns the pins of the requests that p is about: see applies. A match
// beside nothing but a conversion is not asked about requests for another version.
func (p *policy) allPins() (all pins) {
	switch {
	case p.match != nil && p.onlyConverts():
		return p.match.pins.and(pinsOfVersion(p.conversion.From))
	case p.match != nil:
		return p.match.pins
	case p.conversion != nil:
		return pinsOfVersion(p.conversion.From)
	case p.prefer != nil:
		return pinsOfPreference(p.prefer)
	}
	return nil
}

func (c *compiler) errorAt(pos source.Pos, format string, args ...any) {
	c.errs = append(c.errs, &source.Error{Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

func (c *compiler) expr(env *cel.Env, policy string, role role, text *source.Text) *expr {
	if text == nil {
		return nil
	}
	x, errs := compileExpr(env, c.limits.ExpressionCost, policy, role, text)
	c.errs = append(c.errs, errs...)
	return x
}

func (c *compiler) conversion(in *Policy, order int) *Conversion {
	spec := *in.Convert
	spec.Policy, spec.Limits = in.Name, c.limits.Bodies
	converter, errs := convert.Compile(spec)
	c.errs = append(c.errs, errs...)
	return &Conversion{
		Policy:    in.Name,
		When:      in.When,
		Converter: converter,
		From:      spec.From,
		To:        spec.To,
		Library:   in.Origin == OriginLibrary,
		Index:     order,
		Ignore:    in.OnFailure == Ignore,
	}
}

// checkNames finds policies of one name. A user's policy may have the name of a
// shipped one.
func (c *compiler) checkNames(sorted []Policy) {
	for i := 1; i < len(sorted); i++ {
		a, b := &sorted[i-1], &sorted[i]
		if a.Name == b.Name && (a.Origin == OriginLibrary) == (b.Origin == OriginLibrary) {
			c.errorAt(b.Pos, "policy %q is already at %v", b.Name, a.Pos)
		}
	}
}

// checkConversions finds conversions of one version of which the later can never
// take place, and marks the shipped ones that a user's policy replaces.
func (c *compiler) checkConversions(sorted []Policy) {
	users := map[gvr][]*Policy{} // by the version that is converted from, in order
	for i := range sorted {
		p := &sorted[i]
		if p.Convert == nil || p.Audit || p.Origin == OriginLibrary {
			continue
		}
		from := gvrOf(p.Convert.From)
		for _, other := range users[from] {
			if hides(other, p) {
				c.errorAt(p.Convert.Pos, "policy %q never converts %s %s: policy %q at %v already does; give them different matches, or remove one",
					p.Name, p.Convert.From.APIVersion(), p.Convert.From.Resource, other.Name, other.Convert.Pos)
				break
			}
		}
		users[from] = append(users[from], p)
	}
	for _, p := range c.policies {
		if p.conversion == nil || !p.conversion.Library {
			continue
		}
		for _, user := range users[gvrOf(p.conversion.From)] {
			if user.Match == nil && replaces(user.When, p.conversion.When) {
				p.ShadowedBy = user.Name
			}
		}
	}
}

// hides reports whether the conversion of a, which comes first, leaves none for
// that of b.
func hides(a, b *Policy) bool {
	if !replaces(a.When, b.When) {
		return false
	}
	return a.Match == nil || b.Match != nil && a.Match.Code == b.Match.Code
}

// replaces reports whether a conversion that takes place when a says does so
// whenever one that b says would.
func replaces(a, b When) bool { return a == WhenAlways || b == WhenUnserved }
