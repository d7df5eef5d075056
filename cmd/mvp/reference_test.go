package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mixed-version-proxy/mvp/docs/doctable"
	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
)

const reference = "../../docs/policies-reference.md"

// TestReferenceRules runs the rules of the reference and looks whether an action or a
// field is missing; the CRD, which its own tests hold to what is accepted, names them all.
func TestReferenceRules(t *testing.T) {
	page := referencePage(t)
	used := map[string]bool{} // fields and values of transformations
	for _, row := range tableOf(t, page, "Rule actions", "transformation", "the client's spec", "the server's spec", "the answer's spec") {
		var transformation map[string]any
		mustYAML(t, row, row.Cells[0], &transformation)
		for field, value := range transformation {
			used[field], used["action "+fmt.Sprint(value)] = true, true
		}
		set := loadRule(t, page, row, map[string]any{"transformations": []any{transformation}})
		r := dryrun.Run(set, createThing(row.Cells[1]), dryrun.Options{Servers: oneServer()})
		if got, want := specOf(r.Sent), specOf([]byte(`{"spec":`+row.Cells[2]+`}`)); !reflect.DeepEqual(got, want) {
			t.Errorf("line %d: the server gets %v (%v), want %v", row.Line, got, r.Err, want)
		}
		if got, want := specOf(r.Back), specOf([]byte(`{"spec":`+row.Cells[3]+`}`)); !reflect.DeepEqual(got, want) {
			t.Errorf("line %d: the client gets %v (%v), want %v", row.Line, got, r.Err, want)
		}
	}
	documented := map[string]bool{}
	for _, row := range tableOf(t, page, "Rule fields", "field", "meaning", "example", "result") {
		var fields map[string]any
		mustYAML(t, row, row.Cells[2], &fields)
		if _, ok := fields[row.Cells[0]]; !ok {
			t.Errorf("line %d: the example does not use %s", row.Line, row.Cells[0])
		}
		documented[row.Cells[0]] = true
		r := dryrun.Run(loadRule(t, page, row, fields), createThing(`{"a":1}`), dryrun.Options{Servers: oneServer()})
		got := r.Target
		if got == "" {
			got = string(r.Outcome)
		}
		if got != row.Cells[3] {
			t.Errorf("line %d: got %s (%v), want %s", row.Line, got, r.Err, row.Cells[3])
		}
	}
	rule := ruleSchema(t)
	for field := range rule.Properties {
		if !documented[field] {
			t.Errorf("the reference has no field %s", field)
		}
	}
	transformation := rule.Properties["transformations"].Items
	for field := range transformation.Properties {
		if !used[field] {
			t.Errorf("the reference has no example of the field %s", field)
		}
	}
	for _, action := range transformation.Properties["action"].Enum {
		if !used[fmt.Sprint("action ", action)] {
			t.Errorf("the reference has no example of the action %v", action)
		}
	}
}

// TestReferenceRoles runs the role files of the reference. What the message about a file
// without a role names must all be there.
func TestReferenceRoles(t *testing.T) {
	documented := map[string]bool{}
	for _, row := range tableOf(t, referencePage(t), "Roles", "role", "files", "result") {
		var contents map[string]string
		mustYAML(t, row, row.Cells[1], &contents)
		if contents[row.Cells[0]] == "" {
			t.Errorf("line %d: the example does not use %s", row.Line, row.Cells[0])
		}
		documented[row.Cells[0]] = true
		var files []policies.File
		for _, role := range slices.Sorted(maps.Keys(contents)) {
			files = append(files, policies.File{Name: "p." + role, Data: []byte(contents[role])})
		}
		set, err := policies.LoadFiles(files, policies.Options{})
		if err != nil {
			t.Errorf("line %d: %v", row.Line, err)
			continue
		}
		r := dryrun.Run(set, createThing(`{"a":1}`), dryrun.Options{Servers: oneServer()})
		if got := roleResult(r); got != row.Cells[2] {
			t.Errorf("line %d: got %s (%v), want %s", row.Line, got, r.Err, row.Cells[2])
		}
	}
	for _, ext := range []string{".cel", ".jq"} {
		_, err := policies.LoadFiles([]policies.File{{Name: "x" + ext, Data: []byte("1")}}, policies.Options{})
		if err == nil {
			t.Fatal("a file without a role is loaded")
		}
		_, list, ok := strings.Cut(strings.SplitN(err.Error(), "\n", 2)[0], "the role one of ")
		if !ok {
			t.Fatalf("the message does not name the roles: %v", err)
		}
		for _, role := range strings.Split(list, ", ") {
			if !documented[role+ext] {
				t.Errorf("the reference has no role %s", role+ext)
			}
		}
	}
}

// roleResult is what became of a request, as the table writes it.
func roleResult(r *dryrun.Result) string {
	switch {
	case r.Denied != nil:
		return "denied: " + r.Denied.Message
	case len(r.Audited) == 1:
		return "audited: " + r.Audited[0].Effect + " " + r.Audited[0].Detail
	case len(r.Warnings) == 1:
		return "warned: " + r.Warnings[0]
	case r.Outcome == dryrun.Converted:
		spec, _ := json.Marshal(specOf(r.Sent)) // it was read from JSON
		return "converted to " + string(spec)
	}
	return string(r.Outcome)
}

func referencePage(t *testing.T) *doctable.Page {
	t.Helper()
	page, err := doctable.Read(reference)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func tableOf(t *testing.T, page *doctable.Page, heading string, columns ...string) []doctable.Row {
	t.Helper()
	rows, err := page.Tables(heading, columns...)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func mustYAML(t *testing.T, row doctable.Row, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("line %d: %v", row.Line, err)
	}
}

// loadRule compiles the document of the page with fields in its rule.
func loadRule(t *testing.T, page *doctable.Page, row doctable.Row, fields map[string]any) *engine.Set {
	t.Helper()
	text, err := page.Block("Rules", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       struct {
			Rules []map[string]any `json:"apiMigrationRules"`
		} `json:"spec"`
	}
	mustYAML(t, row, text, &document)
	maps.Copy(document.Spec.Rules[0], fields)
	data, err := yaml.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	set, err := policies.LoadFiles([]policies.File{{Name: "rules.yaml", Data: data}}, policies.Options{})
	if err != nil {
		t.Fatalf("line %d: %v", row.Line, err)
	}
	return set
}

// createThing is the request of the reference's rules.
func createThing(spec string) dryrun.Request {
	return dryrun.Request{
		Method: "POST",
		Target: "/apis/example.com/v1/namespaces/web/things",
		Body:   []byte(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a","namespace":"web"},"spec":` + spec + `}`),
	}
}

// oneServer is the server of the reference's rules, which serves everything.
func oneServer() []dryrun.Server {
	return []dryrun.Server{{
		Name:    "a",
		Version: engine.Version{Major: 1, Minor: 31, Patch: 4},
		Serves:  func(string, string, string) bool { return true },
	}}
}

func specOf(object []byte) any {
	var o struct{ Spec any }
	if json.Unmarshal(object, &o) != nil {
		return nil
	}
	return o.Spec
}

// schema is the part of an OpenAPI schema that names fields and values.
type schema struct {
	Properties map[string]*schema
	Items      *schema
	Enum       []any
}

// ruleSchema is the schema of a rule of apiMigrationRules.
func ruleSchema(t *testing.T) *schema {
	t.Helper()
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema schema }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(readText(t, examplesDir+"/kubernetes/crd.yaml")), &crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["apiMigrationRules"].Items
}
