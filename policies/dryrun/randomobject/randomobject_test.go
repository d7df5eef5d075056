package randomobject

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/mixed-version-proxy/mvp/policies/dryrun/kindschema"
)

const wheelSchema = `{"kind":"CustomResourceDefinition","spec":{"group":"acme.io","names":{"kind":"Wheel","plural":"wheels"},"versions":[{"name":"v1","schema":{"openAPIV3Schema":{
	"type":"object","properties":{"spec":{"type":"object","required":["size"],"properties":{
		"size":{"type":"integer","format":"int32","minimum":1,"maximum":5},
		"count":{"type":"integer"},
		"ratio":{"type":"number","minimum":0,"exclusiveMinimum":true,"maximum":1},
		"color":{"type":"string","enum":["red","blue"]},
		"maybe":{"type":"string","nullable":true},
		"name":{"type":"string","pattern":"^[a-z]{2,4}-(x|y)\\d*$"},
		"long":{"type":"string","minLength":40},
		"since":{"type":"string","format":"date-time"},
		"port":{"x-kubernetes-int-or-string":true},
		"open":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
		"labels":{"type":"object","additionalProperties":{"type":"string"},"minProperties":1},
		"spokes":{"type":"array","maxItems":2,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["id"],"items":{"type":"object","required":["id"],"properties":{"id":{"type":"boolean"}}}}
	}}}}}}]}}`

func wheel(t *testing.T) *kindschema.Schema {
	t.Helper()
	var s kindschema.Schemas
	if err := s.Add([]byte(wheelSchema)); err != nil {
		t.Fatal(err)
	}
	found, _ := s.Find(kindschema.Kind{Group: "acme.io", Version: "v1", Kind: "Wheel"})
	return found
}

// Every object is one that its schema allows, and among many there is everything that
// it allows.
func TestMake(t *testing.T) {
	s := wheel(t)
	var all bytes.Buffer
	for seed := range uint64(2000) {
		object, err := Make(seed, s, `"apiVersion":"acme.io/v1","kind":"Wheel"`, Options{Words: []string{"ephemeral"}, Nulls: true})
		if err != nil {
			t.Fatal(err)
		}
		if violations, err := s.Validate(object); err != nil || len(violations) > 0 || !bytes.HasPrefix(object, []byte(`{"apiVersion":"acme.io/v1","kind":"Wheel"`)) {
			t.Fatalf("seed %d: %s: %v %v", seed, object, violations, err)
		}
		var plain bytes.Buffer
		if err := json.Compact(&plain, object); err != nil {
			t.Fatal(err)
		}
		all.Write(plain.Bytes())
	}
	for _, want := range []string{
		`"size":1`, `"size":5`, `"count":9223372036854775807`, `"ratio":0.5`, `"color":"red"`, `"maybe":null`, `"maybe":"ephemeral"`, `-x`, `-y`,
		`"since":"2026-01-02T03:04:05Z"`, `"port":"50%"`, `"port":2147483647`, `"open":{}`, `"labels":{"a":`, `"spokes":[]`, `[{"id":true},{"id":false}]`,
		`"finalizers":`, `\u00e9`, `""`,
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no object has %s", want)
		}
	}
	if strings.Contains(all.String(), `"size":6`) || strings.Contains(all.String(), `"color":null`) {
		t.Error("an object has what its schema does not allow")
	}
}

// A seed makes the same object each time, others another one.
func TestMakeIsRepeatable(t *testing.T) {
	s := kindschema.OfType(reflect.TypeFor[batchv1.CronJob]())
	seen := map[string]bool{}
	for seed := range uint64(50) {
		first, err := Make(seed, s, "", Options{})
		second, err2 := Make(seed, s, "", Options{})
		if err != nil || err2 != nil || !bytes.Equal(first, second) {
			t.Fatalf("seed %d made %s, then %s; %v, %v", seed, first, second, err, err2)
		}
		seen[string(first)] = true
	}
	if len(seen) < 45 {
		t.Errorf("50 seeds made only %d objects", len(seen))
	}
}

func TestMakeGivesUp(t *testing.T) {
	var s kindschema.Schemas
	if err := s.Add([]byte(strings.Replace(wheelSchema, `"maximum":5`, `"maximum":0`, 1))); err != nil {
		t.Fatal(err)
	}
	found, _ := s.Find(kindschema.Kind{Group: "acme.io", Version: "v1", Kind: "Wheel"})
	if _, err := Make(1, found, "", Options{}); err == nil || err.Error() != "cannot make an object that the schema allows: spec.size: should be less than or equal to 0" {
		t.Errorf("a schema that nothing fits gave %v", err)
	}
}
