package discovery

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// policyDocument has the shape of kube-apiserver's documents, cut short.
const policyDocument = `{
	"openapi": "3.0.0",
	"info": {"title": "Kubernetes", "version": "v1.32.0"},
	"paths": {
		"/apis/policy/v1/": {"get": {"tags": ["policy_v1"], "operationId": "getPolicyV1APIResources", "responses": {"200": {"description": "OK"}}}},
		"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets": {
			"post": {
				"tags": ["policy_v1"],
				"operationId": "createPolicyV1NamespacedPodDisruptionBudget",
				"parameters": [{"name": "dryRun", "in": "query"}, {"name": "fieldValidation", "in": "query"}],
				"requestBody": {"content": {"*/*": {"schema": {"$ref": "#/components/schemas/io.k8s.api.policy.v1.PodDisruptionBudget"}}}},
				"responses": {"200": {"description": "OK"}},
				"x-kubernetes-action": "post",
				"x-kubernetes-group-version-kind": {"group": "policy", "version": "v1", "kind": "PodDisruptionBudget"}
			},
			"parameters": [{"name": "namespace", "in": "path", "required": true}]
		},
		"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/{name}": {
			"delete": {
				"requestBody": {"content": {"*/*": {"schema": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"}}}},
				"responses": {"200": {"description": "OK"}},
				"x-kubernetes-group-version-kind": {"group": "policy", "version": "v1", "kind": "PodDisruptionBudget"}
			}
		},
		"/apis/policy/v1/watch/poddisruptionbudgets": {"get": {"responses": {"200": {"description": "OK"}}}},
		"/apis/policy/v1/namespaces/{namespace}/others": {
			"post": {"requestBody": {"content": {"*/*": {"schema": {"$ref": "#/components/schemas/io.k8s.api.policy.v1.Other"}}}},
				"responses": {"200": {"description": "OK"}},
				"x-kubernetes-group-version-kind": {"group": "policy", "version": "v1", "kind": "Other"}}
		}
	},
	"components": {
		"securitySchemes": {"BearerToken": {"type": "apiKey", "in": "header", "name": "authorization"}},
		"schemas": {
			"io.k8s.api.policy.v1.PodDisruptionBudget": {
				"description": "limits disruption",
				"type": "object",
				"properties": {
					"apiVersion": {"type": "string", "enum": ["policy/v1"], "default": "policy/v1"},
					"kind": {"type": "string"},
					"metadata": {"default": {}, "allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]},
					"spec": {"default": {}, "description": "what is wanted", "allOf": [{"$ref": "#/components/schemas/io.k8s.api.policy.v1.PodDisruptionBudgetSpec"}]}
				},
				"x-kubernetes-group-version-kind": [{"group": "policy", "version": "v1", "kind": "PodDisruptionBudget"}]
			},
			"io.k8s.api.policy.v1.PodDisruptionBudgetList": {
				"type": "object",
				"properties": {"items": {"type": "array", "items": {"$ref": "#/components/schemas/io.k8s.api.policy.v1.PodDisruptionBudget"}}},
				"x-kubernetes-group-version-kind": [{"group": "policy", "version": "v1", "kind": "PodDisruptionBudgetList"}]
			},
			"io.k8s.api.policy.v1.PodDisruptionBudgetSpec": {
				"type": "object",
				"required": ["selector", "maxUnavailable"],
				"properties": {
					"minAvailable": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.util.intstr.IntOrString"},
					"maxUnavailable": {"type": "integer", "description": "how many", "minimum": 1},
					"selector": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"}
				}
			},
			"io.k8s.api.policy.v1.Other": {
				"type": "object",
				"properties": {"spec": {"$ref": "#/components/schemas/io.k8s.api.policy.v1.OtherSpec"}},
				"x-kubernetes-group-version-kind": [{"group": "policy", "version": "v1", "kind": "Other"}]
			},
			"io.k8s.api.policy.v1.OtherSpec": {"type": "object"},
			"io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions": {
				"type": "object",
				"x-kubernetes-group-version-kind": [
					{"group": "", "version": "v1", "kind": "DeleteOptions"},
					{"group": "policy", "version": "v1", "kind": "DeleteOptions"},
					{"group": "policy", "version": "v1beta1", "kind": "DeleteOptions"}
				]
			},
			"io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector": {"type": "object", "properties": {"matchLabels": {"type": "object", "additionalProperties": {"type": "string"}}}},
			"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object", "properties": {"name": {"type": "string"}}},
			"io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}
		}
	}
}`

