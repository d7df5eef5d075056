package kindschema

import (
	"fmt"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
)

// wheelCRD has one version, whose schema says something of everything.
const wheelCRD = `{"kind":"CustomResourceDefinition","spec":{"group":"acme.io","names":{"kind":"Wheel","plural":"wheels"},"versions":[{"name":"v1","schema":{"openAPIV3Schema":{
	"type":"object","required":["spec"],"properties":{"spec":{"type":"object","required":["size"],"properties":{
		"size":{"type":"integer","format":"int32","minimum":1,"maximum":100},
		"color":{"type":"string","enum":["red","blue"],"nullable":true},
		"name":{"type":"string","pattern":"^[a-z]{2,4}$"},
		"port":{"x-kubernetes-int-or-string":true},
		"ratio":{"type":"number"},
		"since":{"type":"string","format":"date-time"},
		"open":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
		"labels":{"type":"object","additionalProperties":{"type":"string"},"maxProperties":2},
		"spokes":{"type":"array","minItems":1,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["id"],"items":{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"length":{"type":"integer"}}}},
		"tags":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
		"either":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}]},
		"pod":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object","properties":{"x":{"type":"integer"}}}}}
	}}}}}}]}}`

func wheel(t *testing.T) *Schema {
	t.Helper()
	var s Schemas
	if err := s.Add([]byte(wheelCRD)); err != nil {
		t.Fatal(err)
	}
	kind, found, ok := s.FindResource("acme.io", "v1", "wheels")
	if !ok || kind.String() != "acme.io/v1 Wheel" {
		t.Fatalf("found %v, %v", kind, ok)
	}
	return found
}

func text(violations []Violation) string {
	lines := make([]string, len(violations))
	for i, v := range violations {
		lines[i] = v.String()
	}
	return strings.Join(lines, "; ")
}

func TestValidate(t *testing.T) {
	s := wheel(t)
	f := func(spec, want string) {
		t.Helper()
		violations, err := s.Validate(fmt.Appendf(nil, `{"apiVersion":"acme.io/v1","kind":"Wheel","metadata":{"name":"w"},"spec":%s}`, spec))
		if err != nil {
			t.Fatal(err)
		}
		if got := text(violations); got != want {
			t.Errorf("%s\n got %s\nwant %s", spec, got, want)
		}
	}

	f(`{"size":1,"color":"red","name":"abc","port":"http","ratio":0.5,"since":"2026-01-02T03:04:05Z","open":{"x":1},"labels":{"a":"b"},"spokes":[{"id":"a","length":2}],"either":{"a":"x"}}`, "")
	f(`{"size":1,"port":80,"color":null,"ratio":1,"name":null}`, "") // a null that is no value is dropped
	f(`{"size":1,"pod":{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{}},"spec":{"x":1}}}`, "")

	f(`{}`, "spec.size: is required")
	f(`{"size":null}`, `spec.size: must be of type integer: "null"`)
	f(`{"size":"1"}`, `spec.size: must be of type integer: "string"`)
	f(`{"size":0}`, "spec.size: should be greater than or equal to 1")
	f(`{"size":101}`, "spec.size: should be less than or equal to 100")
	f(`{"size":1.5}`, `spec.size: must be of type int32: "float64"`)
	f(`{"size":1,"color":"green"}`, "spec.color: should be one of [red blue]")
	f(`{"size":1,"name":"A"}`, "spec.name: should match '^[a-z]{2,4}$'")
	f(`{"size":1,"port":true}`, `spec.port: must be of type integer,string: "boolean"`)
	f(`{"size":1,"since":"now"}`, `spec.since: must be of type date-time: "now"`)
	f(`{"size":1,"Size":2}`, "spec.Size: unknown field")
	f(`{"size":1,"x.y/z":2}`, `spec["x.y/z"]: unknown field`)
	f(`{"size":1,"labels":{"a":1}}`, `spec.labels.a: must be of type string: "integer"`)
	f(`{"size":1,"labels":{"a":"","b":"","c":""}}`, "spec.labels: should have at most 2 properties")
	f(`{"size":1,"spokes":[]}`, "spec.spokes: should have at least 1 items")
	f(`{"size":1,"spokes":[{"length":"2"}]}`, `spec.spokes[0].id: is required; spec.spokes[0].length: must be of type integer: "string"`)
	f(`{"size":1,"spokes":[{"id":"a"},{"id":"a","length":1}]}`, `spec.spokes[1]: duplicate of [0]: {"id":"a"}`)
	f(`{"size":1,"tags":["a","b","a"]}`, `spec.tags[2]: duplicate of [0]: "a"`)
	f(`{"size":1,"either":{"a":"","b":""}}`, "spec.either: must validate one and only one schema (oneOf). Found 2 valid alternatives")
	f(`{"size":1,"pod":{"spec":{"x":"1","y":1}}}`, `spec.pod.spec.x: must be of type integer: "string"; spec.pod.spec.y: unknown field`)
	f(`"x"`, `spec: must be of type object: "string"`)

	if _, err := s.Validate([]byte(`{`)); err == nil || !strings.Contains(err.Error(), "cannot check the object against its schema: unexpected EOF") {
		t.Errorf("half an object gave %v", err)
	}
}

