package builtin

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// FieldsAt returns the names of the fields that an object at path may have, sorted; path
// is as for [Schema.TypeAt]. ok is false where it may have any, as in a map, or is no
// object.
func (s *Schema) FieldsAt(path []string) (names []string, ok bool) {
	t := deref(s.root)
	for _, element := range path {
		if t, ok = below(t, element); !ok {
			return nil, false
		}
	}
	if t.Kind() != reflect.Struct || writesItself(t) {
		return nil, false
	}
	names = fieldNames(nil, t)
	slices.Sort(names)
	return names, true
}

// below is the type of what is at element in a value of type t.
func below(t reflect.Type, element string) (reflect.Type, bool) {
	switch t.Kind() {
	case reflect.Struct:
		field, ok := fieldOf(t, element)
		if !ok {
			return nil, false
		}
		return deref(field), true
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

// fieldNames appends the JSON names of the fields of t, also of those in embedded structs
// that encoding/json inlines.
func fieldNames(names []string, t reflect.Type) []string {
	for i := range t.NumField() {
		field := t.Field(i)
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && tag == "" && deref(field.Type).Kind() == reflect.Struct:
			names = fieldNames(names, deref(field.Type))
		case tag != "" && tag != "-":
			names = append(names, tag)
		}
	}
	return names
}
