package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
)

// comparedPolicies are of all kinds.
var comparedPolicies = []policies.File{
	{Name: "10.convert.cel", Data: []byte(`{'resource': 'things', 'kind': 'Thing', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1'}`)},
	{Name: "10.request.jq", Data: []byte(`rename(.spec.old; .spec.new) | if .spec.new == "bad" then error("not today") else . end`)},
	{Name: "10.response.jq", Data: []byte(`rename(.spec.new; .spec.old)`)},
	{Name: "20.match.cel", Data: []byte(`request.resource == 'pods' && request.verb == 'create'`)},
	{Name: "20.deny.cel", Data: []byte(`request.namespace == 'shop' ? 'the shop is "frozen"' : ''`)},
	{Name: "20.warn.cel", Data: []byte(`has(object.spec) ? 'ä "warning"' : ''`)},
	{Name: "30.match.cel", Data: []byte(`request.resource == 'jobs'`)},
	{Name: "30.route.cel", Data: []byte(`request.namespace == 'none' ? -1 : upstream.version.minor`)},
	{Name: "40.match.cel", Data: []byte(`request.userAgent.startsWith('audited')`)},
	{Name: "40.deny.cel", Data: []byte(`'would be denied'`)},
	{Name: "40.mode.cel", Data: []byte(`'audit'`)},
	{Name: "50.convert.cel", Data: []byte(`{'resource': 'gears', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1'}`)},
	{Name: "60.match.cel", Data: []byte(`request.resource == 'nodes' && object.spec.x == 1`)},
	{Name: "60.deny.cel", Data: []byte(`'no'`)},
	{Name: "60.failure.cel", Data: []byte(`'ignore'`)},
	{Name: "rules.yaml", Data: []byte(`
apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: rules}
spec:
  apiMigrationRules:
    - apiGroup: acme.io
      resource: wheels
      kind: Wheel
      fromVersion: v1beta1
      toVersion: v1
      transformations:
        - {path: spec.a, action: rename, targetPath: spec.b, type: integer}
        - {path: spec.c, action: ensureFieldExistence, defaultValue: x}
        - {path: metadata.labels.tier, action: rename, targetPath: 'metadata.labels["acme.io/tier"]'}
    - {apiGroup: acme.io, resource: wheels, kind: Wheel, fromVersion: v1alpha1, toVersion: v1beta1, transformations: [{path: spec.z, action: rename, targetPath: spec.a}]}
    - {apiGroup: networking.k8s.io, resource: ingresses, kind: Ingress, fromVersion: v1beta1, toVersion: v1, transformations: [{path: spec.backend, action: rename, targetPath: spec.defaultBackend}]}
    - {apiGroup: acme.io, resource: cogs, kind: Cog, fromVersion: v1, toVersion: v2, when: always, mode: audit, transformations: [{path: spec.a, action: rename, targetPath: spec.b}]}
`)},
}

const (
	comparedThing = `{"apiVersion":"acme.io/v1","kind":"Thing","metadata":{"name":"t"},"spec":{"new":1}}`
	comparedWheel = `{"apiVersion":"acme.io/v1","kind":"Wheel","metadata":{"name":"w","labels":{"acme.io/tier":"x"}},"spec":{"b":1,"c":"y"}}`
	wheelsPath    = "/apis/acme.io/v1beta1/namespaces/d/wheels"
	thingsPath    = "/apis/acme.io/v1beta1/namespaces/d/things"
	ingressesPath = "/apis/networking.k8s.io/v1beta1/namespaces/d/ingresses"

	misplaced       = `{"apiVersion":"networking.k8s.io/v1beta1","kind":"Ingress","metadata":{"name":"i"},"spec":{"defaultBackend":{"resource":{"kind":"A","name":"b"}}}}`
	comparedIngress = `{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"i"},"spec":{}}`
)

