package demo

import (
	"maps"
	"reflect"
	"strings"

	"k8s.io/client-go/kubernetes/scheme"
)

// models makes OpenAPI schemas of the Go types of built-in kinds. They hold what
// clients use: names, types, descriptions and the keys of strategic merges. They
// say of no field that it is required.
type models struct {
	// refPrefix is before the name of a schema in a reference.
	refPrefix string

	// v2 is whether the document is one of OpenAPI v2, which has no oneOf.
	v2 bool

	schemas map[string]any
}

// Types of Kubernetes tell their OpenAPI properties by these methods.
type (
	modelNamer   interface{ OpenAPIModelName() string }
	schemaTyper  interface{ OpenAPISchemaType() []string }
	formatter    interface{ OpenAPISchemaFormat() string }
	oneOfTyper   interface{ OpenAPIV3OneOfTypes() []string }
	swaggerTyper interface{ SwaggerDoc() map[string]string }
)

// add puts k and all that it refers to among the schemas.
func (m *models) add(k *kind) {
	var schema map[string]any
	switch {
	case k.custom != nil:
		schema = m.customSchema(k)
	case k.typed():
		schema = m.builtinSchema(k)
	default:
		schema = map[string]any{"type": "object"} // its fields are not known here
	}
	schema["x-kubernetes-group-version-kind"] = []any{
		map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind},
	}
	m.schemas[k.modelName()] = schema
}

// modelName is the name of k's schema: io.k8s.api.policy.v1.PodDisruptionBudget,
// com.example.myapps.v1beta1.CustomResource.
func (k *kind) modelName() string {
	if k.typed() {
		if typed, err := scheme.Scheme.New(k.GroupVersionKind); err == nil {
			if namer, ok := typed.(modelNamer); ok {
				return namer.OpenAPIModelName()
			}
		}
	}
	labels := strings.Split(k.Group, ".")
	name := ""
	for _, label := range labels {
		name = label + "." + name
	}
	return name + k.Version + "." + k.Kind
}

func (m *models) builtinSchema(k *kind) map[string]any {
	typed, err := scheme.Scheme.New(k.GroupVersionKind)
	if err != nil {
		return map[string]any{"type": "object"}
	}
	t := reflect.TypeOf(typed).Elem()
	m.of(t)
	schema, _ := m.schemas[k.modelName()].(map[string]any)
	return maps.Clone(schema)
}

// customSchema is the definition's schema with the fields of every object.
func (m *models) customSchema(k *kind) map[string]any {
	source := map[string]any(k.custom.schema)
	if m.v2 {
		source = schemaV2(source)
	}
	schema := maps.Clone(source)
	properties := maps.Clone(jsonSchema(source).child("properties"))
	if properties == nil {
		properties = jsonSchema{}
	}
	text := map[string]any{"type": "string"}
	properties["apiVersion"], properties["kind"] = text, text
	properties["metadata"] = m.of(reflect.TypeOf(objectMeta))
	schema["properties"] = map[string]any(properties)
	return schema
}

// of returns the schema of a Go type, a reference where it is a named struct.
func (m *models) of(t reflect.Type) map[string]any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	value := reflect.New(t).Interface()
	if typer, ok := value.(schemaTyper); ok {
		return m.special(typer, value)
	}
	switch t.Kind() {
	case reflect.Struct:
		return m.structRef(t, value)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "format": "byte"}
		}
		return map[string]any{"type": "array", "items": m.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": m.of(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int32:
		return map[string]any{"type": "integer", "format": "int32"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer", "format": "int64"}
	case reflect.Float64, reflect.Float32:
		return map[string]any{"type": "number", "format": "double"}
	}
	return map[string]any{}
}

// special makes the schema of a type that does not look in JSON as it does in Go:
// a time, a quantity, an int-or-string.
func (m *models) special(typer schemaTyper, value any) map[string]any {
	schema := map[string]any{}
	if f, ok := value.(formatter); ok && f.OpenAPISchemaFormat() != "" {
		schema["format"] = f.OpenAPISchemaFormat()
	}
	if names := typer.OpenAPISchemaType(); len(names) > 0 {
		schema["type"] = names[0]
	}
	if one, ok := value.(oneOfTyper); ok && !m.v2 {
		delete(schema, "type")
		var alternatives []any
		for _, name := range one.OpenAPIV3OneOfTypes() {
			alternatives = append(alternatives, map[string]any{"type": name})
		}
		schema["oneOf"] = alternatives
	}
	namer, ok := value.(modelNamer)
	if !ok {
		return schema
	}
	m.schemas[namer.OpenAPIModelName()] = schema
	return map[string]any{"$ref": m.refPrefix + namer.OpenAPIModelName()}
}

// structRef makes the schema of a struct, once, and returns a reference to it.
func (m *models) structRef(t reflect.Type, value any) map[string]any {
	namer, ok := value.(modelNamer)
	if !ok {
		return map[string]any{"type": "object"} // RawExtension and its like: anything
	}
	name := namer.OpenAPIModelName()
	ref := map[string]any{"$ref": m.refPrefix + name}
	if _, done := m.schemas[name]; done {
		return ref
	}
	schema := map[string]any{"type": "object"}
	m.schemas[name] = schema // before its fields: types refer to themselves
	properties := map[string]any{}
	m.fields(t, value, properties)
	if len(properties) > 0 {
		schema["properties"] = properties
	}
	if doc := docOf(value, ""); doc != "" {
		schema["description"] = doc
	}
	return ref
}

func (m *models) fields(t reflect.Type, value any, properties map[string]any) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" && (f.Anonymous || strings.Contains(options, "inline")) {
			m.fields(f.Type, reflect.New(f.Type).Interface(), properties)
			continue
		}
		schema := m.of(f.Type)
		if _, isRef := schema["$ref"]; isRef && !m.v2 {
			// Beside a $ref nothing else may stand in v3.
			schema = map[string]any{"allOf": []any{schema}}
		}
		if doc := docOf(value, name); doc != "" {
			schema["description"] = doc
		}
		if strategy := f.Tag.Get("patchStrategy"); strategy != "" {
			schema["x-kubernetes-patch-strategy"] = strategy
		}
		if key := f.Tag.Get("patchMergeKey"); key != "" {
			schema["x-kubernetes-patch-merge-key"] = key
		}
		properties[name] = schema
	}
}

func docOf(value any, name string) string {
	if d, ok := value.(swaggerTyper); ok {
		return d.SwaggerDoc()[name]
	}
	return ""
}
