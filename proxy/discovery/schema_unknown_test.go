package discovery

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestUnknown(t *testing.T) {
	const crd = `{"type":"object","properties":{
		"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"type":"object"},
		"spec":{"type":"object","properties":{
			"n":{"type":"integer"},
			"port":{"x-kubernetes-int-or-string":true},
			"list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}},
			"map":{"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"string"}}}},
			"labels":{"type":"object","additionalProperties":true},
			"open":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"in":{"type":"object","properties":{"a":{"type":"string"}}}}},
			"any":{"type":"object"},
			"template":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object","properties":{"a":{"type":"string"}}}}},
			"matrix":{"type":"array","items":{"type":"array","items":{"type":"object","properties":{"a":{}}}}}
		}}}}`
	schema, err := ParseSchema([]byte(crd))
	if err != nil {
		t.Fatal(err)
	}
	f := func(object, want string) {
		t.Helper()
		checkUnknown(t, schema, object, want)
	}

	f(`{"apiVersion":"v1","kind":"K","metadata":{"name":"x","nonsense":1},"spec":{"n":1,"port":{"x":1},"list":[{"a":"b"}],"map":{"k":{"a":""}}}}`, "")
	f(`{"spec":{"m":1},"status":{}}`, "spec.m status")
	f(`{"spec":{"list":[{"a":"b"},{"b":{"c":1}},7,null],"map":{"k.x/y":{"b":1}}}}`, "spec.list[1].b spec.map.k.x/y.b")
	f(`{"spec":{"labels":{"x":{"y":1}},"any":{"x":1},"open":{"x":{"y":1},"in":{"a":"","b":1}}}}`, "spec.open.in.b")
	f(`{"spec":{"template":{"apiVersion":"v1","kind":"K","metadata":{"x":1},"spec":{"b":1},"status":1}}}`, "spec.template.spec.b spec.template.status")
	f(`{"spec":{"x":null,"n":null,"matrix":[[{"a":1}],[{"b":1}]]}}`, "spec.matrix[1][0].b spec.x=null")

	// A value of another type than the schema's is the server's to refuse.
	f(`{"spec":{"list":{"x":1},"n":{"x":1},"map":[{"x":1}]}}`, "")
	f(`{"spec":[]}`, "")
	f(`{}`, "")

	many := `{"spec":{"x":1,"deep":` + strings.Repeat(`{"a":`, 500) + "1" + strings.Repeat("}", 500) + `}}`
	f(many, "spec.deep spec.x")
	checkUnknown(t, nil, `{"spec":1}`, "")
}

// References are followed, as in an OpenAPI document, also ones to themselves.
func TestUnknownThroughReferences(t *testing.T) {
	const doc = `{"components":{"schemas":{
		"g.v1.Thing":{"type":"object","properties":{"spec":{"allOf":[{"$ref":"#/components/schemas/g.v1.Spec"}],"default":{}},
			"raw":{"$ref":"#/components/schemas/g.Raw"},"meta":{"$ref":"#/components/schemas/g.v1.Loop"}},
			"x-kubernetes-group-version-kind":[{"group":"g","version":"v1","kind":"Thing"}]},
		"g.v1.Spec":{"type":"object","properties":{"a":{"type":"string"},"next":{"$ref":"#/components/schemas/g.v1.Spec"}}},
		"g.v1.Loop":{"$ref":"#/components/schemas/g.v1.Loop"},
		"g.Raw":{"type":"object"}}}}`
	schema, ok, err := SchemaOf([]byte(doc), "g", "v1", "Thing")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	checkUnknown(t, schema, `{"spec":{"a":"","b":1,"next":{"next":{"c":1}}},"raw":{"x":1},"meta":{"x":1},"y":1}`, "spec.b spec.next.next.c y")
}

func checkUnknown(t *testing.T, schema *Schema, object, want string) {
	t.Helper()
	var decoded map[string]any
	if err := json.Unmarshal([]byte(object), &decoded); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range schema.Unknown(decoded) {
		if f.Null {
			f.Path += "=null"
		}
		got = append(got, f.Path)
	}
	if strings.Join(got, " ") != want {
		t.Errorf("of %.200s unknown are %q, want %q", object, got, want)
	}
}
