package kindschema

import (
	"maps"
	"slices"
)

// FieldsAt returns the names of the fields that an object at path may have, sorted; path
// is as for [Schema.TypeAt]. ok is false where it may have any, or that is not known.
func (s *Schema) FieldsAt(path []string) (names []string, ok bool) {
	s = s.at(path)
	if s == nil || s.Open || s.Values != nil || len(s.Properties) == 0 {
		return nil, false
	}
	names = slices.Collect(maps.Keys(s.Properties))
	if s.Embedded || len(path) == 0 {
		names = append(names, "apiVersion", "kind", "metadata")
	}
	slices.Sort(names)
	return slices.Compact(names), true
}
