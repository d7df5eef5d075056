package discovery

import (
	"encoding/json"
	"fmt"
)

// optionsV2 returns the options with the schemas that CRDs have, which are of
// OpenAPI v3, as kube-apiserver writes them into OpenAPI v2.
func optionsV2(opts ConvertOptions) (ConvertOptions, error) {
	schemas := map[string]json.RawMessage{}
	for kind, raw := range opts.Schemas {
		schema, err := decodeObject(raw)
		if err != nil {
			return opts, fmt.Errorf("cannot read the schema of %s: %w", kind, err)
		}
		simplify(schema)
		if schemas[kind], err = encodeDocument(schema); err != nil {
			return opts, err
		}
	}
	opts.Schemas = schemas
	return opts, nil
}

// simplify takes out of a structural schema what OpenAPI v2 cannot say, or what
// kubectl would misread, as kube-apiserver does: a client then validates less, never
// something wrong. A schema is as deeply nested as the JSON decoder allows.
func simplify(schema map[string]any) {
	for _, word := range []string{"oneOf", "anyOf", "allOf", "not"} {
		delete(schema, word)
	}
	nullable, open := schema["nullable"] == true, schema["x-kubernetes-preserve-unknown-fields"] == true
	delete(schema, "nullable")
	if nullable || open {
		delete(schema, "items")
		delete(schema, "properties")
	}
	if nullable || schema["type"] == "array" && schema["items"] == nil || open && schema["type"] == "object" {
		delete(schema, "type")
	}
	for name, property := range asObject(schema["properties"]) {
		if p := asObject(property); p != nil {
			if p["nullable"] == true { // whether null is a value cannot be said
				dropRequired(schema, name)
			}
			simplify(p)
		}
	}
	if values := asObject(schema["additionalProperties"]); values["nullable"] == true {
		delete(schema, "required")
	}
	for _, word := range []string{"items", "additionalProperties"} {
		if s := asObject(schema[word]); s != nil {
			simplify(s)
		}
	}
}

// openKinds takes the properties from kinds that keep unknown fields: with some
// stated, kubectl would refuse all others.
func (d *derivation) openKinds(schemas map[string]any) {
	for _, k := range d.kinds {
		name, ok := schemaNameOf(schemas, groupKind{d.from.group, d.from.version, k.from})
		if schema := asObject(schemas[name]); ok && schema["x-kubernetes-preserve-unknown-fields"] == true {
			delete(schema, "properties")
		}
	}
}
