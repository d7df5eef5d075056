package builtin

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// schemaRef is how a reference to a schema in an OpenAPI v3 document begins.
const schemaRef = "#/components/schemas/"

// OpenAPI returns the kind's schema as OpenAPI v3 has it, with descriptions and with
// what kubectl needs to merge lists. Types of other packages are references, under the
// names that kube-apiserver gives them; whether a document has them is not known here.
// It states no field as required: the Go types do not tell. The caller must not change it.
func (s *Schema) OpenAPI() []byte {
	if text, ok := written.Load(s.Type()); ok {
		return text.([]byte)
	}
	w := schemaWriter{pkg: s.Type().PkgPath()}
	text, err := json.Marshal(w.schemaOf(s.Type(), ""))
	if err != nil {
		panic(err) // it is made of maps, lists and texts
	}
	written.Store(s.Type(), text)
	return text
}

// written has the schemas that were asked for, by their Go types: MVP asks whenever a
// server changes.
var written sync.Map

// A schemaWriter writes the schemas of the types of one package.
type schemaWriter struct {
	pkg  string
	open []reflect.Type // the structs that it is in
}

func (w *schemaWriter) schemaOf(t reflect.Type, description string) map[string]any {
	t = deref(t)
	out := map[string]any{}
	if description != "" {
		out["description"] = description
	}
	if t.Kind() == reflect.Struct && t.PkgPath() != "" && t.PkgPath() != w.pkg {
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
		if text := docs(t)[""]; text != "" && description == "" {
			out["description"] = text
		}
	}
	return out
}

// fields adds the schemas of the fields of t to properties, but for those that every kind
// has: apiVersion and kind are everybody's own.
func (w *schemaWriter) fields(t reflect.Type, properties map[string]any) {
	for f := range jsonFields(t) {
		if f.declarer.Name() == "TypeMeta" {
			continue
		}
		property := w.schemaOf(f.Type, docs(f.declarer)[f.name])
		for key, hint := range patchHints(f.Tag) {
			property[key] = hint
		}
		properties[f.name] = property
	}
}

// patchHints are what a client that makes strategic merge patches needs of a list.
func patchHints(tag reflect.StructTag) map[string]string {
	hints := map[string]string{}
	for key, name := range map[string]string{"patchStrategy": "x-kubernetes-patch-strategy", "patchMergeKey": "x-kubernetes-patch-merge-key"} {
		if v := tag.Get(key); v != "" {
			hints[name] = v
		}
	}
	return hints
}

// docs are the descriptions of t and, by their names, of its fields.
func docs(t reflect.Type) map[string]string {
	d, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string })
	if !ok {
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
