package builtin

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// schemaRef is how a reference to a schema in an OpenAPI v3 document begins.
const schemaRef = "#/components/schemas/"

// OpenAPI returns the kind's schema as OpenAPI v3 has it, with descriptions and with
// what kubectl needs to merge lists. Types of other packages are references, under the
// names that kube-apiserver gives them; whether a document has them is not known here.
// It states no field as required: the Go types do not tell.
func (s *Schema) OpenAPI() []byte {
	w := schemaWriter{pkg: s.Type().PkgPath()}
	text, err := json.Marshal(w.schemaOf(s.Type(), ""))
	if err != nil {
		panic(err) // it is made of maps, lists and texts
	}
	return text
}

// SameFields reports whether an object of the kind of s says the same as one of t with
// the same fields: both have the same fields of the same types, and leave out the same
// ones when they are empty.
func (s *Schema) SameFields(t *Schema) bool {
	v, w := schemaWriter{pkg: s.Type().PkgPath(), bare: true}, schemaWriter{pkg: t.Type().PkgPath(), bare: true}
	return reflect.DeepEqual(v.schemaOf(s.Type(), ""), w.schemaOf(t.Type(), ""))
}

// A schemaWriter writes the schemas of the types of one package.
type schemaWriter struct {
	pkg  string
	bare bool           // for a comparison: all types in place, no descriptions, and what is left out
	open []reflect.Type // the structs that it is in
}

func (w *schemaWriter) schemaOf(t reflect.Type, description string) map[string]any {
	t = deref(t)
	out := map[string]any{}
	if description != "" {
		out["description"] = description
	}
	if !w.bare && t.Kind() == reflect.Struct && t.PkgPath() != "" && t.PkgPath() != w.pkg {
		out["$ref"] = schemaRef + definitionName(t)
		return out
	}
	switch name := typeName(t); {
	case t.Kind() == reflect.Slice && name == "string":
		out["type"], out["format"] = "string", "byte"
	case name != "":
		out["type"] = name
	}
	switch t.Kind() {
	case reflect.Map:
		out["additionalProperties"] = w.schemaOf(t.Elem(), "")
	case reflect.Slice, reflect.Array:
		if out["type"] == "array" {
			out["items"] = w.schemaOf(t.Elem(), "")
		}
	case reflect.Int32, reflect.Int64:
		out["format"] = t.Kind().String()
	case reflect.Struct:
		if slices.Contains(w.open, t) {
			break // a type that holds itself has any fields there
		}
		w.open = append(w.open, t)
		properties := map[string]any{}
		w.fields(t, properties)
		w.open = w.open[:len(w.open)-1]
		out["properties"] = properties
		if text := w.docs(t)[""]; text != "" && description == "" {
			out["description"] = text
		}
	}
	return out
}

// fields adds the schemas of the fields of t to properties.
func (w *schemaWriter) fields(t reflect.Type, properties map[string]any) {
	descriptions := w.docs(t)
	for i := range t.NumField() {
		field := t.Field(i)
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case tag == "-":
		case field.Anonymous && tag == "":
			w.inlined(field.Type, properties)
		case tag != "":
			property := w.schemaOf(field.Type, descriptions[tag])
			maps.Copy(property, patchHints(field.Tag))
			if w.bare {
				property["left out"] = strings.Contains(options, "omitempty")
			}
			properties[tag] = property
		}
	}
}

// inlined adds the fields of an embedded struct; those that every kind has,
// apiVersion and kind, are everybody's own.
func (w *schemaWriter) inlined(t reflect.Type, properties map[string]any) {
	if t = deref(t); t.Kind() == reflect.Struct && t.Name() != "TypeMeta" {
		w.fields(t, properties)
	}
}

// patchHints are what a client that makes strategic merge patches needs of a list.
func patchHints(tag reflect.StructTag) map[string]any {
	hints := map[string]any{}
	for key, name := range map[string]string{"patchStrategy": "x-kubernetes-patch-strategy", "patchMergeKey": "x-kubernetes-patch-merge-key"} {
		if v := tag.Get(key); v != "" {
			hints[name] = v
		}
	}
	return hints
}

// docs are the descriptions of t and, by their names, of its fields.
func (w *schemaWriter) docs(t reflect.Type) map[string]string {
	d, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string })
	if w.bare || !ok {
		return nil
	}
	return d.SwaggerDoc()
}

// definitionName is what kube-apiserver calls the schema of a type:
// io.k8s.api.core.v1.PodSpec.
func definitionName(t reflect.Type) string {
	host, path, _ := strings.Cut(t.PkgPath(), "/")
	labels := strings.Split(host, ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".") + "." + strings.ReplaceAll(path, "/", ".") + "." + t.Name()
}
