package discovery

import (
	"strings"
	"testing"
)

func TestFieldsAt(t *testing.T) {
	schema, err := ParseSchema([]byte(`{"type":"object","properties":{
		"spec":{"type":"object","properties":{
			"n":{"type":"integer"},
			"list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"},"b":{}}}},
			"map":{"type":"object","additionalProperties":{"type":"object","properties":{"c":{}}}},
			"open":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"in":{}}},
			"any":{"type":"object"},
			"parts":{"allOf":[{"$ref":"#/properties/spec/properties/list/items"}]},
			"template":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{}}}
		}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	f := func(path, want string) {
		t.Helper()
		names, ok := schema.FieldsAt(strings.Fields(path))
		got := strings.Join(names, " ")
		if !ok {
			got = "any"
		}
		if got != want {
			t.Errorf("at %q are %q, want %q", path, got, want)
		}
	}

	f("", "apiVersion kind metadata spec")
	f("spec", "any list map n open parts template")
	f("spec list *", "a b")
	f("spec map k", "c")
	f("spec parts", "a b")
	f("spec template", "apiVersion kind metadata spec")
	for _, path := range []string{"spec n", "spec list", "spec map", "spec open", "spec any", "status", "spec none deeper"} {
		f(path, "any")
	}
	if _, ok := (*Schema)(nil).FieldsAt(nil); ok {
		t.Error("no schema knows fields")
	}
}
