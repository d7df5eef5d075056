package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits of reading one schema or document. They bound what a server or a CRD can
// cost us.
const (
	// maxDocumentBytes is the JSON size of one OpenAPI v3 document. The largest of
	// Kubernetes itself, api/v1, has 2 MB; CRD groups have some more.
	maxDocumentBytes = 32 << 20

	// maxReferences is how many schemas are looked at for one key of a path because
	// others refer to them with $ref or allOf. Kubernetes' documents need two.
	maxReferences = 32
)

// A Schema is an OpenAPI v3 schema, with the document that its references point
// into. It never changes and may be used by any number of goroutines.
type Schema struct {
	document map[string]any // nil for one on its own
	node     map[string]any
}

// ParseSchema reads a schema on its own, as a CustomResourceDefinition has in
// openAPIV3Schema.
func ParseSchema(raw []byte) (*Schema, error) {
	node, err := decodeObject(raw)
	if err != nil {
		return nil, fmt.Errorf("cannot read the schema: %w", err)
	}
	return &Schema{document: node, node: node}, nil
}

// SchemaOf returns the schema of a kind within the OpenAPI v3 document of its
// group version; false if the document has none.
func SchemaOf(doc []byte, group, version, kind string) (*Schema, bool, error) {
	root, err := decodeObject(doc)
	if err != nil {
		return nil, false, fmt.Errorf("cannot read the OpenAPI document of %s: %w", groupKind{group, version, kind}, err)
	}
	schemas := componentSchemas(root)
	name, ok := schemaNameOf(schemas, groupKind{group, version, kind})
	if !ok {
		return nil, false, nil
	}
	return &Schema{document: root, node: asObject(schemas[name])}, true, nil
}

// TypeAt returns the type of the value at path: "string", "integer", "number",
// "boolean", "object", "array", "int-or-string", or "" where the schema does not
// say or allows several. A path element is a key, or "*" for the items of an array
// or the values of a map.
func (s *Schema) TypeAt(path []string) string {
	if s == nil {
		return ""
	}
	node := s.node
	for _, key := range path {
		budget := maxReferences
		if node = s.child(node, key, &budget); node == nil {
			return ""
		}
	}
	budget := maxReferences
	return s.typeOf(node, &budget)
}

// child returns the schema of one key below node, nil if there is none. budget
// counts down the schemas looked at: they may refer to themselves.
func (s *Schema) child(node map[string]any, key string, budget *int) map[string]any {
	if *budget--; *budget < 0 {
		return nil
	}
	if properties := asObject(node["properties"]); properties != nil {
		if p := asObject(properties[key]); p != nil {
			return p
		}
	}
	if key == "*" {
		if items := asObject(node["items"]); items != nil {
			return items
		}
	}
	if values := asObject(node["additionalProperties"]); values != nil {
		return values
	}
	for _, next := range s.referenced(node) {
		if c := s.child(next, key, budget); c != nil {
			return c
		}
	}
	return nil
}

// typeOf returns the type that node itself states, else that of what it refers to.
func (s *Schema) typeOf(node map[string]any, budget *int) string {
	if *budget--; *budget < 0 {
		return ""
	}
	if isIntOrString(node) {
		return "int-or-string"
	}
	switch t := node["type"]; t {
	case "string", "integer", "number", "boolean", "object", "array":
		return t.(string)
	}
	if node["items"] != nil {
		return "array"
	}
	if node["properties"] != nil || asObject(node["additionalProperties"]) != nil {
		return "object"
	}
	for _, next := range s.referenced(node) {
		if t := s.typeOf(next, budget); t != "" {
			return t
		}
	}
	return ""
}

// referenced returns what node takes over as it is: the target of its $ref and the
// parts of its allOf.
func (s *Schema) referenced(node map[string]any) []map[string]any {
	var out []map[string]any
	if ref, ok := node["$ref"].(string); ok {
		if target := resolvePointer(s.document, ref); target != nil {
			out = append(out, target)
		}
	}
	all, _ := node["allOf"].([]any)
	for i := 0; i < len(all) && i < maxReferences; i++ {
		if part := asObject(all[i]); part != nil {
			out = append(out, part)
		}
	}
	return out
}

// isIntOrString knows the three ways in which Kubernetes says so: the CRD's
// extension, the format, and the pair of types. A quantity, which is a string or
// any number, is none.
func isIntOrString(node map[string]any) bool {
	if node["x-kubernetes-int-or-string"] == true || node["format"] == "int-or-string" {
		return true
	}
	for _, word := range []string{"oneOf", "anyOf"} {
		parts, _ := node[word].([]any)
		if len(parts) != 2 {
			continue
		}
		a, b := asObject(parts[0])["type"], asObject(parts[1])["type"]
		if a == "integer" && b == "string" || a == "string" && b == "integer" {
			return true
		}
	}
	return false
}

// resolvePointer returns the object that a reference within the document
// (RFC 6901, "#/components/schemas/X") points to, nil if there is none.
func resolvePointer(document map[string]any, ref string) map[string]any {
	pointer, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	node := document
	for _, key := range strings.Split(pointer, "/") {
		key = strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
		if node = asObject(node[key]); node == nil {
			return nil
		}
	}
	return node
}

// decodeObject decodes a JSON object and nothing behind it. Numbers keep their
// digits.
func decodeObject(raw []byte) (map[string]any, error) {
	if len(raw) > maxDocumentBytes {
		return nil, fmt.Errorf("it has %d bytes, more than the %d that are read", len(raw), maxDocumentBytes)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		return nil, err
	}
	if out == nil {
		return nil, errors.New("it is null, not an object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return out, nil
}

// asObject returns v as a JSON object, nil if it is none.
func asObject(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}