// comparedRequests are a line each: what is asked, and what the server answers.
var comparedRequests = []struct{ name, method, target, contentType, body, response string }{
	{"create", "POST", wheelsPath, "", `{"apiVersion":"acme.io/v1beta1","kind":"Wheel","metadata":{"name":"w"},"spec":{"a":"1","n":1.50}}`, comparedWheel},
	{"create in YAML", "POST", wheelsPath, "application/yaml", "apiVersion: acme.io/v1beta1\nkind: Wheel\nspec: {a: 2}\n", comparedWheel},
	{"create through jq", "POST", thingsPath, "", `{"apiVersion":"acme.io/v1beta1","kind":"Thing","spec":{"old":1}}`, comparedThing},
	{"create through a chain", "POST", "/apis/acme.io/v1alpha1/namespaces/d/wheels", "", `{"apiVersion":"acme.io/v1alpha1","kind":"Wheel","spec":{"z":"5"}}`, comparedWheel},
	{"update", "PUT", wheelsPath + "/w?dryRun=All", "", `{"apiVersion":"acme.io/v1beta1","kind":"Wheel","metadata":{"name":"w"},"spec":{"a":3,"c":"z"}}`, comparedWheel},
	{"update the status", "PUT", wheelsPath + "/w/status", "", `{"apiVersion":"acme.io/v1beta1","kind":"Wheel","metadata":{"name":"w"},"spec":{"a":3}}`, comparedWheel},
	{"merge patch", "PATCH", wheelsPath + "/w", dryrun.MergePatch, `{"spec":{"a":"4","x":null}}`, comparedWheel},
	{"JSON patch", "PATCH", wheelsPath + "/w", dryrun.JSONPatch, `[{"op":"replace","path":"/spec/a","value":"5"}]`, comparedWheel},
	{"apply", "PATCH", wheelsPath + "/w?fieldManager=m", dryrun.ApplyPatch, "apiVersion: acme.io/v1beta1\nkind: Wheel\nspec: {a: '6'}\n", comparedWheel},
	{"get", "GET", wheelsPath + "/w", "", "", comparedWheel},
	{"list", "GET", wheelsPath + "?labelSelector=tier%3Dx&limit=2", "", "", `{"apiVersion":"acme.io/v1","kind":"WheelList","metadata":{"resourceVersion":"5"},"items":[` + comparedWheel + `,{"metadata":{"name":"v"},"spec":{"b":2}}]}`},
	{"list through jq", "GET", thingsPath, "", "", `{"apiVersion":"acme.io/v1","kind":"ThingList","items":[` + comparedThing + `]}`},
	{"watch", "GET", wheelsPath + "?watch=1&allowWatchBookmarks=true&timeoutSeconds=1", "", "", `{"type":"ADDED","object":` + comparedWheel + "}\n" + `{"type":"BOOKMARK","object":{"apiVersion":"acme.io/v1","kind":"Wheel","metadata":{"resourceVersion":"7"}}}` + "\n"},
	{"delete", "DELETE", wheelsPath + "/w", "", "", `{"apiVersion":"v1","kind":"Status","metadata":{},"status":"Success"}`},
	{"a field of the servers' version", "POST", ingressesPath, "", misplaced, comparedIngress},
	{"a field of the servers' version, passed over", "PUT", ingressesPath + "/i?fieldValidation=Ignore", "", misplaced, comparedIngress},
	{"a field of the servers' version, refused", "POST", ingressesPath + "?fieldValidation=Strict", "", misplaced, ""},
	{"what nobody converts", "POST", "/apis/acme.io/v1/namespaces/d/wheels", "", `{"apiVersion":"acme.io/v1","kind":"Wheel","spec":{"b":1}}`, comparedWheel},

	{"to what no server has", "GET", "/apis/acme.io/v1beta1/namespaces/d/gears/g", "", "", `{"kind":"Gear"}`},
	{"a policy that is passed over", "POST", "/api/v1/nodes", "", `{"kind":"Node"}`, `{"kind":"Node"}`},

	{"deny", "POST", "/api/v1/namespaces/shop/pods", "", `{"kind":"Pod"}`, `{"kind":"Pod"}`},
	{"warn", "POST", "/api/v1/namespaces/d/pods", "", `{"kind":"Pod","spec":{}}`, `{"kind":"Pod"}`},
	{"route", "GET", "/apis/batch/v1/namespaces/d/jobs", "", "", `{"kind":"JobList","items":[]}`},
	{"no server", "GET", "/apis/batch/v1/namespaces/none/jobs", "", "", ""},
	{"audit", "GET", "/api/v1/namespaces/audited/pods/p", "", "", `{"kind":"Pod"}`},
	{"audit of bodies", "PUT", "/apis/acme.io/v1/namespaces/d/cogs/c", "", `{"apiVersion":"acme.io/v1","kind":"Cog","spec":{"a":1}}`, `{"apiVersion":"acme.io/v1","kind":"Cog","spec":{"b":1}}`},

	{"a value that cannot be converted", "POST", wheelsPath, "", `{"apiVersion":"acme.io/v1beta1","kind":"Wheel","spec":{"a":"many"}}`, ""},
	{"both names", "POST", wheelsPath, "", `{"apiVersion":"acme.io/v1beta1","kind":"Wheel","spec":{"a":1,"b":2}}`, ""},
	{"another version", "POST", wheelsPath, "", `{"apiVersion":"acme.io/v1","kind":"Wheel","spec":{}}`, ""},
	{"no JSON", "POST", wheelsPath, "", `{"spec":`, ""},
	{"a program that fails", "POST", thingsPath, "", `{"apiVersion":"acme.io/v1beta1","kind":"Thing","spec":{"old":"bad"}}`, ""},
}

