package demo

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzServe sends any request to a server, past net/http's own checks. It must
// answer, and what it calls JSON must be JSON.
func FuzzServe(f *testing.F) {
	f.Add("GET", "/api/v1/pods?limit=1&continue=x", "", "", "")
	f.Add("POST", configMaps, `{"metadata":{"name":"a"}}`, jsonType, "")
	f.Add("PUT", configMaps+"/a", `metadata: {name: a}`, "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io")
	f.Add("PATCH", deployments+"/d?fieldManager=x", `{"spec":{"replicas":-1}}`, "application/apply-patch+yaml", "")
	f.Add("PATCH", customResources+"/a", `[{"op":"copy","from":"/a","path":"/b"}]`, "application/json-patch+json", "*/*")
	f.Add("PATCH", deployments+"/d", `{"spec":{"template":{"$patch":"delete"}}}`, "application/strategic-merge-patch+json", "")
	f.Add("POST", definitions, `{"spec":{"names":{"plural":7},"versions":[1]}}`, jsonType, "")
	f.Add("DELETE", configMaps+"?labelSelector=!a", `{"dryRun":["All"]}`, jsonType, "")
	f.Add("GET", "/openapi/v3/apis//", "", "", "")
	f.Add("GET", "/apis/%2f", "", "", aggregatedType("v2beta1"))

	c, err := Start(Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = c.Close() })
	for _, document := range []string{"crd.yaml", "deployment.yaml"} {
		data, err := manifestFiles.ReadFile("manifests/" + document)
		if err == nil {
			err = c.Apply(data)
		}
		if err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, method, target, body, contentType, accept string) {
		if strings.Contains(target, "watch") || strings.Contains(target, "follow") {
			return // an answer without an end
		}
		request, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
		if err != nil {
			return // net/http would not have read it
		}
		request.Header.Set("Content-Type", contentType)
		request.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		c.Servers()[0].serve(w, request)
		answer := w.Result()
		if answer.StatusCode == 0 {
			t.Fatal("no answer")
		}
		if answer.Header.Get("Content-Type") == jsonType && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%d %q is not JSON", answer.StatusCode, w.Body)
		}
	})
}
