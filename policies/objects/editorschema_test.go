package objects

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the schema for editors anew")

// editorSchemaFile is the definition's schema in the form that editors understand.
const editorSchemaFile = "../../examples/kubernetes/transformationrules.schema.json"

// jsonObject is a JSON schema, or a part of one.
type jsonObject = map[string]any

// editorRules are the rules of the definition, which are in CEL, as JSON schemas.
var editorRules = map[string]jsonObject{
	"self.action == 'jq' || has(self.path)": ifAction(false, "jq", requires("path")),
	"(self.action in ['rename', 'move']) == has(self.targetPath)": {"allOf": []any{
		ifAction(true, "rename", requires("targetPath")), ifAction(true, "move", requires("targetPath")),
		jsonObject{"if": requires("targetPath"), "then": jsonObject{"properties": jsonObject{"action": jsonObject{"enum": []any{"rename", "move"}}}}},
	}},
	"self.action != 'jq' || has(self.request) || has(self.response)":                 ifAction(true, "jq", jsonObject{"anyOf": []any{requires("request"), requires("response")}}),
	"self.action == 'jq' || !has(self.request) && !has(self.response)":               ifAction(false, "jq", without("request", "response")),
	"self.action != 'jq' || !has(self.path) && !has(self.type) && !has(self.unless)": ifAction(true, "jq", without("path", "type", "unless")),
	"self.action == 'ensureFieldExistence' || !has(self.unless)":                     ifAction(false, "ensureFieldExistence", without("unless")),
	"!has(self.toKind) || has(self.kind)":                                            {"if": requires("toKind"), "then": requires("kind")},
	"has(self.apiMigrationRules) && size(self.apiMigrationRules) > 0 || has(self.apiRoutingRules) && size(self.apiRoutingRules) > 0": {
		"anyOf": []any{notEmpty("apiMigrationRules"), notEmpty("apiRoutingRules")},
	},

	// Two members that are equal: a JSON schema cannot say that.
	"self.fromVersion != self.toVersion || has(self.toGroup) && self.toGroup != self.apiGroup || " +
		"has(self.toResource) && self.toResource != self.resource || has(self.when) && self.when == 'always'": nil,
}

// requires is of an object that has the member, and not as null, which is as good as none.
func requires(member string) jsonObject {
	return jsonObject{"required": []any{member}, "properties": jsonObject{member: jsonObject{"not": jsonObject{"type": "null"}}}}
}

func without(members ...string) jsonObject {
	properties := jsonObject{}
	for _, member := range members {
		properties[member] = jsonObject{"type": "null"}
	}
	return jsonObject{"properties": properties}
}

func notEmpty(list string) jsonObject {
	return jsonObject{"required": []any{list}, "properties": jsonObject{list: jsonObject{"type": "array", "minItems": 1}}}
}

// ifAction is then for the transformations whose action is, or is not, the one.
func ifAction(is bool, action string, then jsonObject) jsonObject {
	condition := jsonObject{"required": []any{"action"}, "properties": jsonObject{"action": jsonObject{"const": action}}}
	if is {
		return jsonObject{"if": condition, "then": then}
	}
	return jsonObject{"if": condition, "else": then}
}

// editorSchema is the JSON schema, of draft 7, of the documents that the definition takes.
func editorSchema(t *testing.T) jsonObject {
	s := toJSONSchema(t, crdSchema(t))
	s["$schema"] = "http://json-schema.org/draft-07/schema#"
	s["title"] = "TransformationRules"
	properties := s["properties"].(jsonObject)
	properties["apiVersion"] = jsonObject{"const": "mvp.k8s.io/v1"}
	properties["kind"] = jsonObject{"const": "TransformationRules"}
	properties["metadata"] = jsonObject{
		"type": "object", "required": []any{"name"}, "properties": jsonObject{
			"name": jsonObject{"type": "string", "description": "What messages and metrics call the rules.", "pattern": `^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`},
		},
	}
	s["required"] = []any{"apiVersion", "kind", "metadata", "spec"}
	return s
}

// toJSONSchema says in JSON schema what the definition says in OpenAPI.
func toJSONSchema(t *testing.T, s openAPI) jsonObject {
	out := jsonObject{}
	for key, value := range s {
		switch key {
		case "type":
			out[key] = value
			if s["nullable"] == true {
				out[key] = []any{value, "null"}
			}
		case "properties":
			properties := jsonObject{}
			for name, property := range value.(map[string]any) {
				properties[name] = toJSONSchema(t, property.(map[string]any))
			}
			out[key], out["additionalProperties"] = properties, false
		case "items":
			out[key] = toJSONSchema(t, value.(map[string]any))
		case "x-kubernetes-validations":
			out["allOf"] = rulesInJSONSchema(t, value.([]any))
		case "required", "enum", "description", "pattern", "minLength", "maxLength", "maxItems", "minimum":
			out[key] = value
		case "nullable", "format", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-list-type", "x-kubernetes-list-map-keys":
		default:
			t.Fatalf("nobody has said what %s is in JSON schema", key)
		}
	}
	return out
}

