package demo

import (
	"fmt"
	"strings"
	"testing"
)

const (
	mergePatch     = "Content-Type: application/merge-patch+json"
	jsonPatch      = "Content-Type: application/json-patch+json"
	strategicPatch = "Content-Type: application/strategic-merge-patch+json"
	applyPatch     = "Content-Type: application/apply-patch+yaml"
)

func images(r *reply) []any {
	var list []any
	containers, _ := r.get("spec.template.spec.containers").([]any)
	for _, c := range containers {
		list = append(list, c.(map[string]any)["image"])
	}
	return list
}

func TestPatch(t *testing.T) {
	older, _ := clients(t)
	older.want(201, "POST", deployments, deployment)

	r := older.want(200, "PATCH", deployments+"/d", `{"spec":{"replicas":2},"metadata":{"labels":{"a":"b"}}}`, mergePatch)
	equal(t, "merged", []any{r.get("spec.replicas"), r.get("metadata.labels.a")}, []any{2, "b"})

	r = older.want(200, "PATCH", deployments+"/d", `{"spec":{"template":{"spec":{"containers":[{"name":"b","image":"b:2"}]}}}}`, strategicPatch)
	equal(t, "merged by name", images(r), []any{"a:1", "b:2"})

	r = older.want(200, "PATCH", deployments+"/d", `[{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":5},{"op":"remove","path":"/metadata/labels"}]`, jsonPatch)
	equal(t, "patched", []any{r.get("spec.replicas"), r.get("metadata.labels")}, []any{5, nil})

	r = older.want(200, "PATCH", deployments+"/d", `{"spec":{"replicas":6}}`, mergePatch)
	equal(t, "generation", r.get("metadata.generation"), 5)
}

func TestPatchRefused(t *testing.T) {
	older, _ := clients(t)
	older.want(201, "POST", deployments, deployment)
	older.want(201, "POST", customResources, customResource)
	f := func(target, patch, contentType string, code int, want string) {
		t.Helper()
		r := older.do("PATCH", target, patch, contentType)
		if message := fmt.Sprint(r.get("message")); r.code != code || !strings.Contains(message, want) {
			t.Errorf("%s: %d %q, want %d %q", patch, r.code, message, code, want)
		}
	}

	f(deployments+"/x", `{}`, mergePatch, 404, `deployments.apps "x" not found`)
	f(deployments+"/d", `{`, mergePatch, 400, "cannot apply the patch")
	f(deployments+"/d", `[{"op":"jump"}]`, jsonPatch, 422, "the server rejected our request due to an error in our request")
	f(deployments+"/d", `[{"op":"test","path":"/spec/replicas","value":9}]`, jsonPatch, 422, "the server rejected our request due to an error in our request")
	f(deployments+"/d", `[`+strings.Repeat(`{},`, maxPatchOperations)+`{}]`, jsonPatch, 413, "The allowed maximum operations in a JSON patch is 10000, got 10001")
	f(deployments+"/d", `{"metadata":{"name":"e"}}`, mergePatch, 400, "does not match the name on the URL")
	f(deployments+"/d", `{"metadata":{"resourceVersion":"1"}}`, mergePatch, 409, "the object has been modified")
	f(deployments+"/d", `{"spec":{"replicas":"x"}}`, mergePatch, 400, "cannot be handled as a Deployment")
	f(deployments+"/d", `{}`, "Content-Type: text/plain", 415, "application/strategic-merge-patch+json")

	// Custom resources have no merge keys.
	f(customResources+"/shop", `{}`, strategicPatch, 415, "accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml")
	f(customResources+"/shop", `{"spec":{"stateManagement":"ephemeral"}}`, mergePatch, 422, `supported values: "stateless", "stateful"`)
}

