package engine

import (
	"fmt"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Conflicts returns the mistake that it would be to add each of more to the policies
// that are there: the conversions of which one would never take place, because of the
// one that comes first. The mistakes are told of more, whichever would be first. What
// is wrong with more, or with the policies that are there, by themselves is not looked at.
func Conflicts(there, more []Policy) source.Errors {
	converts := map[gvr][]*Policy{}
	for i := range there {
		if p := &there[i]; counts(p) {
			from := gvrOf(p.Convert.From)
			converts[from] = append(converts[from], p)
		}
	}
	var errs source.Errors
	for i := range more {
		p := &more[i]
		if !counts(p) {
			continue
		}
		for _, other := range converts[gvrOf(p.Convert.From)] {
			first, second := other, p
			if inOrder(p, other) < 0 {
				first, second = p, other
			}
			if hides(first, second) {
				errs = append(errs, &source.Error{Pos: p.Convert.Pos, Msg: fmt.Sprintf(
					"policy %q at %v already converts %s %s; give the two different matches, or remove one",
					other.Name, other.Convert.Pos, p.Convert.From.APIVersion(), p.Convert.From.Resource)})
				break
			}
		}
	}
	return errs
}

// counts reports whether the conversion of p is one that may stand in another's way.
func counts(p *Policy) bool { return p.Convert != nil && !p.Audit && p.Origin != OriginLibrary }
