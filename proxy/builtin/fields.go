package builtin

import (
	"encoding"
	"encoding/json"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// FieldsAt returns the names of the fields that an object at path may have, sorted; path
// is as for [Schema.TypeAt]. ok is false where it may have any, as in a map, or is no
// object.
func (s *Schema) FieldsAt(path []string) (names []string, ok bool) {
	t, ok := s.at(path)
	if !ok || t.Kind() != reflect.Struct || writesItself(t) {
		return nil, false
	}
	for f := range jsonFields(t) {
		names = append(names, f.name)
	}
	slices.Sort(names)
	return names, true
}

// below is the type of what is at element in a value of type t.
func below(t reflect.Type, element string) (reflect.Type, bool) {
	switch t.Kind() {
	case reflect.Struct:
		for f := range jsonFields(t) {
			if f.name == element {
				return deref(f.Type), true
			}
		}
	case reflect.Map:
		return deref(t.Elem()), true
	case reflect.Slice, reflect.Array:
		return deref(t.Elem()), element == "*"
	}
	return nil, false
}

// writesItself reports whether a type has a form of its own in JSON.
func writesItself(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(reflect.TypeFor[json.Marshaler]()) || pointer.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// jsonField is a field of a struct as encoding/json sees it.
type jsonField struct {
	reflect.StructField

	name     string // in JSON
	leftOut  bool   // when it is empty
	declarer reflect.Type
}

// jsonFields yields the fields of t that have a name in JSON, also those of embedded
// structs that encoding/json inlines; the declarer of these is the embedded struct.
func jsonFields(t reflect.Type) iter.Seq[jsonField] {
	return func(yield func(jsonField) bool) { eachJSONField(t, yield) }
}

func eachJSONField(t reflect.Type, yield func(jsonField) bool) bool {
	for i := range t.NumField() {
		field := t.Field(i)
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && tag == "" && deref(field.Type).Kind() == reflect.Struct:
			if !eachJSONField(deref(field.Type), yield) {
				return false
			}
		case tag != "" && tag != "-":
			if !yield(jsonField{field, tag, strings.Contains(options, "omitempty"), t}) {
				return false
			}
		}
	}
	return true
}

// SameFields reports whether an object of the kind of s says the same as one of t with
// the same fields: both have the same fields of the same types, which are merged alike in
// strategic merge patches, and leave out the same ones when they are empty.
func (s *Schema) SameFields(t *Schema) bool { return sameFields(s.root, t.root, nil) }

// sameFields is SameFields of two types; open are the pairs that they are in.
func sameFields(a, b reflect.Type, open [][2]reflect.Type) bool {
	a, b = deref(a), deref(b)
	pair := [2]reflect.Type{a, b}
	switch {
	case a == b || slices.Contains(open, pair):
		return true
	case a.Kind() != b.Kind() || typeName(a) != typeName(b):
		return false
	}
	switch a.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array:
		return sameFields(a.Elem(), b.Elem(), open)
	case reflect.Struct:
		others := map[string]jsonField{}
		for f := range jsonFields(b) {
			others[f.name] = f
		}
		for f := range jsonFields(a) {
			other, ok := others[f.name]
			if !ok || f.leftOut != other.leftOut || !maps.Equal(patchHints(f.Tag), patchHints(other.Tag)) ||
				!sameFields(f.Type, other.Type, append(open, pair)) {
				return false
			}
			delete(others, f.name)
		}
		return len(others) == 0
	}
	return true
}
