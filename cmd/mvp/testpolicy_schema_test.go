package main

import (
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The schemas of a cluster are those that its server answers to the kubeconfig's
// credential.
func TestSchemaOfCluster(t *testing.T) {
	documents := map[string]string{
		"/openapi/v3": `{"paths":{"apis/acme.io/v1":{"serverRelativeURL":"/openapi/v3/apis/acme.io/v1?hash=A"},"version":{"serverRelativeURL":"/openapi/v3/version?hash=B"}}}`,
		"/openapi/v3/apis/acme.io/v1": `{"openapi":"3.0.0","components":{"schemas":{"io.acme.v1.Thing":{
			"type":"object","x-kubernetes-group-version-kind":[{"group":"acme.io","version":"v1","kind":"Thing"}],"properties":{"spec":{"type":"object","properties":{"new":{"type":"boolean"}}}}}}}}`,
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		document, ok := documents[r.URL.Path]
		if !ok || r.Header.Get("Authorization") != "Bearer t" {
			http.Error(w, `{"kind":"Status","message":"not for you"}`, http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(document)) // the test fails where it does
	}))
	defer server.Close()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	kubeconfig := file("kubeconfig", `
clusters: [{name: c, cluster: {server: "`+server.URL+`", certificate-authority-data: "`+authority+`"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`)
	policy := file("10.convert.cel", `{'resource': 'things', 'kind': 'Thing', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1'}`)
	thing := file("thing.yaml", "apiVersion: acme.io/v1beta1\nkind: Thing\nspec: {new: 1}\n")
	f := func(wantCode int, want string, args ...string) {
		t.Helper()
		var out strings.Builder
		args = append([]string{"test-policy", "--policies", policy, "--schema", "cluster", "--kubeconfig"}, args...)
		if code := run(t.Context(), args, streams{strings.NewReader(""), &out, &out}); code != wantCode || !strings.Contains(out.String(), want) {
			t.Errorf("%q exited %d and printed %s, want %q", args, code, out.String(), want)
		}
	}

	f(exitFailed, `does not fit the schema of acme.io/v1: spec.new: must be of type boolean: "integer"`, kubeconfig, thing)
	f(exitOK, "acme.io/v1 things to acme.io/v1beta1 and back: 20 objects come back as they were", kubeconfig, "--fuzz", "20")
	stranger := file("stranger", strings.Replace(readText(t, kubeconfig), "token: t", "token: x", 1))
	f(exitFailed, "cannot read the schemas of "+server.URL+": ", stranger, thing)
}