// A dry run says what a proxy does: the same requests, each through both.
func TestDryRunIsWhatAProxyDoes(t *testing.T) {
	set, err := policies.LoadFiles(comparedPolicies, policies.Options{})
	if err != nil {
		t.Fatal(err)
	}
	serves := map[string][]string{"v1": {"pods", "nodes"}, "batch/v1": {"jobs"}, "acme.io/v1": {"things", "wheels", "cogs"}, "acme.io/v2": {"cogs"}, "networking.k8s.io/v1": {"ingresses"}}
	old := &recordedServer{name: "old", version: "1.31.4", serves: serves}
	newer := &recordedServer{name: "newer", version: "1.32.1", serves: serves}
	p := startProxy(t, set, old, newer)
	set = set.WithSchemas(offlineSchemas(nil))
	servers := []dryrun.Server{
		{Name: old.name, Version: engine.Version{Major: 1, Minor: 31, Patch: 4}},
		{Name: newer.name, Version: engine.Version{Major: 1, Minor: 32, Patch: 1}},
	}
	for i := range servers {
		servers[i].Serves = func(group, version, resource string) bool {
			return slices.Contains(serves[strings.TrimPrefix(group+"/"+version, "/")], resource)
		}
	}
	for _, tt := range comparedRequests {
		t.Run(tt.name, func(t *testing.T) {
			request := dryrun.Request{Method: tt.method, Target: tt.target, Header: http.Header{"User-Agent": {tt.name}}}
			if tt.body != "" {
				request.Body = []byte(tt.body)
				request.Header.Set("Content-Type", tt.contentType)
				if tt.contentType == "" {
					request.Header.Set("Content-Type", "application/json")
				}
			}
			if strings.HasPrefix(tt.name, "audit") {
				request.Header.Set("User-Agent", "audited")
			}
			options := dryrun.Options{Servers: servers}
			if tt.response != "" {
				options.Response = []byte(tt.response)
			}
			want := dryrun.Run(set, request, options)
			compareWithProxy(t, p, request, tt.response, want)
		})
	}
}

