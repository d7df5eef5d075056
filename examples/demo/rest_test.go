package demo

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	deployments = "/apis/apps/v1/namespaces/default/deployments"
	budgets     = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
	deployment  = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"app":"d"}},
		"template":{"metadata":{"labels":{"app":"d"}},"spec":{"containers":[{"name":"a","image":"a:1"},{"name":"b","image":"b:1"}]}}}}`
)

func TestCreate(t *testing.T) {
	older, _ := clients(t)
	r := older.want(201, "POST", deployments, deployment)
	equal(t, "generation", r.get("metadata.generation"), 1)
	equal(t, "namespace", r.get("metadata.namespace"), "default")
	equal(t, "replicas", r.get("spec.replicas"), 1)
	for _, path := range []string{"metadata.uid", "metadata.resourceVersion", "metadata.creationTimestamp", "metadata.managedFields"} {
		if r.get(path) == nil {
			t.Errorf("a new object has no %s", path)
		}
	}

	generated := older.want(201, "POST", configMaps, `{"metadata":{"generateName":"x-"}}`)
	if name := fmt.Sprint(generated.get("metadata.name")); len(name) != len("x-")+generatedNameLength || !strings.HasPrefix(name, "x-") {
		t.Errorf("generated name %q", name)
	}
}

func TestUpdate(t *testing.T) {
	older, newer := clients(t)
	created := older.want(201, "POST", deployments, deployment)
	revision := fmt.Sprint(created.get("metadata.resourceVersion"))

	// The status cannot be written with the rest, the uid not at all.
	body := strings.Replace(deployment, `"name":"d"}`, `"name":"d","uid":"`+fmt.Sprint(created.get("metadata.uid"))+`","resourceVersion":"`+revision+`"}`, 1)
	body = strings.Replace(body, `"spec":{`, `"status":{"replicas":99},"spec":{"replicas":3,`, 1)
	updated := newer.want(200, "PUT", deployments+"/d", body)
	equal(t, "generation", updated.get("metadata.generation"), 2)
	equal(t, "replicas", updated.get("spec.replicas"), 3)
	equal(t, "status", updated.get("status.replicas"), 3)
	equal(t, "uid", updated.get("metadata.uid"), created.get("metadata.uid"))

	conflict := older.want(409, "PUT", deployments+"/d", body)
	equal(t, "reason", conflict.get("reason"), "Conflict")
	equal(t, "message", conflict.get("message"), `Operation cannot be fulfilled on deployments.apps "d": the object has been modified; please apply your changes to the latest version and try again`)

	// A write that says nothing new is none.
	again := strings.Replace(body, `"resourceVersion":"`+revision, `"resourceVersion":"`+fmt.Sprint(updated.get("metadata.resourceVersion")), 1)
	equal(t, "revision", older.want(200, "PUT", deployments+"/d", again).get("metadata.resourceVersion"), updated.get("metadata.resourceVersion"))

	status := older.want(200, "PUT", deployments+"/d/status", `{"metadata":{"name":"d"},"spec":{"replicas":7},"status":{"replicas":2}}`)
	equal(t, "spec by status", status.get("spec.replicas"), 3)
	equal(t, "status by status", status.get("status.replicas"), 2)
	equal(t, "generation by status", status.get("metadata.generation"), 2)
}

// Every row is a request that a kube-apiserver refuses, and its words.
func TestRefused(t *testing.T) {
	older, _ := clients(t)
	older.want(201, "POST", configMaps, `{"metadata":{"name":"a"}}`)
	tests := []struct {
		name, method, target, body, contentType string
		code                                    int
		reason, message                         string
	}{
		{
			"absent", "GET", configMaps + "/x", "", "",
			404, "NotFound", `configmaps "x" not found`,
		},
		{
			"there already", "POST", configMaps, `{"metadata":{"name":"a"}}`, "",
			409, "AlreadyExists", `configmaps "a" already exists`,
		},
		{
			"another version in the body", "POST", budgets, `{"apiVersion":"policy/v1beta1","kind":"PodDisruptionBudget"}`, "",
			400, "BadRequest", "the API version in the data (policy/v1beta1) does not match the expected API version (policy/v1)",
		},
		{
			"another name in the body", "PUT", configMaps + "/a", `{"metadata":{"name":"b"}}`, "",
			400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)",
		},
		{
			"another namespace in the body", "POST", configMaps, `{"metadata":{"name":"b","namespace":"c"}}`, "",
			400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request",
		},
		{
			"no such namespace", "POST", "/api/v1/namespaces/x/configmaps", `{"metadata":{"name":"b"}}`, "",
			404, "NotFound", `namespaces "x" not found`,
		},
		{
			"both limits of a budget", "POST", budgets, `{"metadata":{"name":"b"},"spec":{"minAvailable":1,"maxUnavailable":1}}`, "",
			422, "Invalid", `PodDisruptionBudget.policy "b" is invalid: spec: Invalid value: "both set": minAvailable and maxUnavailable cannot be both set`,
		},
		{
			"a number as a string", "POST", budgets, `{"metadata":{"name":"b"},"spec":{"minAvailable":"1"}}`, "",
			422, "Invalid", "a valid percent string must be a numeric string",
		},
		{
			"a wrong type", "POST", deployments, `{"metadata":{"name":"b"},"spec":{"replicas":"three"}}`, "",
			400, "BadRequest", "cannot be handled as a Deployment",
		},
		{
			"wrong metadata", "POST", configMaps, `{"metadata":{"name":7}}`, "",
			400, "BadRequest", "metadata: ",
		},
		{
			"an unknown field, strictly", "POST", deployments + "?fieldValidation=Strict", `{"metadata":{"name":"b"},"spec":{"replica":3}}`, "",
			400, "BadRequest", `strict decoding error: unknown field "spec.replica"`,
		},
		{
			"no JSON", "POST", configMaps, `{`, "",
			400, "BadRequest", "json parse error",
		},
		{
			"no body", "POST", configMaps, ``, "",
			400, "BadRequest", "json parse error",
		},
		{
			"not our format", "POST", configMaps, `<a/>`, "application/xml",
			415, "UnsupportedMediaType", "the body of the request was in an unknown format (application/xml)",
		},
		{
			"too large", "POST", configMaps, `{"metadata":{"name":"` + strings.Repeat("a", maxBody) + `"}}`, "",
			413, "RequestEntityTooLarge", "limit is 3145728",
		},
		{
			"a later revision", "GET", configMaps + "?resourceVersion=999999", "", "",
			504, "Timeout", "Too large resource version: 999999",
		},
		{
			"no revision", "GET", configMaps + "?resourceVersion=new", "", "",
			400, "BadRequest", `resourceVersion: Invalid value: "new"`,
		},
		{
			"an unknown field selector", "GET", configMaps + "?fieldSelector=spec.x%3D1", "", "",
			400, "BadRequest", "field label not supported: spec.x",
		},
		{
			"an invalid label selector", "GET", configMaps + "?labelSelector=%3D", "", "",
			400, "BadRequest", "unable to parse label selector",
		},
		{
			"a broken continue token", "GET", configMaps + "?continue=x", "", "",
			400, "BadRequest", "continue key is not valid",
		},
		{
			"an unknown dry run", "POST", configMaps + "?dryRun=Some", `{"metadata":{"name":"b"}}`, "",
			400, "BadRequest", `dryRun: unsupported value: "Some"`,
		},
		{
			"a create of all namespaces", "POST", "/api/v1/configmaps", `{"metadata":{"name":"b"}}`, "",
			405, "MethodNotAllowed", "create is not supported on resources of kind",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			contentType := tt.contentType
			if contentType == "" {
				contentType = jsonType
			}
			r := older.do(tt.method, tt.target, tt.body, "Content-Type: "+contentType)
			message := fmt.Sprint(r.get("message"))
			if r.code != tt.code || r.get("reason") != tt.reason || !strings.Contains(message, tt.message) {
				t.Errorf("%d %v %q\nwant %d %s %q", r.code, r.get("reason"), message, tt.code, tt.reason, tt.message)
			}
			equal(t, "kind", r.get("kind"), "Status")
			equal(t, "code", r.get("code"), tt.code)
		})
	}
}

func TestUnknownFieldsAreWarnedOfAndDropped(t *testing.T) {
	older, _ := clients(t)
	r := older.want(201, "POST", budgets, `{"metadata":{"name":"b"},"spec":{"minAvailable":1,"maxDown":2}}`)
	equal(t, "warnings", r.header.Values("Warning"), []string{`299 - "unknown field \"spec.maxDown\""`})
	equal(t, "field", r.get("spec.maxDown"), nil)
	r = older.want(201, "POST", budgets+"?fieldValidation=Ignore", `{"metadata":{"name":"c"},"spec":{"maxDown":2}}`)
	equal(t, "warnings when ignored", r.header.Values("Warning"), nil)
}

func TestDryRun(t *testing.T) {
	older, _ := clients(t)
	older.want(201, "POST", configMaps+"?dryRun=All", `{"metadata":{"name":"a"}}`)
	older.want(404, "GET", configMaps+"/a", "")
	older.want(201, "POST", configMaps, `{"metadata":{"name":"a"}}`)
	r := older.want(200, "PUT", configMaps+"/a?dryRun=All", `{"metadata":{"name":"a"},"data":{"k":"v"}}`)
	equal(t, "data", r.get("data.k"), "v")
	older.want(200, "DELETE", configMaps+"/a?dryRun=All", "")
	older.want(200, "DELETE", configMaps+"/a", `{"apiVersion":"v1","kind":"DeleteOptions","dryRun":["All"]}`)
	equal(t, "data after the dry runs", older.want(200, "GET", configMaps+"/a", "").get("data"), nil)
}

func TestDelete(t *testing.T) {
	older, _ := clients(t)
	created := older.want(201, "POST", configMaps, `{"metadata":{"name":"a"}}`)
	r := older.want(409, "DELETE", configMaps+"/a", `{"preconditions":{"uid":"other"}}`)
	equal(t, "reason", r.get("reason"), "Conflict")
	r = older.want(200, "DELETE", configMaps+"/a", `{"propagationPolicy":"Background"}`)
	equal(t, "status", r.get("status"), "Success")
	equal(t, "details", r.get("details"), map[string]any{"name": "a", "kind": "configmaps", "uid": created.get("metadata.uid")})
	older.want(404, "DELETE", configMaps+"/a", "")
}

func TestFinalizers(t *testing.T) {
	older, _ := clients(t)
	older.want(201, "POST", configMaps, `{"metadata":{"name":"a","finalizers":["example.com/hold"]}}`)
	r := older.want(200, "DELETE", configMaps+"/a", "")
	if r.get("metadata.deletionTimestamp") == nil {
		t.Fatalf("an object with a finalizer is not marked: %s", r.text)
	}
	older.want(200, "GET", configMaps+"/a", "")
	older.want(200, "PATCH", configMaps+"/a", `{"metadata":{"finalizers":null}}`, "Content-Type: application/merge-patch+json")
	older.want(404, "GET", configMaps+"/a", "")
}

func TestDeleteCollection(t *testing.T) {
	older, _ := clients(t)
	for _, name := range []string{"a", "b", "c"} {
		older.want(201, "POST", configMaps, `{"metadata":{"name":"`+name+`","labels":{"keep":"`+fmt.Sprint(name == "b")+`"}}}`)
	}
	r := older.want(200, "DELETE", configMaps+"?labelSelector=keep%3Dfalse", "")
	equal(t, "deleted", names(r), []string{"a", "c"})
	equal(t, "left", names(older.want(200, "GET", configMaps, "")), []string{"b"})
}

func TestDeleteNamespace(t *testing.T) {
	older, _ := clients(t)
	older.want(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"web"}}`)
	older.want(201, "POST", "/api/v1/namespaces/web/secrets", `{"metadata":{"name":"s"}}`)
	older.want(200, "DELETE", "/api/v1/namespaces/web", "")
	older.want(404, "GET", "/api/v1/namespaces/web/secrets/s", "")
}

func names(r *reply) []string {
	var list []string
	items, _ := r.get("items").([]any)
	for _, item := range items {
		obj, _ := item.(map[string]any)
		list = append(list, text(obj, "metadata", "name"))
	}
	return list
}

func TestList(t *testing.T) {
	older, _ := clients(t)
	empty := older.want(200, "GET", configMaps, "")
	equal(t, "items", empty.get("items"), []any{})
	equal(t, "kind", empty.get("kind"), "ConfigMapList")

	for _, name := range []string{"b", "a", "c"} {
		older.want(201, "POST", configMaps, `{"metadata":{"name":"`+name+`","labels":{"name":"`+name+`"}}}`)
	}
	older.want(201, "POST", "/api/v1/namespaces/kube-system/configmaps", `{"metadata":{"name":"z"}}`)
	f := func(target string, want ...string) {
		t.Helper()
		equal(t, target, names(older.want(200, "GET", target, "")), want)
	}

	f(configMaps, "a", "b", "c")
	f("/api/v1/configmaps", "a", "b", "c", "z")
	f(configMaps+"?labelSelector="+url.QueryEscape("name in (a,c)"), "a", "c")
	f(configMaps+"?fieldSelector=metadata.name%3Db", "b")
	f("/api/v1/configmaps?fieldSelector=metadata.namespace!%3Ddefault", "z")
	f(configMaps+"?resourceVersion=0", "a", "b", "c")

	// Items of built-in lists come without apiVersion and kind.
	item := older.want(200, "GET", configMaps, "").get("items").([]any)[0].(map[string]any)
	equal(t, "kind of an item", item["kind"], nil)
}

func TestPages(t *testing.T) {
	older, _ := clients(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		older.want(201, "POST", configMaps, `{"metadata":{"name":"`+name+`"}}`)
	}
	first := older.want(200, "GET", configMaps+"?limit=2", "")
	equal(t, "first page", names(first), []string{"a", "b"})
	equal(t, "remaining", first.get("metadata.remainingItemCount"), 3)
	next := url.QueryEscape(fmt.Sprint(first.get("metadata.continue")))
	second := older.want(200, "GET", configMaps+"?limit=2&continue="+next, "")
	equal(t, "second page", names(second), []string{"c", "d"})
	equal(t, "revision", second.get("metadata.resourceVersion"), first.get("metadata.resourceVersion"))
	next = url.QueryEscape(fmt.Sprint(second.get("metadata.continue")))
	last := older.want(200, "GET", configMaps+"?limit=2&continue="+next, "")
	equal(t, "last page", names(last), []string{"e"})
	equal(t, "continue", last.get("metadata.continue"), nil)
}

func TestForms(t *testing.T) {
	older, _ := clients(t)
	older.want(201, "POST", budgets, `{"metadata":{"name":"b"},"spec":{"minAvailable":"50%"}}`)
	const table = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"

	r := older.want(200, "GET", budgets, "", table)
	equal(t, "apiVersion", r.get("apiVersion"), "meta.k8s.io/v1")
	var columns []any
	for _, c := range r.get("columnDefinitions").([]any) {
		columns = append(columns, c.(map[string]any)["name"])
	}
	equal(t, "columns", columns, []string{"Name", "Min Available", "Max Unavailable", "Allowed Disruptions", "Age"})
	row := r.get("rows").([]any)[0].(map[string]any)
	equal(t, "cells", row["cells"].([]any)[:4], []any{"b", "50%", nil, nil})
	equal(t, "object", row["object"].(map[string]any)["kind"], "PartialObjectMetadata")

	whole := older.want(200, "GET", budgets+"/b?includeObject=Object", "", table).get("rows").([]any)[0].(map[string]any)
	equal(t, "whole object", whole["object"].(map[string]any)["kind"], "PodDisruptionBudget")

	r = older.want(200, "GET", budgets, "", "Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
	equal(t, "list kind", r.get("kind"), "PartialObjectMetadataList")
	equal(t, "item kind", r.get("items").([]any)[0].(map[string]any)["kind"], "PartialObjectMetadata")
	equal(t, "item names", names(r), []string{"b"})

	r = older.want(200, "GET", budgets+"/b", "", "Accept: application/vnd.kubernetes.protobuf,application/json")
	equal(t, "kind", r.get("kind"), "PodDisruptionBudget")
	r = older.want(406, "GET", budgets+"/b", "", "Accept: application/vnd.kubernetes.protobuf")
	equal(t, "reason", r.get("reason"), "NotAcceptable")
}

// kubectl writes what it makes itself in protobuf.
func TestProtobufBody(t *testing.T) {
	older, _ := clients(t)
	var body strings.Builder
	cm := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"},
	}
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(cm, &body); err != nil {
		t.Fatal(err)
	}
	r := older.want(201, "POST", configMaps, body.String(), "Content-Type: "+runtime.ContentTypeProtobuf)
	equal(t, "data", r.get("data.k"), "v")
	r = older.want(400, "POST", configMaps, "no protobuf", "Content-Type: "+runtime.ContentTypeProtobuf)
	if message := fmt.Sprint(r.get("message")); !strings.Contains(message, "cannot read the protobuf body") {
		t.Error(message)
	}
}

func TestScale(t *testing.T) {
	older, _ := clients(t)
	older.want(201, "POST", deployments, deployment)
	scale := older.want(200, "GET", deployments+"/d/scale", "")
	equal(t, "kind", scale.get("kind"), "Scale")
	equal(t, "selector", scale.get("status.selector"), "app=d")
	older.want(200, "PATCH", deployments+"/d/scale", `{"spec":{"replicas":3}}`, "Content-Type: application/merge-patch+json")
	equal(t, "patched", older.want(200, "GET", deployments+"/d", "").get("spec.replicas"), 3)
	older.want(200, "PUT", deployments+"/d/scale", `{"spec":{"replicas":4}}`)
	equal(t, "put", older.want(200, "GET", deployments+"/d", "").get("spec.replicas"), 4)
	older.want(404, "GET", deployments+"/x/scale", "")
	older.want(404, "GET", configMaps+"/x/scale", "")
}
