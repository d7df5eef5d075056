package discovery

import (
	"maps"
	"slices"
)

// FieldsAt returns the names of the fields that an object at path may have, sorted; path
// is as for [Schema.TypeAt]. ok is false where the schema does not say, or lets it have
// any.
func (s *Schema) FieldsAt(path []string) (names []string, ok bool) {
	if s == nil {
		return nil, false
	}
	node := s.node
	for _, key := range path {
		budget := maxReferences
		if node = s.child(node, key, &budget); node == nil {
			return nil, false
		}
	}
	a := s.allowed(node)
	if a.open || a.values != nil || len(a.properties) == 0 {
		return nil, false
	}
	names = slices.Collect(maps.Keys(a.properties))
	if a.embedded || len(path) == 0 {
		names = append(names, "apiVersion", "kind", "metadata")
	}
	slices.Sort(names)
	return slices.Compact(names), true
}
