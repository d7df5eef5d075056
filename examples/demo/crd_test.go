package demo

import (
	"fmt"
	"strings"
	"testing"
)

const (
	definitions     = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	definition      = definitions + "/customresources.myapps.example.com"
	customResources = "/apis/myapps.example.com/v1beta1/namespaces/default/customresources"
	customResource  = `{"apiVersion":"myapps.example.com/v1beta1","kind":"CustomResource","metadata":{"name":"shop"},
		"spec":{"config":{"requestTimeoutSeconds":30},"stateManagement":"stateless"}}`
)

func TestCustomResource(t *testing.T) {
	older, newer := clients(t)
	older.want(201, "POST", customResources, customResource)
	r := newer.want(200, "GET", customResources+"/shop", "")
	equal(t, "spec", r.get("spec"), map[string]any{"config": map[string]any{"requestTimeoutSeconds": 30}, "stateManagement": "stateless"})

	table := newer.want(200, "GET", customResources, "", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io")
	row := table.get("rows").([]any)[0].(map[string]any)
	equal(t, "cells", row["cells"].([]any)[:3], []any{"shop", 30, "stateless"})

	// Unlike built-in kinds, a custom resource is only updated by who has read it.
	r = newer.want(422, "PUT", customResources+"/shop", customResource)
	if message := fmt.Sprint(r.get("message")); !strings.Contains(message, "metadata.resourceVersion: Invalid value: 0: must be specified for an update") {
		t.Error(message)
	}
}

func TestCustomResourceSchema(t *testing.T) {
	older, _ := clients(t)
	f := func(spec string, code int, want string) {
		t.Helper()
		r := older.do("POST", customResources, `{"metadata":{"name":"x"},"spec":`+spec+`}`)
		if message := fmt.Sprint(r.get("message")); r.code != code || !strings.Contains(message, want) {
			t.Errorf("%s: %d %q, want %d %q", spec, r.code, message, code, want)
		}
	}

	f(`{"stateManagement":"ephemeral"}`, 422, `spec.stateManagement: Unsupported value: "ephemeral": supported values: "stateless", "stateful"`)
	f(`{"config":{"requestTimeoutSeconds":"30"}}`, 422, `spec.config.requestTimeoutSeconds: Invalid value: "string": spec.config.requestTimeoutSeconds in body must be of type integer: "string"`)
	f(`{"config":[]}`, 422, `spec.config in body must be of type object: "array"`)
	f(`null`, 422, `spec in body must be of type object: "null"`)

	r := older.want(201, "POST", customResources, `{"metadata":{"name":"x"},"spec":{"config":{"legacyTimeout":"30"}}}`)
	equal(t, "warning", r.header.Get("Warning"), `299 - "unknown field \"spec.config.legacyTimeout\""`)
	equal(t, "pruned", r.get("spec.config"), map[string]any{})
}

// Two served versions of a definition with conversion strategy None are the same
// object, each without what its own schema lacks.
func TestServedVersions(t *testing.T) {
	older, _ := clients(t)
	const alpha = "/apis/myapps.example.com/v1alpha1/namespaces/default/customresources"
	older.want(201, "POST", customResources, customResource)
	older.want(404, "GET", alpha, "")
	older.want(200, "PATCH", definition, `[{"op":"replace","path":"/spec/versions/0/served","value":true}]`, jsonPatch)

	r := older.want(200, "GET", alpha+"/shop", "")
	equal(t, "apiVersion", r.get("apiVersion"), "myapps.example.com/v1alpha1")
	equal(t, "spec", r.get("spec"), map[string]any{"config": map[string]any{}, "stateManagement": "stateless"})
	equal(t, "list", older.want(200, "GET", alpha, "").get("kind"), "CustomResourceList")
}

func TestDefinition(t *testing.T) {
	older, newer := clients(t)
	r := older.want(200, "GET", definition, "")
	equal(t, "stored", r.get("status.storedVersions"), []any{"v1beta1"})
	equal(t, "names", r.get("status.acceptedNames.singular"), "customresource")
	equal(t, "conditions", len(r.get("status.conditions").([]any)), 2)

	older.want(201, "POST", customResources, customResource)
	older.want(200, "DELETE", definition, "")
	newer.want(404, "GET", customResources, "")
	newer.want(404, "GET", "/apis/myapps.example.com", "")
	older.want(201, "POST", definitions, definitionJSON(t))
	equal(t, "objects of the new definition", names(newer.want(200, "GET", customResources, "")), nil)
}

func definitionJSON(t *testing.T) string {
	t.Helper()
	body, err := decodeMap(manifest(t, "crd.yaml"), "application/yaml")
	if err != nil {
		t.Fatal(err)
	}
	return jsonText(body)
}

func TestDefinitionRefused(t *testing.T) {
	older, _ := clients(t)
	whole := definitionJSON(t)
	f := func(old, replacement, want string) {
		t.Helper()
		body := strings.ReplaceAll(whole, old, replacement)
		if body == whole {
			t.Fatalf("no %s in the definition", old)
		}
		r := older.do("POST", definitions, strings.Replace(body, "customresources.myapps", "others.myapps", 1))
		if message := fmt.Sprint(r.get("message")); r.code != 422 || !strings.Contains(message, want) {
			t.Errorf("%s: %d %q, want 422 %q", replacement, r.code, message, want)
		}
	}

	f(`"plural":"customresources"`, `"plural":"wrong"`, `metadata.name: Invalid value: "others.myapps.example.com": must be spec.names.plural+"."+spec.group`)
	f(`"kind":"CustomResource"`, `"kind":""`, "spec.names.kind: Required value")
	f(`"scope":"Namespaced"`, `"scope":"Planet"`, `spec.scope: Unsupported value: "Planet"`)
	f(`"storage":true`, `"storage":false`, "must have exactly one version marked as storage version")
	f(`"name":"v1alpha1"`, `"name":"v1beta1"`, `spec.versions[1].name: Duplicate value: "v1beta1"`)
	f(`"openAPIV3Schema"`, `"schema"`, "schemas are required")
	f(`"scope":"Namespaced"`, `"scope":"Namespaced","conversion":{"strategy":"Webhook"}`, `spec.conversion.strategy: Unsupported value: "Webhook": supported values: "None"`)
}

// A definition with all that this package knows of: subresources, defaults,
// selectable fields, limits.
func TestRichDefinition(t *testing.T) {
	c := start(t, Options{})
	err := c.Apply([]byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    selectableFields: [{jsonPath: .spec.color}]
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            properties:
              color: {type: string, default: red, pattern: '^[a-z]+$', maxLength: 5}
              size: {type: integer, minimum: 1, maximum: 9}
              port: {x-kubernetes-int-or-string: true}
              note: {type: string, nullable: true}
              tags: {type: array, items: {type: object, required: [key], properties: {key: {type: string, minLength: 1}}}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              map: {type: object, additionalProperties: {type: number}}
          status: {type: object, properties: {size: {type: integer}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	client := newClient(t, c, c.Servers()[0])
	const path = "/apis/example.com/v1/widgets"
	r := client.want(201, "POST", path, `{"metadata":{"name":"w"},"status":{"size":3},
		"spec":{"size":2,"port":"http","note":null,"free":{"any":[1]},"map":{"a":1.5},"tags":[{"key":"k","other":1}]}}`)
	equal(t, "spec", r.get("spec"), map[string]any{
		"color": "red", "size": 2, "port": "http", "note": nil, "free": map[string]any{"any": []any{1}},
		"map": map[string]any{"a": 1.5}, "tags": []any{map[string]any{"key": "k"}},
	})
	equal(t, "status", r.get("status"), nil)
	equal(t, "warning", r.header.Get("Warning"), `299 - "unknown field \"spec.tags[0].other\""`)
	equal(t, "by field", names(client.want(200, "GET", path+"?fieldSelector=spec.color%3Dred", "")), []string{"w"})
	equal(t, "by another", names(client.want(200, "GET", path+"?fieldSelector=spec.color%3Dblue", "")), nil)
	client.want(200, "PATCH", path+"/w/status", `{"status":{"size":4}}`, mergePatch)
	equal(t, "scale", client.want(200, "GET", path+"/w/scale", "").get("status.replicas"), 4)

	r = client.want(422, "POST", path, `{"metadata":{"name":"x"},"spec":{"color":"Orange","size":10,"port":true,"tags":[{},{"key":""}]}}`)
	for _, want := range []string{
		"spec.color in body should match '^[a-z]+$'", "spec.color in body should be at most 5 chars long",
		"spec.size in body should be less than or equal to 9", `spec.port in body must be of type integer,string: "boolean"`,
		"spec.tags[0].key: Required value", "spec.tags[1].key in body should be at least 1 chars long",
	} {
		if message := fmt.Sprint(r.get("message")); !strings.Contains(message, want) {
			t.Errorf("%q\nis without %q", message, want)
		}
	}
	r = client.want(422, "POST", path, `{"metadata":{"name":"x"}}`)
	equal(t, "message", r.get("message"), `Widget.example.com "x" is invalid: spec: Required value`)
}
