package engine

import (
	"errors"
	"math"
	"reflect"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Upstream is what a route may know of a kube-apiserver.
type Upstream struct {
	Name string

	// Version is the server's own version.
	Version Version

	// Emulation is the version that the server emulates, its patch left 0; the
	// zero Version if it reports none.
	Emulation Version

	Healthy bool

	// Inflight is how many requests it is answering now.
	Inflight int

	// Latency is how long it takes to answer, averaged over the last requests.
	Latency time.Duration

	// Serves reports whether it serves a resource of a group version ("apps/v1",
	// "v1"). Nil: it serves nothing.
	Serves func(groupVersion, resource string) bool
}

// effective returns the version that u behaves as.
func (u *Upstream) effective() Version {
	if u.Emulation.IsZero() || u.Emulation.Major == u.Version.Major && u.Emulation.Minor == u.Version.Minor {
		return u.Version
	}
	return u.Emulation
}

// Routes reports whether Score may differ between upstreams at all.
func (d *Decision) Routes() bool { return len(d.routes)+len(d.prefers) > 0 }

// Score says how well u suits the request: the highest score wins, and ok is
// false for an upstream that a policy rules out.
//
// The score is the sum of what the routes of the policies that apply say: true is
// 1, a number is itself, false or a negative number rules out. A preference for a
// server version never rules out; it is worth less than any difference between
// routes, and decides only between upstreams that they leave equal.
//
// The error is an [*EvalError]. Score may be called as long as what the Input of
// Decide refers to is there, by one goroutine at a time.
func (d *Decision) Score(u *Upstream) (score float64, ok bool, err error) {
	scores, err := d.Scores([]*Upstream{u})
	if err != nil || scores[0] == Never {
		return 0, false, err
	}
	return scores[0], true, nil
}

// Never is the score of an upstream that a policy rules out.
const Never = -1

// Scores gives the scores of all upstreams that may answer: see Score; Never for
// one that a policy rules out.
//
// The error of a policy that is passed over when it fails is an [*EvalError] that
// says so: decide again, with [Input.Without], since the policy may have done more
// than this.
func (d *Decision) Scores(upstreams []*Upstream) ([]float64, error) {
	scores := make([]float64, len(upstreams))
	for _, p := range d.routes {
		if err := p.addScores(d.vars, scores, upstreams); err != nil {
			return nil, err
		}
	}
	for _, prefer := range d.prefers {
		prefer.addTo(scores, upstreams)
	}
	return scores, nil
}

// Heard returns, by their index in [Set.Policies], the policies in audit mode that
// would have a say about which upstream answers: see ScoresWith.
func (d *Decision) Heard() (indexes []int) {
	for _, p := range d.heard {
		indexes = append(indexes, p.order)
	}
	return indexes
}

// ScoresWith gives the scores that there would be if the i-th policy of Heard were
// not in audit mode.
func (d *Decision) ScoresWith(i int, upstreams []*Upstream) ([]float64, error) {
	scores, err := d.Scores(upstreams)
	if err != nil {
		return nil, err
	}
	p := d.heard[i]
	if p.route != nil {
		if err := p.addScores(d.vars, scores, upstreams); err != nil {
			return nil, err
		}
	}
	if p.prefer != nil && p.prefer.matches(d.vars.in.Request) {
		p.prefer.addTo(scores, upstreams)
	}
	return scores, nil
}

// addScores adds what the route of p says to scores.
func (p *policy) addScores(v *vars, scores []float64, upstreams []*Upstream) error {
	for i, u := range upstreams {
		if scores[i] == Never {
			continue
		}
		s, err := p.route.score(v, &upstreamValue{u})
		if err != nil {
			return p.passable(v, err)
		}
		if scores[i] += s; s < 0 {
			scores[i] = Never
		}
	}
	return nil
}

// addTo raises the scores of the upstreams that p prefers by the smallest step that
// there is.
func (p *Preference) addTo(scores []float64, upstreams []*Upstream) {
	for i, u := range upstreams {
		if scores[i] != Never && p.Server.Matches(u.effective()) {
			scores[i] = math.Nextafter(scores[i], math.Inf(1))
		}
	}
}

// routeVars adds the variables of an upstream to those of the request.
type routeVars struct {
	vars     *vars
	upstream *upstreamValue
}

// Parent implements cel.Activation.
func (v *routeVars) Parent() cel.Activation { return nil }

// ResolveName implements cel.Activation.
func (v *routeVars) ResolveName(name string) (any, bool) {
	u := v.upstream
	switch name {
	case "upstream":
		return u, true
	case "upstream.name":
		return types.String(u.Name), true
	case "upstream.version":
		return types.String(u.Version.String()), true
	case "upstream.version.major":
		return types.Int(u.Version.Major), true
	case "upstream.version.minor":
		return types.Int(u.Version.Minor), true
	case "upstream.version.patch":
		return types.Int(u.Version.Patch), true
	case "upstream.emulation":
		return types.String(u.effective().minorString()), true
	case "upstream.emulation.major":
		return types.Int(u.effective().Major), true
	case "upstream.emulation.minor":
		return types.Int(u.effective().Minor), true
	case "upstream.healthy":
		return types.Bool(u.Healthy), true
	case "upstream.inflight":
		return types.Int(u.Inflight), true
	case "upstream.latency":
		return types.Duration{Duration: u.Latency}, true
	}
	return v.vars.ResolveName(name)
}

// upstreamType is the type of the variable upstream, which is there to be the
// receiver of serves only.
var upstreamType = cel.OpaqueType("upstream")

// upstreamValue is the value of the variable upstream.
type upstreamValue struct{ *Upstream }

// ConvertToNative implements ref.Val.
func (u *upstreamValue) ConvertToNative(reflect.Type) (any, error) {
	return nil, errors.New("upstream has no value of its own")
}

// ConvertToType implements ref.Val.
func (u *upstreamValue) ConvertToType(ref.Type) ref.Val { return types.NoSuchOverloadErr() }

// Equal implements ref.Val.
func (u *upstreamValue) Equal(other ref.Val) ref.Val {
	o, ok := other.(*upstreamValue)
	return types.Bool(ok && o.Upstream == u.Upstream)
}

// Type implements ref.Val.
func (u *upstreamValue) Type() ref.Type { return upstreamType }

// Value implements ref.Val.
func (u *upstreamValue) Value() any { return u.Upstream }