func TestServerSideApply(t *testing.T) {
	older, newer := clients(t)
	const first = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  selector: {matchLabels: {app: d}}
  template:
    metadata: {labels: {app: d}}
    spec:
      containers: [{name: a, image: "a:1"}]
`
	const second = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"template":{"spec":{"containers":[{"name":"b","image":"b:1"}]}}}}`
	created := older.want(201, "PATCH", deployments+"/d?fieldManager=one", first, applyPatch)
	equal(t, "generation", created.get("metadata.generation"), 1)
	merged := newer.want(200, "PATCH", deployments+"/d?fieldManager=two", second, applyPatch)
	equal(t, "images", images(merged), []any{"a:1", "b:1"})

	same := older.want(200, "PATCH", deployments+"/d?fieldManager=one", first, applyPatch)
	equal(t, "revision after the same again", same.get("metadata.resourceVersion"), merged.get("metadata.resourceVersion"))

	change := strings.Replace(second, "b:1", "b:2", 1)
	conflict := older.want(409, "PATCH", deployments+"/d?fieldManager=three", change, applyPatch)
	equal(t, "message", conflict.get("message"), `Apply failed with 1 conflict: conflict with "two": .spec.template.spec.containers[name="b"].image`)
	equal(t, "cause", conflict.get("details.causes").([]any)[0].(map[string]any)["reason"], "FieldManagerConflict")
	forced := older.want(200, "PATCH", deployments+"/d?fieldManager=three&force=true", change, applyPatch)
	equal(t, "images when forced", images(forced), []any{"a:1", "b:2"})

	// What its only owner no longer applies goes.
	gone := older.want(200, "PATCH", deployments+"/d?fieldManager=one", strings.Replace(first, `{name: a, image: "a:1"}`, "", 1), applyPatch)
	equal(t, "images without the first", images(gone), []any{"b:2"})
	managers := map[string]any{} // their order is that of the seconds in which they last wrote
	for _, m := range gone.get("metadata.managedFields").([]any) {
		managers[m.(map[string]any)["manager"].(string)] = m.(map[string]any)["operation"]
	}
	equal(t, "managers", managers, map[string]any{"one": "Apply", "three": "Apply", "two": "Apply"})
}

func TestServerSideApplyRefused(t *testing.T) {
	older, _ := clients(t)
	f := func(target, body string, code int, want string) {
		t.Helper()
		r := older.do("PATCH", target, body, applyPatch)
		if message := fmt.Sprint(r.get("message")); r.code != code || !strings.Contains(message, want) {
			t.Errorf("%s: %d %q, want %d %q", body, r.code, message, code, want)
		}
	}

	f(configMaps+"/a", `{}`, 422, `PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch`)
	f(configMaps+"/a?fieldManager=x", `{"metadata":{"managedFields":[{}]}}`, 400, "metadata.managedFields must be nil")
	f(configMaps+"/a?fieldManager=x", `a: [`, 400, "error decoding YAML")
	f("/api/v1/namespaces/none/configmaps/a?fieldManager=x", `{}`, 404, `namespaces "none" not found`)
	f(customResources+"/a?fieldManager=x", `{"spec":{"legacyTimeout":"30"}}`, 500, ".spec.legacyTimeout: field not declared in schema")
	f(customResources+"/a?fieldManager=x&fieldValidation=Strict", `{"spec":{"legacyTimeout":"30"}}`, 400, `unknown field "spec.legacyTimeout"`)
}

// kubectl apply --server-side takes over what kubectl apply wrote.
func TestManagedFieldsOfUpdates(t *testing.T) {
	older, _ := clients(t)
	r := older.want(201, "POST", configMaps, `{"metadata":{"name":"a"},"data":{"k":"v"}}`, "User-Agent: kubectl/v1.32.0 (linux)")
	entry := r.get("metadata.managedFields").([]any)[0].(map[string]any)
	equal(t, "manager", []any{entry["manager"], entry["operation"], entry["apiVersion"]}, []any{"kubectl", "Update", "v1"})
	equal(t, "fields", entry["fieldsV1"], map[string]any{"f:data": map[string]any{".": map[string]any{}, "f:k": map[string]any{}}})
}
