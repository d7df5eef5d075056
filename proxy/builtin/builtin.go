// Package builtin knows the types of the fields of Kubernetes' own kinds, from
// the Go types of k8s.io/api, also of versions that no server serves any more.
//
// It knows no custom resource and reads no document.
package builtin

import (
	"encoding"
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A Schema tells the types of the fields of one version of a kind. It is
// immutable and safe for concurrent use.
type Schema struct{ root reflect.Type }

// Find returns the schema of a kind; ok is false for a kind that Kubernetes does
// not have.
func Find(group, version, kind string) (s *Schema, ok bool) {
	gvk := schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
	if t, ok := jsonOnly[gvk]; ok {
		return &Schema{t}, true
	}
	object, err := Scheme.New(gvk)
	if err != nil {
		return nil, false
	}
	return &Schema{reflect.TypeOf(object)}, true
}

// FindResource is Find for the kind whose plural is resource.
func FindResource(group, version, resource string) (s *Schema, ok bool) {
	named := func(gvk schema.GroupVersionKind) bool {
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		return plural == schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	gv := schema.GroupVersion{Group: group, Version: version}
	for kind := range Scheme.KnownTypes(gv) {
		if named(gv.WithKind(kind)) {
			return Find(group, version, kind)
		}
	}
	for gvk := range jsonOnly {
		if named(gvk) {
			return Find(group, version, gvk.Kind)
		}
	}
	return nil, false
}

// Type returns the Go type of the kind, whose name is that of the kind.
func (s *Schema) Type() reflect.Type { return deref(s.root) }

var (
	intOrString = reflect.TypeFor[intstr.IntOrString]()
	jsonText    = reflect.TypeFor[json.Marshaler]()
	plainText   = reflect.TypeFor[encoding.TextMarshaler]()
)

// TypeAt returns the JSON type of the field at path, whose elements are keys, "*"
// for the items of an array: "string", "integer", "number", "boolean", "object",
// "array", "int-or-string"; "" when there is no such field or it takes several
// types.
func (s *Schema) TypeAt(path []string) string {
	t, ok := s.at(path)
	if !ok {
		return ""
	}
	return typeName(t)
}

// at returns the type of the field at path.
func (s *Schema) at(path []string) (t reflect.Type, ok bool) {
	t = deref(s.root)
	for _, element := range path {
		if t, ok = below(t, element); !ok {
			return nil, false
		}
	}
	return t, true
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func typeName(t reflect.Type) string {
	switch pointer := reflect.PointerTo(t); {
	case t == intOrString:
		return "int-or-string"
	case t.PkgPath() == "k8s.io/apimachinery/pkg/api/resource" && t.Name() == "Quantity":
		return "" // a string or a number
	case t.PkgPath() == "k8s.io/apimachinery/pkg/apis/meta/v1" && pointer.Implements(jsonText):
		switch t.Name() {
		case "Time", "MicroTime", "Duration":
			return "string"
		}
		return ""
	case pointer.Implements(jsonText):
		return ""
	case pointer.Implements(plainText):
		return "string"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "integer"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "string" // base64
		}
		return "array"
	case reflect.Array:
		return "array"
	}
	return ""
}
