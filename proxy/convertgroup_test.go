package proxy_test

import (
	"net/http"
	"strings"
	"testing"
)

// A version of a group that no server has: the resource went to another group.
const acrossGroups = `apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: across}
spec:
  apiMigrationRules:
    - {apiGroup: extensions, resource: deployments, kind: Deployment, fromVersion: v1beta1, toGroup: apps, toVersion: v1}
    - {apiGroup: apps, resource: deployments, kind: Deployment, fromVersion: v1beta1, toVersion: v1}
    - {apiGroup: extensions, resource: ingresses, kind: Ingress, fromVersion: v1beta1, toGroup: networking.k8s.io, toVersion: v1}
`

const (
	movedThing = `{"apiVersion":"extensions/v1beta1","kind":"Deployment","metadata":{"name":"web","managedFields":[{"manager":"old","apiVersion":"extensions/v1beta1"},{"manager":"new","apiVersion":"apps/v1"}]},"spec":{"replicas":2}}`
	movedNow   = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","managedFields":[{"manager":"old","apiVersion":"extensions/v1beta1"},{"manager":"new","apiVersion":"apps/v1"}]},"spec":{"replicas":2}}`
)

var deploymentsV1 = []served{{"apps", "v1", "deployments", "Deployment"}}

func TestConversionAcrossGroups(t *testing.T) {
	u := record(t, "a", "1.32.13", deploymentsV1, func(q request) string {
		switch {
		case strings.Contains(q.target, "watch=1"):
			return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
				chunked(`{"type":"ADDED","object":`+movedNow+"}\n") + "0\r\n\r\n"
		case q.method == "GET" && strings.HasSuffix(q.target, "/deployments"):
			return ok(`{"apiVersion":"apps/v1","kind":"DeploymentList","metadata":{},"items":[` + movedNow + `]}`)
		}
		return ok(movedNow)
	})
	r := start(t, map[string]string{"across.yaml": acrossGroups}, nil, u)

	tests := []struct {
		name                  string
		method, target, media string
		body                  string
		wantTarget, wantBody  string // of what the server gets
		wantAnswer            string // is in what the client gets
	}{
		{"get", "GET", "/web", "", "", "/web", "", movedThing},
		{"list", "GET", "", "", "", "", "", `{"apiVersion":"extensions/v1beta1","kind":"DeploymentList","metadata":{},"items":[` + movedThing},
		{"watch", "GET", "?watch=1", "", "", "?watch=1", "", movedThing},
		{"create", "POST", "", "application/json", movedThing, "", movedNow, movedThing},
		{"update", "PUT", "/web", "application/json", movedThing, "/web", movedNow, movedThing},
		{"status", "PUT", "/web/status", "application/json", movedThing, "/web/status", movedNow, movedThing},
		{
			"merge patch", "PATCH", "/web", "application/merge-patch+json", `{"apiVersion":"extensions/v1beta1","spec":{"replicas":3}}`,
			"/web", `{"apiVersion":"apps/v1","spec":{"replicas":3}}`, movedThing,
		},
		{
			"JSON patch", "PATCH", "/web", "application/json-patch+json", `[{"op":"replace","path":"/spec/replicas","value":3}]`,
			"/web", `[{"op":"replace","path":"/spec/replicas","value":3}]`, movedThing,
		},
		{
			"apply", "PATCH", "/web?fieldManager=m", "application/apply-patch+yaml", "apiVersion: extensions/v1beta1\nkind: Deployment\nspec: {replicas: 3}\n",
			"/web?fieldManager=m", `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":3}}`, movedThing,
		},
		{"delete", "DELETE", "/web", "application/json", `{"apiVersion":"extensions/v1beta1","kind":"DeleteOptions"}`, "/web", `{"apiVersion":"apps/v1","kind":"DeleteOptions"}`, movedThing},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u.forget()
			got := r.do(tt.method, "/apis/extensions/v1beta1/namespaces/d/deployments"+tt.target, tt.media, tt.body)
			q := u.only()
			if q.target != "/apis/apps/v1/namespaces/d/deployments"+tt.wantTarget || strings.TrimSpace(q.body) != tt.wantBody {
				t.Errorf("sent %s %s\nwant %s %s", q.target, q.body, tt.wantTarget, tt.wantBody)
			}
			if got.code != http.StatusOK || !strings.Contains(got.body, tt.wantAnswer) {
				t.Errorf("answered %d %s\nwant %s", got.code, got.body, tt.wantAnswer)
			}
		})
	}

	// Two versions are made of the one that there is.
	if got := r.do("GET", "/apis/apps/v1beta1/namespaces/d/deployments/web", "", ""); !strings.HasPrefix(got.body, `{"apiVersion":"apps/v1beta1"`) {
		t.Errorf("apps/v1beta1 is %s", got.body)
	}
}

