package discovery

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// editSchema makes the schema of a converted kind, until here the server's under
// the client's name, into the client's.
func (d *derivation) editSchema(schemas map[string]any, kind string, opts ConvertOptions) error {
	name, ok := schemaNameOf(schemas, groupKind{d.from.group, d.from.version, kind})
	if !ok {
		return fmt.Errorf("cannot derive the OpenAPI document of %s: that of %s has no schema for the kind of %s", d.from, d.to, kind)
	}
	schema := asObject(schemas[name])
	if raw, ok := opts.Schemas[kind]; ok {
		own, err := decodeObject(raw)
		if err != nil {
			return fmt.Errorf("cannot read the schema of %s %s: %w", d.from, kind, err)
		}
		schema = replaceSchema(schema, own)
		openMissing(schemas, schema)
		schemas[name] = schema
	} else {
		for _, r := range opts.Renames[kind] {
			undoRename(schemas, schema, r)
		}
	}
	d.retargetAPIVersion(schema)
	return nil
}

// replaceSchema returns the client's own schema with what every kind has and a CRD
// does not state: apiVersion, kind, metadata, and the kind that it is of.
func replaceSchema(target, own map[string]any) map[string]any {
	own[extensionGVK] = target[extensionGVK]
	if own["type"] == nil {
		own["type"] = "object"
	}
	if own["description"] == nil && target["description"] != nil {
		own["description"] = target["description"]
	}
	properties := asObject(own["properties"])
	if properties == nil {
		properties = map[string]any{}
		own["properties"] = properties
	}
	for _, field := range []string{"apiVersion", "kind", "metadata"} {
		if p := asObject(asObject(target["properties"])[field]); p != nil {
			properties[field] = cloneJSON(p)
		}
	}
	return own
}

// openMissing makes what node refers to and is not there any value.
func openMissing(schemas map[string]any, node any) {
	switch node := node.(type) {
	case []any:
		for _, e := range node {
			openMissing(schemas, e)
		}
	case map[string]any:
		if ref, ok := node["$ref"].(string); ok && schemas[strings.TrimPrefix(ref, schemaRef)] == nil {
			delete(node, "$ref")
			maps.Copy(node, anyValue(nil))
		}
		for _, e := range node {
			openMissing(schemas, e)
		}
	}
}

// retargetAPIVersion adjusts a schema that states its own apiVersion.
func (d *derivation) retargetAPIVersion(schema map[string]any) {
	p := asObject(asObject(schema["properties"])["apiVersion"])
	if p == nil {
		return
	}
	if p["default"] == d.to.String() {
		p["default"] = d.from.String()
	}
	values, _ := p["enum"].([]any)
	for i, v := range values {
		if v == d.to.String() {
			values[i] = d.from.String()
		}
	}
}

// undoRename moves the schema of the server's field to where the client has it.
// A field that the schema does not know (it preserves unknown ones, or the rule is
// for another shape) is left to the server to judge.
func undoRename(schemas, root map[string]any, r FieldRename) {
	if len(r.From) == 0 || len(r.To) == 0 {
		return
	}
	toParent, key := descend(schemas, root, r.To[:len(r.To)-1], false), r.To[len(r.To)-1]
	properties := asObject(asObject(toParent)["properties"])
	field := asObject(properties[key])
	if field == nil {
		return
	}
	inPlace := slices.Equal(r.From, r.To)
	if inPlace || r.Type != "" {
		field = anyValue(field)
	}
	delete(properties, key)
	required := dropRequired(toParent, key)
	fromParent, fromKey := descend(schemas, root, r.From[:len(r.From)-1], true), r.From[len(r.From)-1]
	if fromParent == nil { // through a list that is not there: nowhere to put it
		properties[key] = field
		return
	}
	fromProperties := asObject(fromParent["properties"])
	if fromProperties == nil {
		fromProperties = map[string]any{}
		fromParent["properties"] = fromProperties
	}
	fromProperties[fromKey] = field
	if required && !inPlace && slices.Equal(r.From[:len(r.From)-1], r.To[:len(r.To)-1]) {
		list, _ := fromParent["required"].([]any)
		fromParent["required"] = append(list, fromKey)
	}
}

// anyValue returns a schema that allows any value, with the description of field.
func anyValue(field map[string]any) map[string]any {
	out := map[string]any{"x-kubernetes-preserve-unknown-fields": true}
	if text, ok := field["description"]; ok {
		out["description"] = text
	}
	return out
}

// dropRequired removes key from the required fields of schema and reports whether
// it was there.
func dropRequired(schema map[string]any, key string) bool {
	list, _ := schema["required"].([]any)
	kept := slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == key })
	if len(kept) == len(list) {
		return false
	}
	if len(kept) == 0 {
		delete(schema, "required")
	} else {
		schema["required"] = kept
	}
	return true
}

// descend returns the schema at path below node, to be changed: what is reached
// through a reference is copied into its place first, because others refer to it
// too. With create, missing objects are added. nil: there is no such place.
func descend(schemas, node map[string]any, path []string, create bool) map[string]any {
	for _, key := range path {
		place, name := placeOf(node, key, create)
		if place == nil {
			return nil
		}
		next := asObject(place[name])
		if next == nil {
			next = map[string]any{"type": "object"}
		}
		next = inlined(schemas, next)
		place[name] = next
		node = next
	}
	return node
}

// placeOf returns the object and the key in it that hold the schema of one path
// element below node.
func placeOf(node map[string]any, key string, create bool) (map[string]any, string) {
	properties := asObject(node["properties"])
	switch {
	case asObject(properties[key]) != nil:
		return properties, key
	case key == "*" && asObject(node["items"]) != nil:
		return node, "items"
	case asObject(node["additionalProperties"]) != nil:
		return node, "additionalProperties"
	case !create || key == "*":
		return nil, ""
	}
	if properties == nil {
		properties = map[string]any{}
		node["properties"] = properties
	}
	return properties, key
}

// inlined returns node with what it refers to copied into it. Documents refer in
// two ways: by $ref alone, or by an allOf of one $ref beside a default and a
// description, which stay.
func inlined(schemas, node map[string]any) map[string]any {
	for range maxReferences {
		ref, all := node["$ref"], node["allOf"]
		if parts, ok := all.([]any); ok && len(parts) == 1 && ref == nil {
			ref = asObject(parts[0])["$ref"]
		}
		text, _ := ref.(string)
		name, ok := strings.CutPrefix(text, schemaRef)
		target := asObject(schemas[name])
		if !ok || target == nil {
			return node
		}
		merged := asObject(cloneJSON(target))
		delete(merged, extensionGVK) // it is now a part, not the kind
		for key, v := range node {
			if key != "$ref" && key != "allOf" {
				merged[key] = v
			}
		}
		node = merged
	}
	return node
}

// cloneJSON copies a decoded JSON value.
func cloneJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		for key, e := range out {
			out[key] = cloneJSON(e)
		}
		return out
	case []any:
		out := slices.Clone(v)
		for i, e := range out {
			out[i] = cloneJSON(e)
		}
		return out
	}
	return v
}
