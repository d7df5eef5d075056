package kindschema

import (
	"strings"
	"testing"
)

func TestFieldsAt(t *testing.T) {
	leaf := &Schema{Type: "string"}
	root := &Schema{Type: "object", Properties: map[string]*Schema{"spec": {Type: "object", Properties: map[string]*Schema{
		"list":  {Type: "array", Items: &Schema{Type: "object", Properties: map[string]*Schema{"b": leaf, "a": leaf}}},
		"map":   {Type: "object", Values: &Schema{Type: "object", Properties: map[string]*Schema{"c": leaf}}},
		"open":  {Type: "object", Open: true, Properties: map[string]*Schema{"d": leaf}},
		"whole": {Type: "object", Embedded: true, Properties: map[string]*Schema{"spec": leaf}},
	}}}}
	f := func(path, want string) {
		t.Helper()
		names, ok := root.FieldsAt(strings.Fields(path))
		got := strings.Join(names, " ")
		if !ok {
			got = "any"
		}
		if got != want {
			t.Errorf("at %q are %q, want %q", path, got, want)
		}
	}

	f("", "apiVersion kind metadata spec")
	f("spec", "list map open whole")
	f("spec list *", "a b")
	f("spec map k", "c")
	f("spec whole", "apiVersion kind metadata spec")
	for _, path := range []string{"spec list", "spec map", "spec open", "spec list * a", "status", "spec none deeper"} {
		f(path, "any")
	}
}