func rulesInJSONSchema(t *testing.T, rules []any) (all []any) {
	for _, rule := range rules {
		text := rule.(map[string]any)["rule"].(string)
		in, known := editorRules[text]
		if !known {
			t.Fatalf("nobody has said what the rule %s is in JSON schema", text)
		}
		if in != nil {
			all = append(all, in)
		}
	}
	return all
}

// TestEditorSchema holds the file to the definition.
func TestEditorSchema(t *testing.T) {
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(editorSchema(t)); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(editorSchemaFile, want.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(editorSchemaFile)
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what the definition says (%v): run this test with -update", editorSchemaFile, err)
	}
}

// What an editor marks is what the definition refuses, document by document; only that
// both versions are the same no editor sees.
func TestEditorSchemaOfDocuments(t *testing.T) {
	schema := readEditorSchema(t)
	archive, err := txtar.ParseFile("testdata/crd.txtar")
	if err != nil || len(archive.Files) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	for _, file := range archive.Files {
		want := strings.HasPrefix(file.Name, "both-") || strings.HasPrefix(file.Name, "crd-") || file.Name == "none-same-version.yaml"
		if why := schemaRefusal(t, schema, file.Data); (why == "") != want {
			t.Errorf("%s: refused for %q, want it taken: %t", file.Name, why, want)
		}
	}
}

// Every document that is shipped is right in an editor, and ones that are not say why.
func TestEditorSchemaOfExamples(t *testing.T) {
	schema := readEditorSchema(t)
	documents := 0
	err := filepath.WalkDir("../../examples", func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil || !strings.Contains("\n"+string(data), "\nkind: TransformationRules\n") {
			return err
		}
		documents++
		if why := schemaRefusal(t, schema, data); why != "" {
			t.Errorf("%s: %s", name, why)
		}
		return nil
	})
	if err != nil || documents < 5 {
		t.Errorf("%d documents, %v", documents, err)
	}
	const head = "apiVersion: mvp.k8s.io/v1\nkind: TransformationRules\nmetadata: {name: a}\n"
	const rule = "spec: {apiMigrationRules: [{apiGroup: a.io, resource: things, fromVersion: v1, toVersion: v2, "
	for document, want := range map[string]string{
		"apiVersion: v1\nkind: TransformationRules\nmetadata: {name: a}\nspec: {apiRoutingRules: [{apiGroup: a, resource: a, clientVersion: v1, preferApiServerVersion: v1.32}]}": `.apiVersion is not "mvp.k8s.io/v1"`,
		"apiVersion: mvp.k8s.io/v1\nkind: TransformationRule\nmetadata: {name: a}\nspec: {}":                                                                                      `.kind is not "TransformationRules"`,
		"apiVersion: mvp.k8s.io/v1\nkind: TransformationRules\nspec: {}":                                                                                                          " has no metadata",
		"apiVersion: mvp.k8s.io/v1\nkind: TransformationRules\nmetadata: {}\nspec: {}":                                                                                            ".metadata has no name",
		"apiVersion: mvp.k8s.io/v1\nkind: TransformationRules\nmetadata: {name: A_b}\nspec: {}":                                                                                   ".metadata.name does not match ^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
		head:                                   " has no spec",
		head + "spec: {}":                      ".spec is none of what it may be",
		head + "spec: {apiMigrationRules: []}": ".spec is none of what it may be",
		head + "spec: {apiMigrationRule: []}":  ".spec has an unknown member apiMigrationRule",
		head + rule + "transformations: [{path: spec.a}]}]}":                                                              ".spec.apiMigrationRules[0].transformations[0] has no action",
		head + rule + "transformations: [{action: remove}]}]}":                                                            ".spec.apiMigrationRules[0].transformations[0] has no path",
		head + rule + "transformations: [{action: renam, path: a}]}]}":                                                    ".spec.apiMigrationRules[0].transformations[0].action is none of what it may be",
		head + rule + "transformations: [{action: remove, path: a, targetPath: b}]}]}":                                    ".spec.apiMigrationRules[0].transformations[0].action is none of what it may be",
		head + rule + "when: never}]}":                                                                                    ".spec.apiMigrationRules[0].when is none of what it may be",
		head + rule + "toKind: B}]}":                                                                                      ".spec.apiMigrationRules[0] has no kind",
		head + "spec: {apiRoutingRules: [{apiGroup: a, resource: a, clientVersion: v1, preferApiServerVersion: v01.32}]}": `.spec.apiRoutingRules[0].preferApiServerVersion does not match ^v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(\.(y|0|[1-9][0-9]*))?$`,
		head + "spec: {apiRoutingRules: [{apiGroup: a, resource: a, clientVersion: v1, preferApiServerVersion: 1.32}]}":   ".spec.apiRoutingRules[0].preferApiServerVersion is no string",
	} {
		if got := schemaRefusal(t, schema, []byte(document)); got != want {
			t.Errorf("%s\n got %q\nwant %q", document, got, want)
		}
	}
}

func readEditorSchema(t *testing.T) jsonObject {
	t.Helper()
	data, err := os.ReadFile(editorSchemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonObject
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

func schemaRefusal(t *testing.T, schema jsonObject, document []byte) string {
	t.Helper()
	var value any
	if err := yaml.Unmarshal(document, &value); err != nil {
		t.Fatal(err)
	}
	return jsonSchemaRefusal(schema, "", value)
}