// A group that no server has is listed with what can be converted, and with nothing
// else.
func TestDiscoveryAcrossGroups(t *testing.T) {
	u := record(t, "a", "1.32.13", deploymentsV1, func(request) string { return respond(404, "text/plain", "404 page not found") })
	r := start(t, map[string]string{"across.yaml": acrossGroups}, nil, u)
	f := func(target, accept string, code int, wants ...string) {
		t.Helper()
		got := r.do("GET", target, "", "", "Accept", accept)
		if got.code != code {
			t.Errorf("%s: %d %s", target, got.code, got.body)
		}
		for _, want := range wants {
			if !strings.Contains(got.body, want) {
				t.Errorf("%s lacks %s\n%s", target, want, got.body)
			}
		}
		if strings.Contains(got.body, "ingresses") || strings.Contains(got.body, "networking.k8s.io") {
			t.Errorf("%s lists what nothing is converted to:\n%s", target, got.body)
		}
	}

	const plain, aggregated = "application/json", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	f("/apis", plain, 200, `"name":"extensions"`, `"groupVersion":"extensions/v1beta1"`, `"groupVersion":"apps/v1beta1"`)
	f("/apis", aggregated, 200, `"name":"extensions"`, `"resource":"deployments"`)
	f("/apis/extensions", plain, 200, `"preferredVersion":{"groupVersion":"extensions/v1beta1","version":"v1beta1"}`)
	f("/apis/extensions/v1beta1", plain, 200, `"groupVersion":"extensions/v1beta1"`, `"name":"deployments"`, `"kind":"Deployment"`)
	f("/apis/apps", plain, 200, `"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}`)
	f("/apis/networking.k8s.io/v1", plain, 404)
}

// A conversion to what no server serves does nothing: the server is asked what the
// client asks, in the client's words.
func TestConversionToNothing(t *testing.T) {
	const body = `{"apiVersion":"extensions/v1beta1","kind":"Ingress","metadata":{"name":"web"}}`
	u := record(t, "a", "1.32.13", deploymentsV1, func(request) string { return respond(404, "text/plain", "404 page not found") })
	r := start(t, map[string]string{"across.yaml": acrossGroups}, nil, u)
	got := r.do("POST", "/apis/extensions/v1beta1/namespaces/d/ingresses", "application/json", body)
	if q := u.only(); q.target != "/apis/extensions/v1beta1/namespaces/d/ingresses" || q.body != body {
		t.Errorf("sent %s %s", q.target, q.body)
	}
	if got.code != http.StatusNotFound || got.body != "404 page not found" || got.header.Get("Warning") != "" {
		t.Errorf("answered %d %s %v", got.code, got.body, got.header)
	}
}

// The version of a group that no server has is in OpenAPI, under that group's paths.
func TestOpenAPIAcrossGroups(t *testing.T) {
	u := record(t, "a", "1.32.13", []served{{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"}}, nil)
	u.openapi = func(target string) string {
		if target == "/openapi/v3" {
			return ok(`{"paths":{"apis/policy/v1":{"serverRelativeURL":"/openapi/v3/apis/policy/v1?hash=1"}}}`)
		}
		return ok(pdbDocument)
	}
	r := start(t, map[string]string{"across.convert.cel": `{
  'resource': 'poddisruptionbudgets', 'kind': 'PodDisruptionBudget', 'from': 'extensions/v1beta1', 'to': 'policy/v1'
}`}, nil, u)
	r.eventually("OpenAPI v3 lists extensions/v1beta1", func() bool {
		return strings.Contains(r.do("GET", "/openapi/v3", "", "").body, `"apis/extensions/v1beta1"`)
	})
	got := r.do("GET", "/openapi/v3/apis/extensions/v1beta1", "", "")
	for _, want := range []string{
		`"/apis/extensions/v1beta1/namespaces/{namespace}/poddisruptionbudgets"`,
		`"x-kubernetes-group-version-kind":[{"group":"extensions","kind":"PodDisruptionBudget","version":"v1beta1"}]`,
	} {
		if got.code != http.StatusOK || !strings.Contains(got.body, want) {
			t.Errorf("the document is %d %s\nwithout %s", got.code, got.body, want)
		}
	}
}
