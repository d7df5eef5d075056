package dryrun

import (
	"fmt"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/policies/dryrun/kindschema"
)

// What a server is sent is checked against the schema of its version, and each mistake
// is put down to the policy that made it.
func TestViolations(t *testing.T) {
	set := load(t, t.TempDir(), thingPolicies)
	var schemas kindschema.Schemas
	err := schemas.Add([]byte(`{"kind":"CustomResourceDefinition","spec":{"group":"acme.io","names":{"kind":"Wheel","plural":"wheels"},"versions":[{"name":"v1","schema":{"openAPIV3Schema":{
		"type":"object","properties":{"spec":{"type":"object","required":["b"],"properties":{"b":{"type":"integer"},"c":{"type":"string"},"d":{"type":"string"}}}}}}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	options := Options{Schema: func(v convert.Version) *kindschema.Schema {
		found, _ := schemas.Find(kindschema.Kind{Group: v.Group, Version: v.Version, Kind: v.Kind})
		return found
	}}
	f := func(method, target, body, want string) {
		t.Helper()
		template := Template{Method: method, Target: target}
		r := Run(set, template.Request([]byte(body)), options)
		if got := fmt.Sprint(r.Violations); got != want || r.OK() != (want == "[]") || r.Changes != nil {
			t.Errorf("%s %s\n got %s, %t\nwant %s", method, body, got, r.OK(), want)
		}
	}

	const wheels = "/apis/acme.io/v1alpha1/wheels"
	f("POST", wheels, `{"spec":{"a":"7","d":1,"e":1}}`,
		`[spec.b: is required (policy rules/apiMigrationRules[1]) spec.c: must be of type string: "integer" (policy rules/apiMigrationRules[1]) spec.d: must be of type string: "integer" spec.e: unknown field]`)
	f("PUT", wheels+"/w", `{"spec":{"d":"x"}}`, `[spec.b: is required]`)
	f("PATCH", wheels+"/w", `{"spec":{"d":1}}`, "[]")                           // is no whole object
	f("POST", "/apis/acme.io/v1beta1/things", `{"spec":{"old":1}}`, "[]")       // of an unknown kind
	f("POST", "/apis/acme.io/v1/wheels", `{"spec":{"c":1}}`, "[]")              // is not converted
	f("PUT", wheels+"/w/scale", `{"kind":"Scale","spec":{"replicas":1}}`, "[]") // is a kind of its own
}
