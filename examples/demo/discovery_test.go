package demo

import (
	"encoding/json"
	"slices"
	"testing"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
)

func jsonText(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func TestAggregatedDiscovery(t *testing.T) {
	older, newer := clients(t)
	for _, version := range []string{"v2", "v2beta1"} {
		r := older.want(200, "GET", "/apis", "", "Accept: "+aggregatedType(version)+",application/json")
		equal(t, "type", r.header.Get("Content-Type"), aggregatedType(version))
		equal(t, "apiVersion", r.get("apiVersion"), "apidiscovery.k8s.io/"+version)
		equal(t, "groups", names(r), []string{
			"apps", "batch", "policy", "networking.k8s.io", "flowcontrol.apiserver.k8s.io", "apiextensions.k8s.io", "myapps.example.com",
		})
	}
	r := older.want(200, "GET", "/api", "", "Accept: "+aggregatedType("v2"))
	equal(t, "core group", names(r), []string{""})

	flowcontrol := func(c *client) (list []any) {
		r := c.want(200, "GET", "/apis?profile=nopeer", "", "Accept: "+aggregatedType("v2"))
		group := r.get("items").([]any)[4].(map[string]any)
		for _, v := range group["versions"].([]any) {
			list = append(list, v.(map[string]any)["version"])
		}
		return list
	}
	equal(t, "1.31", flowcontrol(older), []any{"v1", "v1beta3"})
	equal(t, "1.32", flowcontrol(newer), []any{"v1"})
}

func TestDiscoveryETag(t *testing.T) {
	older, _ := clients(t)
	accept := "Accept: " + aggregatedType("v2")
	first := older.want(200, "GET", "/apis", "", accept)
	etag := first.header.Get("ETag")
	equal(t, "Vary", first.header.Get("Vary"), "Accept")
	older.want(304, "GET", "/apis", "", accept, "If-None-Match: "+etag)
	older.want(200, "DELETE", definition, "")
	older.want(200, "GET", "/apis", "", accept, "If-None-Match: "+etag)
}

func TestUnaggregatedDiscovery(t *testing.T) {
	older, newer := clients(t)
	equal(t, "core versions", older.want(200, "GET", "/api", "").get("versions"), []any{"v1"})

	var groups []any
	for _, g := range older.want(200, "GET", "/apis", "", "Accept: application/json").get("groups").([]any) {
		groups = append(groups, g.(map[string]any)["name"])
	}
	if !slices.Contains(groups, any("policy")) || slices.Contains(groups, any("")) {
		t.Errorf("groups %v", groups)
	}

	group := older.want(200, "GET", "/apis/flowcontrol.apiserver.k8s.io", "")
	equal(t, "preferred", group.get("preferredVersion.version"), "v1")
	equal(t, "versions", len(group.get("versions").([]any)), 2)

	list := older.want(200, "GET", "/apis/apps/v1", "")
	equal(t, "groupVersion", list.get("groupVersion"), "apps/v1")
	var resources []any
	for _, r := range list.get("resources").([]any) {
		resources = append(resources, r.(map[string]any)["name"])
	}
	equal(t, "resources", resources, []any{"deployments", "deployments/scale", "deployments/status"})
	scale := list.get("resources").([]any)[1].(map[string]any)
	equal(t, "scale", []any{scale["kind"], scale["group"], scale["version"]}, []any{"Scale", "autoscaling", "v1"})

	for _, path := range []string{"/apis/flowcontrol.apiserver.k8s.io/v1beta3", "/apis/none", "/api/v2", "/apis/policy/v1beta1"} {
		newer.want(404, "GET", path, "")
	}
	newer.want(406, "GET", "/apis", "", "Accept: application/vnd.kubernetes.protobuf")
}

func TestOpenAPIv3(t *testing.T) {
	older, _ := clients(t)
	index := older.want(200, "GET", "/openapi/v3", "")
	paths := index.get("paths").(map[string]any)
	for _, path := range []string{"api/v1", "apis/policy/v1", "apis/myapps.example.com/v1beta1", "apis/flowcontrol.apiserver.k8s.io/v1beta3"} {
		entry, _ := paths[path].(map[string]any)
		if entry == nil {
			t.Fatalf("the index has no %s", path)
		}
		document := older.want(200, "GET", entry["serverRelativeURL"].(string), "")
		equal(t, "openapi", document.get("openapi"), "3.0.0")
		older.want(304, "GET", "/openapi/v3/"+path, "", "If-None-Match: "+document.header.Get("ETag"))
	}
	older.want(404, "GET", "/openapi/v3/apis/policy/v1beta1", "")

	schemas := older.want(200, "GET", "/openapi/v3/apis/policy/v1", "").object["components"].(map[string]any)["schemas"].(map[string]any)
	equal(t, "int-or-string", schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"], map[string]any{
		"format": "int-or-string", "oneOf": []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}},
	})
	equal(t, "kind", schemas["io.k8s.api.policy.v1.PodDisruptionBudget"].(map[string]any)["x-kubernetes-group-version-kind"],
		[]any{map[string]any{"group": "policy", "version": "v1", "kind": "PodDisruptionBudget"}})

	custom := older.want(200, "GET", "/openapi/v3/apis/myapps.example.com/v1beta1", "").object["components"].(map[string]any)["schemas"].(map[string]any)
	spec := jsonSchema(custom["com.example.myapps.v1beta1.CustomResource"].(map[string]any)).child("properties").child("spec")
	equal(t, "timeout", spec.child("properties").child("config").child("properties").child("requestTimeoutSeconds")["type"], "integer")
}

// Every reference of a document leads to a schema in it.
func TestOpenAPIReferences(t *testing.T) {
	older, _ := clients(t)
	var walk func(value any, schemas map[string]any, prefix string)
	walk = func(value any, schemas map[string]any, prefix string) {
		switch value := value.(type) {
		case map[string]any:
			if ref, ok := value["$ref"].(string); ok {
				if len(ref) <= len(prefix) || schemas[ref[len(prefix):]] == nil {
					t.Errorf("the reference %s leads nowhere", ref)
				}
			}
			for _, child := range value {
				walk(child, schemas, prefix)
			}
		case []any:
			for _, child := range value {
				walk(child, schemas, prefix)
			}
		}
	}
	for path := range older.want(200, "GET", "/openapi/v3", "").get("paths").(map[string]any) {
		document := older.want(200, "GET", "/openapi/v3/"+path, "").object
		schemas, _ := document["components"].(map[string]any)["schemas"].(map[string]any)
		walk(document, schemas, "#/components/schemas/")
	}
	document := older.want(200, "GET", "/openapi/v2", "").object
	walk(document, document["definitions"].(map[string]any), "#/definitions/")
}

func TestOpenAPIv2(t *testing.T) {
	older, _ := clients(t)
	r := older.want(200, "GET", "/openapi/v2", "", "Accept: application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
	equal(t, "type", r.header.Get("Content-Type"), protoV2Type)
	var document openapiv2.Document
	if err := proto.Unmarshal([]byte(r.text), &document); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, d := range document.GetDefinitions().GetAdditionalProperties() {
		kinds = append(kinds, d.GetName())
	}
	for _, want := range []string{"io.k8s.api.apps.v1.Deployment", "com.example.myapps.v1beta1.CustomResource"} {
		if !slices.Contains(kinds, want) {
			t.Errorf("the document has no %s", want)
		}
	}
	older.want(406, "GET", "/openapi/v2", "", "Accept: text/html")
}