const policyConversion = "policy/v1beta1 poddisruptionbudgets -> policy/v1 poddisruptionbudgets"

// convertV3 returns the derived document, decoded, every reference in it checked.
func convertV3(t *testing.T, doc, convert string, opts ConvertOptions) map[string]any {
	t.Helper()
	raw, err := ConvertV3([]byte(doc), conversions(t, convert), opts)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ConvertV3([]byte(doc), conversions(t, convert), opts)
	if err != nil || string(again) != string(raw) {
		t.Errorf("converted again it differs: %v\n%s", err, again)
	}
	root, err := decodeObject(raw)
	if err != nil {
		t.Fatal(err)
	}
	eachRef(root, func(name string) {
		if componentSchemas(root)[name] == nil {
			t.Errorf("a reference to %s, which is not there", name)
		}
	})
	return root
}

// at returns what a path of keys leads to.
func at(t *testing.T, root any, keys ...string) any {
	t.Helper()
	for _, key := range keys {
		o := asObject(root)
		if o == nil || o[key] == nil {
			t.Fatalf("no %s on the way of %v in %v", key, keys, root)
		}
		root = o[key]
	}
	return root
}

func keysOf(o map[string]any) []string {
	var out []string
	for key := range o {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

func sameJSON(t *testing.T, what string, got any, want string) {
	t.Helper()
	var w any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(got)
	var g any
	if err := json.Unmarshal(raw, &g); err != nil || !reflect.DeepEqual(g, w) {
		t.Errorf("%s\n got %s\nwant %s", what, raw, want)
	}
}

func TestConvertV3(t *testing.T) {
	root := convertV3(t, policyDocument, policyConversion, ConvertOptions{})

	sameJSON(t, "paths", keysOf(asObject(root["paths"])), `[
		"/apis/policy/v1beta1/",
		"/apis/policy/v1beta1/namespaces/{namespace}/poddisruptionbudgets",
		"/apis/policy/v1beta1/namespaces/{namespace}/poddisruptionbudgets/{name}",
		"/apis/policy/v1beta1/watch/poddisruptionbudgets"]`)
	post := at(t, root, "paths", "/apis/policy/v1beta1/namespaces/{namespace}/poddisruptionbudgets", "post")
	sameJSON(t, "the create operation", post, `{
		"tags": ["policy_v1beta1"],
		"operationId": "createPolicyV1beta1NamespacedPodDisruptionBudget",
		"parameters": [{"name": "dryRun", "in": "query"}, {"name": "fieldValidation", "in": "query"}],
		"requestBody": {"content": {"*/*": {"schema": {"$ref": "#/components/schemas/io.k8s.api.policy.v1beta1.PodDisruptionBudget"}}}},
		"responses": {"200": {"description": "OK"}},
		"x-kubernetes-action": "post",
		"x-kubernetes-group-version-kind": {"group": "policy", "version": "v1beta1", "kind": "PodDisruptionBudget"}}`)
	sameJSON(t, "schemas", keysOf(componentSchemas(root)), `[
		"io.k8s.api.policy.v1beta1.PodDisruptionBudget",
		"io.k8s.api.policy.v1beta1.PodDisruptionBudgetList",
		"io.k8s.api.policy.v1beta1.PodDisruptionBudgetSpec",
		"io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
		"io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector",
		"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
		"io.k8s.apimachinery.pkg.util.intstr.IntOrString"]`)
	kind := at(t, root, "components", "schemas", "io.k8s.api.policy.v1beta1.PodDisruptionBudget")
	sameJSON(t, "the kind", kind, `{
		"description": "limits disruption",
		"type": "object",
		"properties": {
			"apiVersion": {"type": "string", "enum": ["policy/v1beta1"], "default": "policy/v1beta1"},
			"kind": {"type": "string"},
			"metadata": {"default": {}, "allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]},
			"spec": {"default": {}, "description": "what is wanted", "allOf": [{"$ref": "#/components/schemas/io.k8s.api.policy.v1beta1.PodDisruptionBudgetSpec"}]}
		},
		"x-kubernetes-group-version-kind": [{"group": "policy", "version": "v1beta1", "kind": "PodDisruptionBudget"}]}`)
	sameJSON(t, "DeleteOptions", at(t, root, "components", "schemas", "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", extensionGVK), `[
		{"group": "", "version": "v1", "kind": "DeleteOptions"},
		{"group": "policy", "version": "v1beta1", "kind": "DeleteOptions"}]`)
	at(t, root, "components", "securitySchemes", "BearerToken")
}

func TestConvertV3Renames(t *testing.T) {
	path := func(s string) []string { return strings.Split(s, ".") }
	root := convertV3(t, policyDocument, policyConversion, ConvertOptions{Renames: map[string][]FieldRename{"PodDisruptionBudget": {
		{From: path("spec.unavailable"), To: path("spec.maxUnavailable"), Type: "integer"},
		{From: path("spec.budget.least"), To: path("spec.minAvailable")},
		{From: path("spec.selector.labels"), To: path("spec.selector.matchLabels")},
		{From: path("spec.unknown"), To: path("spec.none")},
	}}})
	schemas := componentSchemas(root)
	sameJSON(t, "spec", at(t, schemas, "io.k8s.api.policy.v1beta1.PodDisruptionBudget", "properties", "spec"), `{
		"type": "object", "default": {}, "description": "what is wanted",
		"required": ["selector", "unavailable"],
		"properties": {
			"unavailable": {"description": "how many", "x-kubernetes-preserve-unknown-fields": true},
			"budget": {"type": "object", "properties": {"least": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.util.intstr.IntOrString"}}},
			"selector": {"type": "object", "properties": {"labels": {"type": "object", "additionalProperties": {"type": "string"}}}}
		}}`)
	if schemas["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"] != nil {
		t.Error("the schema that others share is still there though nothing refers to it")
	}

	root = convertV3(t, policyDocument, policyConversion, ConvertOptions{Renames: map[string][]FieldRename{"PodDisruptionBudget": {
		{From: path("spec.maxUnavailable"), To: path("spec.maxUnavailable")},
	}}})
	spec := at(t, componentSchemas(root), "io.k8s.api.policy.v1beta1.PodDisruptionBudget", "properties", "spec")
	sameJSON(t, "a value that differs", at(t, spec, "properties", "maxUnavailable"), `{"description": "how many", "x-kubernetes-preserve-unknown-fields": true}`)
	sameJSON(t, "what is required", at(t, spec, "required"), `["selector"]`)
}

const customDocument = `{
	"paths": {
		"/apis/myapps.example.com/v1beta1/namespaces/{namespace}/customresources/{name}": {"get": {
			"tags": ["myappsExampleCom_v1beta1"],
			"operationId": "readMyappsExampleComV1beta1NamespacedCustomResource",
			"responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/com.example.myapps.v1beta1.CustomResource"}}}}},
			"x-kubernetes-group-version-kind": {"group": "myapps.example.com", "version": "v1beta1", "kind": "CustomResource"}}}
	},
	"components": {"schemas": {
		"com.example.myapps.v1beta1.CustomResource": {
			"type": "object",
			"properties": {
				"apiVersion": {"type": "string"}, "kind": {"type": "string"},
				"metadata": {"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]},
				"spec": {"type": "object", "properties": {"requestTimeoutSeconds": {"type": "integer"}}}
			},
			"x-kubernetes-group-version-kind": [{"group": "myapps.example.com", "version": "v1beta1", "kind": "CustomResource"}]
		},
		"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object"}
	}}
}`

func TestConvertV3CustomResource(t *testing.T) {
	root := convertV3(t, customDocument, "myapps.example.com/v1alpha1 customresources -> myapps.example.com/v1beta1 customresources", ConvertOptions{
		Schemas: map[string]json.RawMessage{"CustomResource": json.RawMessage(`{
			"type": "object",
			"properties": {"apiVersion": {"type": "string"}, "metadata": {"type": "object"},
				"spec": {"type": "object", "properties": {"legacyTimeout": {"type": "string"}}}}}`)},
	})
	sameJSON(t, "the kind", at(t, componentSchemas(root), "com.example.myapps.v1alpha1.CustomResource"), `{
		"type": "object",
		"properties": {
			"apiVersion": {"type": "string"}, "kind": {"type": "string"},
			"metadata": {"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]},
			"spec": {"type": "object", "properties": {"legacyTimeout": {"type": "string"}}}
		},
		"x-kubernetes-group-version-kind": [{"group": "myapps.example.com", "version": "v1alpha1", "kind": "CustomResource"}]}`)
}

func TestConvertV3OtherGroup(t *testing.T) {
	root := convertV3(t, customDocument, "old.example.org/v1 gizmos Gizmo -> myapps.example.com/v1beta1 customresources", ConvertOptions{})
	get := at(t, root, "paths", "/apis/old.example.org/v1/namespaces/{namespace}/gizmos/{name}", "get")
	sameJSON(t, "the read operation", get, `{
		"tags": ["oldExampleOrg_v1"],
		"operationId": "readOldExampleOrgV1NamespacedCustomResource",
		"responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/org.example.old.v1.Gizmo"}}}}},
		"x-kubernetes-group-version-kind": {"group": "old.example.org", "version": "v1", "kind": "Gizmo"}}`)

	root = convertV3(t, policyDocument, "extensions/v1beta1 poddisruptionbudgets -> policy/v1 poddisruptionbudgets", ConvertOptions{})
	at(t, componentSchemas(root), "io.k8s.api.extensions.v1beta1.PodDisruptionBudgetSpec")
}

func TestConvertV3Errors(t *testing.T) {
	f := func(doc, convert string, opts ConvertOptions, want string) {
		t.Helper()
		out, err := ConvertV3([]byte(doc), conversions(t, convert), opts)
		if err == nil || err.Error() != want || out != nil {
			t.Errorf("\n got %v\nwant %s", err, want)
		}
	}

	f(policyDocument, "", ConvertOptions{}, "cannot derive an OpenAPI document: there is no conversion")
	f(policyDocument, "a/v1 x -> b/v1 x\na/v1 y -> c/v1 y", ConvertOptions{},
		"cannot derive one OpenAPI document from conversions of a/v1 to b/v1 and of a/v1 to c/v1: derive one of each")
	f("{", policyConversion, ConvertOptions{}, "cannot read the OpenAPI document of policy/v1: unexpected EOF")
	f("{}", policyConversion, ConvertOptions{},
		`cannot derive the OpenAPI document of policy/v1beta1: that of policy/v1 has no operation on "poddisruptionbudgets"`)
	f(policyDocument, policyConversion+" Nothing", ConvertOptions{},
		"cannot derive the OpenAPI document of policy/v1beta1: that of policy/v1 has no schema for the kind of Nothing")
	f(policyDocument, policyConversion, ConvertOptions{Schemas: map[string]json.RawMessage{"PodDisruptionBudget": json.RawMessage("[]")}},
		"cannot read the schema of policy/v1beta1 PodDisruptionBudget: json: cannot unmarshal array into Go value of type map[string]interface {}")
}

// FuzzConvertV3 derives from whatever a server may send: an error comes out, or a
// document in which no reference leads nowhere that led somewhere before.
func FuzzConvertV3(f *testing.F) {
	const ref = `{"$ref":"#/components/schemas/a.v1.S"}`
	f.Add(`{"paths":{"/apis/policy/v1/poddisruptionbudgets":{"get":{"x-kubernetes-group-version-kind":{"group":"policy","version":"v1","kind":"K"},"s":` + ref + `}}},` +
		`"components":{"schemas":{"a.v1.K":{"properties":{"spec":` + ref + `},"x-kubernetes-group-version-kind":[{"group":"policy","version":"v1","kind":"K"}]},` +
		`"a.v1.S":{"properties":{"t":` + ref + `},"allOf":[` + ref + `]}}}}`)
	convert := conversions(f, policyConversion)
	opts := ConvertOptions{Renames: map[string][]FieldRename{"K": {{From: []string{"spec", "a", "b"}, To: []string{"spec", "t", "t"}}}}}
	f.Fuzz(func(t *testing.T, doc string) {
		out, err := ConvertV3([]byte(doc), convert, opts)
		if err != nil {
			return
		}
		root, err := decodeObject(out)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		before, err := decodeObject([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		eachRef(root, func(name string) {
			if componentSchemas(root)[name] == nil && componentSchemas(before)[name] != nil {
				t.Errorf("a reference to %s, which is not there any more: %s", name, out)
			}
		})
	})
}
