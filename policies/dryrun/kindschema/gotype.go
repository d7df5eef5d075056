package kindschema

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// OfType is the schema of what Kubernetes' decoder takes for a Go type. Nothing is
// required; what Go has a nil for may be null.
func OfType(t reflect.Type) *Schema { return typeBuilder{}.of(t) }

// OfObjectMeta is the schema of metadata.
func OfObjectMeta() *Schema { return OfType(reflect.TypeFor[metav1.ObjectMeta]()) }

// typeBuilder has the schemas of types that are made.
type typeBuilder map[reflect.Type]*Schema

func (b typeBuilder) of(t reflect.Type) *Schema {
	if made, ok := b[t]; ok {
		return made
	}
	made := &Schema{}
	b[t] = made // before it is filled: a type may lead back to itself
	if t.Kind() == reflect.Pointer {
		*made = *b.of(t.Elem())
		made.Nullable = true
	} else {
		b.fill(made, t)
	}
	own := &spec.Schema{}
	own.Nullable, own.Format, own.Type = made.Nullable, made.Format, ownTypes(made)
	made.own = own
	return made
}

func ownTypes(s *Schema) spec.StringOrArray {
	switch {
	case s.IntOrString:
		return spec.StringOrArray{"integer", "string"}
	case s.Quantity:
		return spec.StringOrArray{"number", "string"}
	case s.Type == "":
		return nil
	}
	return spec.StringOrArray{s.Type}
}

var (
	jsonText  = reflect.TypeFor[json.Marshaler]()
	plainText = reflect.TypeFor[encoding.TextMarshaler]()
)

// fill says in s what t is.
func (b typeBuilder) fill(s *Schema, t reflect.Type) {
	switch t {
	case reflect.TypeFor[intstr.IntOrString]():
		s.IntOrString = true
		return
	case reflect.TypeFor[resource.Quantity]():
		s.Quantity, s.Format = true, "quantity"
		return
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		s.Type, s.Format, s.Nullable = "string", "date-time", true
		return
	case reflect.TypeFor[metav1.Duration]():
		s.Type, s.Format = "string", "duration"
		return
	case reflect.TypeFor[metav1.FieldsV1](), reflect.TypeFor[runtime.RawExtension]():
		s.Type, s.Open, s.Nullable = "object", true, true
		return
	}
	switch pointer := reflect.PointerTo(t); {
	case pointer.Implements(jsonText):
		s.Open, s.Nullable = true, true
	case pointer.Implements(plainText):
		s.Type = "string"
	default:
		b.kind(s, t)
	}
}

func (b typeBuilder) kind(s *Schema, t reflect.Type) {
	switch t.Kind() {
	case reflect.Struct:
		s.Type, s.Properties = "object", map[string]*Schema{}
		b.fields(s, t)
	case reflect.Map:
		s.Type, s.Nullable, s.Values = "object", true, b.of(t.Elem())
	case reflect.Slice, reflect.Array:
		s.Nullable = t.Kind() == reflect.Slice
		if t.Elem().Kind() == reflect.Uint8 {
			s.Type, s.Format = "string", "byte"
			return
		}
		s.Type, s.Items = "array", b.of(t.Elem())
	case reflect.String:
		s.Type = "string"
	case reflect.Bool:
		s.Type = "boolean"
	case reflect.Float32, reflect.Float64:
		s.Type = "number"
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Uint8, reflect.Uint16:
		s.Type, s.Format = "integer", "int32"
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint32, reflect.Uint64:
		s.Type, s.Format = "integer", "int64"
	default:
		s.Open = true
	}
}

// fields adds the fields of a struct, also those of structs that encoding/json
// inlines.
func (b typeBuilder) fields(s *Schema, t reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		inline := name == "" && (field.Anonymous || options == "inline")
		switch {
		case name == "-" || !field.IsExported():
		case inline && field.Type.Kind() == reflect.Pointer:
			b.fields(s, field.Type.Elem())
		case inline:
			b.fields(s, field.Type)
		case name != "":
			s.Properties[name] = b.of(field.Type)
		}
	}
}
