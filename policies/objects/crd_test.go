package objects

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/mixed-version-proxy/mvp/policies"
)

// crdFile is the definition that users install.
const crdFile = "../../examples/kubernetes/crd.yaml"

// openAPI is a schema of the definition, or a part of one.
type openAPI map[string]any

func crdSchema(t *testing.T) openAPI {
	t.Helper()
	data, err := os.ReadFile(crdFile)
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema openAPI `json:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.UnmarshalStrict(data, new(map[string]any)); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &crd); err != nil || len(crd.Spec.Versions) != 1 {
		t.Fatalf("%d versions, %v", len(crd.Spec.Versions), err)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

func (s openAPI) at(path ...string) openAPI {
	for _, key := range path {
		next, _ := s[key].(map[string]any)
		s = next
	}
	return s
}

// refusal says why a kube-apiserver would refuse value, as far as the definition uses
// what schemas can say; "" when it takes it. Unknown fields are refused as kubectl has
// them refused.
func (s openAPI) refusal(path string, value any) string {
	if value == nil {
		if s["nullable"] == true {
			return ""
		}
		return path + " is null"
	}
	if enum, ok := s["enum"].([]any); ok && !slices.Contains(enum, value) {
		return fmt.Sprintf("%s is %v", path, value)
	}
	switch want := s["type"]; want {
	case "object":
		o, ok := value.(map[string]any)
		if !ok {
			return path + " is no object"
		}
		return s.objectRefusal(path, o)
	case "array":
		list, ok := value.([]any)
		if !ok || s.above("maxItems", len(list)) {
			return path + " is no list, or too long"
		}
		for i, item := range list {
			if why := s.at("items").refusal(fmt.Sprintf("%s[%d]", path, i), item); why != "" {
				return why
			}
		}
	case "string":
		text, ok := value.(string)
		minLength, _ := s["minLength"].(float64)
		pattern, _ := s["pattern"].(string)
		if !ok || s.above("maxLength", len(text)) || len(text) < int(minLength) || !regexp.MustCompile(pattern).MatchString(text) {
			return fmt.Sprintf("%s is %v", path, value)
		}
	default:
		if s["x-kubernetes-preserve-unknown-fields"] != true {
			return fmt.Sprintf("%s: the test does not know type %v", path, want)
		}
	}
	return ""
}

func (s openAPI) above(limit string, n int) bool {
	most, ok := s[limit].(float64)
	return ok && n > int(most)
}

func (s openAPI) objectRefusal(path string, o map[string]any) string {
	if path == "" { // what every object has is not its affair
		o = map[string]any{"spec": o["spec"]}
		if o["spec"] == nil {
			delete(o, "spec")
		}
	}
	required, _ := s["required"].([]any)
	for _, name := range required {
		if _, has := o[name.(string)]; !has {
			return fmt.Sprintf("%s has no %v", path, name)
		}
	}
	given := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		field := s.at("properties", name)
		if field == nil {
			return fmt.Sprintf("%s has an unknown field %s", path, name)
		}
		if why := field.refusal(path+"."+name, o[name]); why != "" {
			return why
		}
		if o[name] != nil {
			given[name] = o[name]
		}
	}
	rules, _ := s["x-kubernetes-validations"].([]any)
	for _, rule := range rules {
		if text, _ := rule.(map[string]any)["rule"].(string); !holds(text, given) {
			return fmt.Sprintf("%s: %v", path, rule.(map[string]any)["message"])
		}
	}
	return ""
}

// holds evaluates a validation rule.
func holds(rule string, self map[string]any) bool {
	env, err := cel.NewEnv(cel.Variable("self", cel.MapType(cel.StringType, cel.DynType)))
	if err != nil {
		panic(err)
	}
	ast, issues := env.Compile(rule)
	if issues.Err() != nil {
		panic(issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		panic(err)
	}
	out, _, err := program.Eval(map[string]any{"self": self})
	if err != nil {
		panic(fmt.Errorf("%s: %w", rule, err))
	}
	return out.Value() == true
}

// TestDefinition holds what the CustomResourceDefinition takes, and what MVP takes, to
// each other, document by document.
func TestDefinition(t *testing.T) {
	crd := crdSchema(t)
	archive, err := txtar.ParseFile("testdata/crd.txtar")
	if err != nil || len(archive.Files) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	for _, file := range archive.Files {
		t.Run(file.Name, func(t *testing.T) {
			var document map[string]any
			if err := yaml.Unmarshal(file.Data, &document); err != nil {
				t.Fatal(err)
			}
			name, _ := document["metadata"].(map[string]any)["name"].(string)
			store := newStore(t)
			store.SetObjects([]policies.Object{{Name: "transformationrules/" + name, Document: asJSON(t, document)}})
			s := store.Status().Objects[0]
			refused := crd.refusal("", document)
			got := map[[2]bool]string{{true, true}: "both", {true, false}: "crd", {false, false}: "none", {false, true}: "mvp"}[[2]bool{refused == "", s.Accepted()}]
			if want, _, _ := strings.Cut(file.Name, "-"); got != want {
				t.Errorf("taken by %s, want %s\nMVP: %v\ndefinition: %s", got, want, s.Err, refused)
			}
		})
	}
}

// The definition has the fields that MVP knows, all of them and no others.
func TestDefinitionFields(t *testing.T) {
	spec := crdSchema(t).at("properties", "spec")
	rule := spec.at("properties", "apiMigrationRules", "items")
	f := func(s openAPI, at, document string) {
		t.Helper()
		store := newStore(t)
		store.SetObjects([]policies.Object{{Name: "transformationrules/a", Document: []byte(`{"apiVersion":"mvp.k8s.io/v1","kind":"TransformationRules","metadata":{"name":"a"},"spec":` + document + `}`)}})
		const known = `has an unknown field "zzzzzzzz"; known are `
		for _, e := range store.Status().Objects[0].Err {
			_, list, found := strings.Cut(e.Msg, known)
			if !found || e.Pos.File != "transformationrules/a: "+at {
				continue
			}
			got, want := strings.Split(list, ", "), slices.Sorted(maps.Keys(s.at("properties")))
			slices.Sort(got)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s\n        MVP knows %q\nthe schema has %q", at, got, want)
			}
			return
		}
		t.Errorf("%s: MVP does not say which fields it knows: %v", at, store.Status().Objects[0].Err)
	}
	f(spec, "spec.zzzzzzzz", `{"zzzzzzzz":1}`)
	f(rule, "spec.apiMigrationRules[0].zzzzzzzz", `{"apiMigrationRules":[{"zzzzzzzz":1}]}`)
	f(rule.at("properties", "transformations", "items"), "spec.apiMigrationRules[0].transformations[0].zzzzzzzz", `{"apiMigrationRules":[{"transformations":[{"action":"remove","zzzzzzzz":1}]}]}`)
	f(spec.at("properties", "apiRoutingRules", "items"), "spec.apiRoutingRules[0].zzzzzzzz", `{"apiRoutingRules":[{"zzzzzzzz":1}]}`)
}

// Every schema of the definition says what it is for, and bounds what has a length:
// without bounds the server refuses the rules, whose cost it cannot tell.
func TestDefinitionIsWhole(t *testing.T) {
	var walk func(path string, s openAPI)
	walk = func(path string, s openAPI) {
		bounds := map[any]string{"array": "maxItems", "string": "maxLength"}
		if bound := bounds[s["type"]]; bound != "" && s[bound] == nil && s["enum"] == nil {
			t.Errorf("%s has no %s", path, bound)
		}
		for name, property := range s.at("properties") {
			p := openAPI(property.(map[string]any))
			if p["description"] == nil && name != "spec" {
				t.Errorf("%s.%s has no description", path, name)
			}
			walk(path+"."+name, p)
		}
		if items := s.at("items"); items != nil {
			walk(path+"[]", items)
		}
	}
	walk("spec", crdSchema(t).at("properties", "spec"))
}
