package discovery

import (
	"encoding/json"
	"strings"
	"testing"
)

const widgetSchema = `{
	"type": "object",
	"properties": {
		"spec": {
			"type": "object",
			"properties": {
				"name": {"type": "string"},
				"replicas": {"type": "integer", "format": "int32"},
				"ratio": {"type": "number"},
				"on": {"type": "boolean"},
				"port": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true},
				"percent": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
				"quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
				"formatted": {"type": "string", "format": "int-or-string"},
				"labels": {"additionalProperties": {"type": "string"}},
				"list": {"items": {"type": "object", "properties": {"image": {"type": "string"}}}},
				"open": {"x-kubernetes-preserve-unknown-fields": true},
				"strange": {"type": ["string", "null"]}
			}
		}
	}
}`

func TestTypeAt(t *testing.T) {
	s, err := ParseSchema([]byte(widgetSchema))
	if err != nil {
		t.Fatal(err)
	}
	f := func(path, want string) {
		t.Helper()
		var keys []string
		if path != "" {
			keys = strings.Split(path, "/")
		}
		if got := s.TypeAt(keys); got != want {
			t.Errorf("the type at %s is %q, want %q", path, got, want)
		}
	}

	f("", "object")
	f("spec", "object")
	f("spec/name", "string")
	f("spec/replicas", "integer")
	f("spec/ratio", "number")
	f("spec/on", "boolean")
	f("spec/port", "int-or-string")
	f("spec/percent", "int-or-string")
	f("spec/formatted", "int-or-string")
	f("spec/labels", "object")
	f("spec/labels/any key", "string")
	f("spec/labels/*", "string")
	f("spec/list", "array")
	f("spec/list/*", "object")
	f("spec/list/*/image", "string")

	// A quantity takes several types, the others say nothing.
	f("spec/quantity", "")
	f("spec/open", "")
	f("spec/open/anything", "")
	f("spec/strange", "")
	f("spec/none", "")
	f("spec/name/below", "")
	f("none/at/all", "")

	if got := (*Schema)(nil).TypeAt(nil); got != "" {
		t.Errorf("no schema says %q", got)
	}
}

func TestSchemaOf(t *testing.T) {
	s, ok, err := SchemaOf([]byte(policyDocument), "policy", "v1", "PodDisruptionBudget")
	if err != nil || !ok {
		t.Fatalf("found %v, %v", ok, err)
	}
	f := func(want string, path ...string) {
		t.Helper()
		if got := s.TypeAt(path); got != want {
			t.Errorf("the type at %v is %q, want %q", path, got, want)
		}
	}
	f("object", "metadata")
	f("string", "metadata", "name")
	f("object", "spec") // an allOf of one reference, with a default
	f("int-or-string", "spec", "minAvailable")
	f("object", "spec", "selector", "matchLabels")
	f("string", "spec", "selector", "matchLabels", "app")

	if _, ok, err := SchemaOf([]byte(policyDocument), "policy", "v1", "Nothing"); ok || err != nil {
		t.Errorf("a kind that is not there: %v, %v", ok, err)
	}
}

func TestSchemaErrors(t *testing.T) {
	f := func(raw, want string) {
		t.Helper()
		_, err := ParseSchema([]byte(raw))
		if err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", raw, err, want)
		}
		if _, _, err := SchemaOf([]byte(raw), "g", "v1", "K"); err == nil || !strings.HasPrefix(err.Error(), "cannot read the OpenAPI document of g/v1: ") {
			t.Errorf("as a document %s\n got %v", raw, err)
		}
	}

	f(`null`, "cannot read the schema: it is null, not an object")
	f(`{} {}`, "cannot read the schema: something follows the object")
	f(`[]`, "cannot read the schema: json: cannot unmarshal array into Go value of type map[string]interface {}")
	f(strings.Repeat(" ", maxDocumentBytes+1), "cannot read the schema: it has 33554433 bytes, more than the 33554432 that are read")
}

// A schema that refers to itself, many times over, costs a bounded time.
func TestSelfReference(t *testing.T) {
	loop := `{"$ref": "#/components/schemas/A"}`
	doc := `{"components": {"schemas": {"A": {"x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "A"}],
		"allOf": [` + strings.Repeat(loop+",", 50) + loop + `]}}}}`
	s, ok, err := SchemaOf([]byte(doc), "g", "v1", "A")
	if err != nil || !ok {
		t.Fatalf("found %v, %v", ok, err)
	}
	if got := s.TypeAt([]string{"a", "b"}); got != "" {
		t.Errorf("it says %q", got)
	}
}

func FuzzParseSchema(f *testing.F) {
	f.Add(`{"properties":{"a":{"items":{"oneOf":[{"type":"string"},{"type":"integer"}]}}}}`, "a/*")
	f.Add(`{"$ref":"#/"}`, "a")
	f.Add(`{"allOf":[{"$ref":"#/allOf/0"},{"$ref":"#/x~1y"}]}`, "*")
	types := map[string]bool{"string": true, "integer": true, "number": true, "boolean": true, "object": true, "array": true, "int-or-string": true, "": true}
	f.Fuzz(func(t *testing.T, raw, path string) {
		s, err := ParseSchema([]byte(raw))
		var object map[string]json.RawMessage
		if isObject := json.Unmarshal([]byte(raw), &object) == nil && object != nil; isObject != (err == nil) {
			t.Fatalf("an object: %v, yet the error is %v", isObject, err)
		}
		if got := s.TypeAt(strings.Split(path, "/")); !types[got] {
			t.Errorf("unknown type %q", got)
		}
		if _, _, err := SchemaOf([]byte(raw), "g", "v1", "K"); (err == nil) != (s != nil) {
			t.Errorf("as a schema %v, as a document %v", s, err)
		}
	})
}
