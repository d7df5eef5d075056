package engine

import (
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// MissingFields returns a mistake for each path in a rule of a conversion that cannot
// mean any field, as far as schema knows the two versions: see
// [convert.Converter.MissingFields]. They are in the order of their places, and do not
// keep a policy from being used. Shipped policies are not looked at.
func (s *Set) MissingFields(schema func(convert.Version) convert.Schema) source.Errors {
	var errs source.Errors
	for _, p := range s.policies {
		if c := p.conversion; c != nil && !c.Library {
			errs = append(errs, c.Converter.MissingFields(schema(c.From), schema(c.To))...)
		}
	}
	errs.Sort()
	return errs
}