// A document says of which kinds its schemas are; one may refer to itself.
func TestDocuments(t *testing.T) {
	const schemas = `{
		"io.acme.v1.Tree":{"type":"object","x-kubernetes-group-version-kind":[{"group":"acme.io","version":"v1","kind":"Tree"}],"properties":{
			"spec":{"allOf":[{"$ref":"#/PLACE/io.acme.v1.Node"}],"default":{}}}},
		"io.acme.v1.Node":{"type":"object","properties":{
			"left":{"$ref":"#/PLACE/io.acme.v1.Node"},
			"port":{"$ref":"#/PLACE/io.acme.Port"},
			"size":{"oneOf":[{"type":"string"},{"type":"number"}]}}},
		"io.acme.Port":{"format":"int-or-string","type":"string"}}`
	f := func(document string) {
		t.Helper()
		var s Schemas
		if err := s.Add([]byte(document)); err != nil {
			t.Fatal(err)
		}
		_, tree, ok := s.FindResource("acme.io", "v1", "trees")
		if !ok {
			t.Fatal("the document has no trees")
		}
		violations, err := tree.Validate([]byte(`{"spec":{"left":{"left":{"port":1,"size":"1Gi"},"port":true,"size":1.5},"x":1}}`))
		if got, want := text(violations), `spec.left.port: must be of type integer,string: "boolean"; spec.x: unknown field`; err != nil || got != want {
			t.Errorf("%s\n got %s, %v\nwant %s", document, got, err, want)
		}
		if got := tree.TypeAt([]string{"spec", "left", "port"}) + " " + tree.TypeAt([]string{"spec"}); got != "int-or-string object" {
			t.Errorf("the types are %s", got)
		}
	}

	f(`{"swagger":"2.0","definitions":` + strings.ReplaceAll(schemas, "PLACE", "definitions") + `}`)
	f(`{"openapi":"3.0.0","components":{"schemas":` + strings.ReplaceAll(schemas, "PLACE", "components/schemas") + `}}`)
}

func TestAddRefuses(t *testing.T) {
	f := func(document, want string) {
		t.Helper()
		var s Schemas
		if err := s.Add([]byte(document)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gave %v, want %q", document, err, want)
		}
	}
	f(`{"kind":"Pod"}`, "it is neither a CustomResourceDefinition nor an OpenAPI document")
	f(`{"kind":"CustomResourceDefinition","spec":{"versions":[{"name":"v1"}]}}`, "the version v1 of the CustomResourceDefinition has no schema")
	f(`[]`, "cannot read the schemas: json: cannot unmarshal array")
}

func TestOfType(t *testing.T) {
	s := OfType(reflect.TypeFor[policyv1.PodDisruptionBudget]())
	f := func(path, want string) {
		t.Helper()
		if got := s.TypeAt(strings.Split(path, ".")); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	f("spec.minAvailable", "int-or-string")
	f("spec.selector.matchLabels.x", "string")
	f("spec.selector.matchExpressions.*.values.*", "string")
	f("status.disruptedPods", "object")
	f("status.currentHealthy", "integer")
	f("metadata.creationTimestamp", "string")
	f("spec.nothing", "")
	violations, err := s.Validate([]byte(`{"spec":{"minAvailable":true,"selector":null,"x":1},"status":{"currentHealthy":"1"}}`))
	if got, want := text(violations), `spec.minAvailable: must be of type integer,string: "boolean"; spec.x: unknown field; status.currentHealthy: must be of type integer: "string"`; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// TestDependencies holds the import graph: schemas stand on nothing of ours.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/mixed-version-proxy/mvp/"
	for dep := range strings.Lines(string(out)) {
		dep = strings.TrimSpace(dep)
		if strings.HasPrefix(dep, module) && dep != module+"policies/dryrun/kindschema" || strings.HasPrefix(dep, "k8s.io/client-go") {
			t.Errorf("kindschema must not depend on %s", dep)
		}
	}
}
