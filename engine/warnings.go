package engine

import "github.com/mixed-version-proxy/mvp/engine/source"

// Warnings returns what is likely not meant in the policies, in the order of their places:
// a rule that can never act, a comparison that is always false. They do not keep a policy
// from being used. Shipped policies are not looked at.
func (s *Set) Warnings() source.Errors {
	var all source.Errors
	for _, p := range s.policies {
		all = append(all, p.warnings...)
	}
	all.Sort()
	return all
}

// allWarnings are those about what in says, and p compiled of it.
func (p *policy) allWarnings(in *Policy) (all source.Errors) {
	if in.Origin == OriginLibrary {
		return nil
	}
	all = append(all, in.Warnings...)
	for _, x := range []*expr{p.match, p.route, p.deny, p.warn} {
		if x != nil {
			all = append(all, x.warnings...)
		}
	}
	if p.conversion != nil && p.conversion.Converter != nil {
		all = append(all, p.conversion.Warnings()...)
	}
	return all
}