// compareWithProxy sends the request through p, and compares what comes of it with the
// dry run.
func compareWithProxy(t *testing.T, p *recordingProxy, request dryrun.Request, response string, want *dryrun.Result) {
	t.Helper()
	p.log.forget()
	for _, s := range p.servers {
		s.answers(response)
	}
	sent, err := http.NewRequestWithContext(t.Context(), request.Method, "http://"+p.addr+request.Target, bytes.NewReader(request.Body))
	if err != nil {
		t.Fatal(err)
	}
	sent.Header = request.Header.Clone()
	answer, err := http.DefaultTransport.RoundTrip(sent)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var got []recordedRequest
	for _, s := range p.servers {
		got = append(got, s.got()...)
	}
	if want.Target == "" {
		compareRefusal(t, answer.StatusCode, body, want)
		if len(got) > 0 {
			t.Errorf("a server got %v", got)
		}
	} else {
		compareExchange(t, got, answer.StatusCode, body, want)
	}
	if warnings, wanted := warnedOf(answer.Header.Values("Warning")), wantedWarnings(want); !slices.Equal(warnings, wanted) {
		t.Errorf("the proxy warns of %q, the dry run of %q", warnings, wanted)
	}
	var audited []string
	eventually(t, "the request is logged", func() (ok bool) { audited, ok = p.log.audited(); return ok })
	if !slices.Equal(audited, want.Effects) {
		t.Errorf("the proxy logs the audit of %q, the dry run tells %q", audited, want.Effects)
	}
}

// compareRefusal compares what the proxy itself answers.
func compareRefusal(t *testing.T, code int, body []byte, want *dryrun.Result) {
	t.Helper()
	var status struct {
		Message string `json:"message"`
		Code    int    `json:"code"`
	}
	if err := json.Unmarshal(body, &status); err != nil {
		t.Fatalf("the proxy answers %d %s", code, body)
	}
	if code != want.Code || status.Code != want.Code || !strings.Contains(status.Message, want.Message()) {
		t.Errorf("the proxy refuses with %d %q, the dry run with %d %q", code, status.Message, want.Code, want.Message())
	}
}

// compareExchange compares what the server is sent and what the client is answered.
func compareExchange(t *testing.T, got []recordedRequest, code int, body []byte, want *dryrun.Result) {
	t.Helper()
	if len(got) != 1 || code != http.StatusOK {
		t.Fatalf("the proxy answers %d %s after the servers got %v; the dry run has %s", code, body, got, want.Verdict())
	}
	if got[0].target != want.Target || got[0].method != want.Request.Method {
		t.Errorf("the proxy sends %s %s, the dry run %s", got[0].method, got[0].target, want.Target)
	}
	if !sameDocuments(t, []byte(got[0].body), want.Sent) {
		t.Errorf("the proxy sends\n%s\nthe dry run\n%s", got[0].body, want.Sent)
	}
	if !slices.Contains(want.Best(), got[0].server) {
		t.Errorf("the proxy asks %s, the dry run %v", got[0].server, want.Best())
	}
	if !sameDocuments(t, body, want.Answer) {
		t.Errorf("the proxy answers\n%s\nthe dry run\n%s", body, want.Answer)
	}
}

// sameDocuments compares JSON documents that follow each other, or one in YAML, with
// every digit of their numbers.
func sameDocuments(t *testing.T, a, b []byte) bool {
	t.Helper()
	read := func(text []byte) []any {
		documents, err := dryrun.ReadDocuments(bytes.NewReader(text), "the body")
		if err != nil {
			t.Fatal(err)
		}
		all := []any{}
		for _, d := range documents {
			decoder := json.NewDecoder(bytes.NewReader(d.JSON))
			decoder.UseNumber()
			var value any
			if err := decoder.Decode(&value); err != nil {
				t.Fatal(err)
			}
			all = append(all, value)
		}
		return all
	}
	return reflect.DeepEqual(read(a), read(b))
}

// warnedOf are the texts of the warnings that a client gets.
func warnedOf(headers []string) []string {
	var texts []string
	for _, header := range headers {
		text := strings.TrimSuffix(strings.TrimPrefix(header, `299 - "`), `"`)
		texts = append(texts, strings.ReplaceAll(text, `\"`, `"`))
	}
	return texts
}

// wantedWarnings are those of the policies, and the one of each converted answer.
func wantedWarnings(r *dryrun.Result) []string {
	warnings := slices.Clone(r.Warnings)
	if r.Outcome == dryrun.Converted {
		c := r.Conversion
		warnings = append(warnings, fmt.Sprintf("%s %s is answered from %s by the policy %s; move to %s",
			c.From.APIVersion(), c.From.Resource, c.To.APIVersion(), c.Policy, c.To.APIVersion()))
	}
	return warnings
}
