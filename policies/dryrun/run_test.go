package dryrun

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/policies"
)

// load makes a set of policy files, which it writes to dir.
func load(t *testing.T, dir string, files map[string]string) *engine.Set {
	t.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := policies.Load(policies.Options{Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// thingPolicies convert a resource, over two versions, and judge others.
var thingPolicies = map[string]string{
	"10.convert.cel": `{'resource': 'things', 'kind': 'Thing', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1'}`,
	"10.request.jq":  `rename(.spec.old; .spec.new)`,
	"20.match.cel":   `request.resource == 'pods'`,
	"20.deny.cel":    `'no pods'`,
	"20.mode.cel":    `'audit'`,
	"30.match.cel":   `request.resource == 'nodes'`,
	"30.deny.cel":    `'no nodes for ' + user.name`,
	"40.match.cel":   `request.resource == 'jobs'`,
	"40.route.cel":   `upstream.version.minor < 32 ? -1 : upstream.version.minor`,
	"rules.yaml": `
apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: rules}
spec:
  apiMigrationRules:
    - {apiGroup: acme.io, resource: wheels, kind: Wheel, fromVersion: v1alpha1, toVersion: v1beta1, transformations: [{path: spec.a, action: rename, targetPath: spec.b}]}
    - {apiGroup: acme.io, resource: wheels, kind: Wheel, fromVersion: v1beta1, toVersion: v1, preserve: [spec.kept], transformations: [{path: spec.b, action: rename, targetPath: spec.c, type: integer}, {path: 'metadata.labels.tier', action: rename, targetPath: 'metadata.labels["acme.io/tier"]'}]}
`,
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	set := load(t, dir, thingPolicies)
	f := func(method, target, contentType, body, want string) {
		t.Helper()
		request := Request{Method: method, Target: target, Body: []byte(body), Header: http.Header{}}
		if contentType != "" {
			request.Header.Set("Content-Type", contentType)
		}
		r := Run(set, request, Options{Servers: []Server{
			{Name: "a", Version: engine.Version{Major: 1, Minor: 31}},
			{Name: "b", Version: engine.Version{Major: 1, Minor: 32}},
			{Name: "c", Version: engine.Version{Major: 1, Minor: 33}},
			{Name: "d", Version: engine.Version{Major: 1, Minor: 34}, Down: true},
		}})
		fields := []string{string(r.Outcome), fmt.Sprint(r.Code), r.Target, string(r.Sent), r.Message()}
		fields = slices.DeleteFunc(fields, func(field string) bool { return field == "" })
		got := strings.ReplaceAll(strings.Join(fields, " "), dir, "")
		if got != want {
			t.Errorf("%s %s %s\n got %s\nwant %s", method, target, body, got, want)
		}
	}

	const things, wheels = "/apis/acme.io/v1beta1/namespaces/d/things", "/apis/acme.io/v1alpha1/wheels"
	f("GET", "/api/v1/pods?limit=5", "", "", "passed 0 /api/v1/pods?limit=5")
	f("POST", things, "", `{"spec":{"old":1}}`, `converted 0 /apis/acme.io/v1/namespaces/d/things {"spec":{"new":1}}`)
	f("POST", things, "application/yaml", "spec: {old: 1}", `converted 0 /apis/acme.io/v1/namespaces/d/things {"spec":{"new":1}}`)
	f("PUT", things+"/t/scale", "", `{"kind":"Scale"}`, `converted 0 /apis/acme.io/v1/namespaces/d/things/t/scale {"kind":"Scale"}`)
	f("POST", wheels, "", `{"spec":{"a":"7"}}`, `converted 0 /apis/acme.io/v1/wheels {"spec":{"c":7}}`)
	f("PATCH", wheels+"/w", MergePatch, `{"spec":{"a":"8"}}`, `converted 0 /apis/acme.io/v1/wheels/w {"spec":{"c":8}}`)
	f("PATCH", wheels+"/w", StrategicMergePatch, `{"spec":{"a":null}}`, `converted 0 /apis/acme.io/v1/wheels/w {"spec":{"c":null}}`)
	f("PATCH", wheels+"/w", JSONPatch, `[{"op":"remove","path":"/spec/a"}]`, `converted 0 /apis/acme.io/v1/wheels/w [{"op":"remove","path":"/spec/c"}]`)
	f("PATCH", wheels+"/w", ApplyPatch, "apiVersion: acme.io/v1alpha1\nkind: Wheel\nspec: {a: '9'}\n",
		`converted 0 /apis/acme.io/v1/wheels/w {"apiVersion":"acme.io/v1","kind":"Wheel","spec":{"c":9}}`)
	f("GET", wheels+"?labelSelector=tier%3Dx&fieldSelector=spec.a%3D1", "", "",
		"converted 0 /apis/acme.io/v1/wheels?labelSelector=acme.io%2Ftier%3Dx&fieldSelector=spec.c%3D1")

	f("POST", wheels, "", `{"spec":{"a":"x"}}`, `refused 422 spec.a: Invalid value: "x": must be an integer (policy rules/apiMigrationRules[0] turns it into spec.c)`)
	f("POST", things, "", `{"spec":`, `refused 400 cannot convert the request body: unexpected end at byte 9 of the JSON text`)
	f("PATCH", wheels+"/w", "text/plain", `{}`, `refused 415 cannot read a body of the content type "text/plain": want application/merge-patch+json, application/strategic-merge-patch+json, application/json-patch+json or application/apply-patch+yaml`)
	f("GET", "/api/v1/pods", "", `{}`, "refused 400 a list has no body that policies look at: only create (POST), update (PUT) and patch (PATCH) have one")
	f("GET", "//x", "", "", `refused 400 cannot accept request "GET" "//x": the target must be a path that starts with one "/"`)
	f("GET", "/api/v1/nodes", "", "", `failed 500 /30.deny.cel:1:23: cannot evaluate deny of policy "30" for list /v1 nodes: the user is not known; start mvp serve with --authentication-token-review to look up who sends a token`)
}

// What a run finds out beside what is sent.
func TestRunResult(t *testing.T) {
	set := load(t, t.TempDir(), thingPolicies)
	run := func(method, target, body string, opts Options) *Result {
		t.Helper()
		template := Template{}
		if err := template.ParseLine(method + " " + target); err != nil {
			t.Fatal(err)
		}
		request := template.Request(nil)
		if body != "" {
			request = template.Request([]byte(body))
		}
		return Run(set, request, opts)
	}
	const things = "/apis/acme.io/v1beta1/namespaces/d/things"

	if r := run("POST", things, `{"apiVersion":"acme.io/v1beta1","kind":"Thing","spec":{"old":1}}`, Options{}); r.Lossless() || r.Conversion.Policy != "10" {
		t.Errorf("a conversion without its way back gave %+v", r)
	}
	if r := run("PATCH", things+"/t", `{"spec":{"old":1}}`, Options{}); !r.NeedsObject || r.Sent != nil {
		t.Errorf("a patch through jq gave %+v", r)
	}
	if r := run("PUT", "/apis/acme.io/v1beta1/wheels/w", `{"spec":{"b":"1"}}`, Options{}); !r.Preserves {
		t.Errorf("an update of a kind with preserved fields gave %+v", r)
	}
	if r := run("GET", "/api/v1/pods", "", Options{}); len(r.Audited) != 1 || r.Audited[0].Effect != "deny" || !r.Touched() || r.Denied != nil {
		t.Errorf("an audit policy gave %+v", r)
	}

	served := Options{Servers: []Server{{Name: "a", Serves: func(string, string, string) bool { return true }}}}
	if r := run("GET", things, "", served); r.Outcome != Passed || r.Touched() {
		t.Errorf("a version that is served was converted: %+v", r)
	}

	version := func(minor int) engine.Version { return engine.Version{Major: 1, Minor: minor} }
	servers := []Server{{Name: "a", Version: version(31)}, {Name: "b", Version: version(32)}, {Name: "c", Version: version(33)}}
	if got := fmt.Sprint(run("GET", "/apis/batch/v1/jobs", "", Options{Servers: servers}).Upstreams); got != "[{c 33} {b 32}]" {
		t.Errorf("the servers are %s", got)
	}
	r := run("GET", "/apis/batch/v1/jobs", "", Options{Servers: servers[:1]})
	if r.Code != http.StatusServiceUnavailable || r.Message() != "the policies 40 allow none of the 1 kube-apiservers that could answer list batch/v1 jobs" {
		t.Errorf("no server that is allowed gave %d %q", r.Code, r.Message())
	}

	opts := Options{Trace: true, Response: []byte(`{"apiVersion":"acme.io/v1","kind":"WheelList","items":[{"apiVersion":"acme.io/v1","kind":"Wheel","metadata":{"labels":{"acme.io/tier":"x"}},"spec":{"c":1}}]}`)}
	r = run("GET", "/apis/acme.io/v1alpha1/wheels", "", opts)
	var trace []string
	for _, change := range r.Changes {
		trace = append(trace, change.Policy+": "+change.From+" to "+change.To)
		for _, path := range change.Paths {
			trace = append(trace, path.String())
		}
	}
	want := `rules/apiMigrationRules[1]: acme.io/v1 to acme.io/v1beta1
apiVersion "acme.io/v1" → "acme.io/v1beta1"
items[0].apiVersion "acme.io/v1" → "acme.io/v1beta1"
items[0].metadata.labels["acme.io/tier"] "x" → items[0].metadata.labels.tier "x"
items[0].spec.c 1 → items[0].spec.b 1
rules/apiMigrationRules[0]: acme.io/v1beta1 to acme.io/v1alpha1
apiVersion "acme.io/v1beta1" → "acme.io/v1alpha1"
items[0].apiVersion "acme.io/v1beta1" → "acme.io/v1alpha1"
items[0].spec.b 1 → items[0].spec.a 1`
	if got := strings.Join(trace, "\n"); got != want {
		t.Errorf("the trace of a chain is\n%s\nwant\n%s", got, want)
	}
}

// A policy that says that it is passed over when it fails is, as in a proxy.
func TestRunPassesOver(t *testing.T) {
	set := load(t, t.TempDir(), map[string]string{
		"10.convert.cel": `{'resource': 'things', 'kind': 'Thing', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1', 'when': 'always'}`,
		"10.request.jq":  `error("not today")`,
		"10.failure.cel": `'ignore'`,
	})
	request := Request{Method: "POST", Target: "/apis/acme.io/v1beta1/things", Body: []byte(`{"spec":{}}`)}
	served := Options{Servers: []Server{{Name: "a", Serves: func(string, string, string) bool { return true }}}}
	if r := Run(set, request, served); r.Outcome != Passed || len(r.Ignored) != 1 || !strings.Contains(r.Notes()[0], "passed over: 10 failed: ") {
		t.Errorf("a policy that is passed over gave %+v", r)
	}
	if r := Run(set, request, Options{}); r.Outcome != Failed || !strings.Contains(r.Message(), "not today") {
		t.Errorf("where no server has the version, it gave %+v", r)
	}
}

func TestRedacted(t *testing.T) {
	f := func(body, resource, want string) {
		t.Helper()
		if got := string(Redacted([]byte(body), resource)); got != want {
			t.Errorf("%s of %s is shown as %s, want %s", body, resource, got, want)
		}
	}
	f(`{"kind":"ConfigMap","data":{"a":"b"}}`, "configmaps", `{"kind":"ConfigMap","data":{"a":"b"}}`)
	f(`{"kind":"Secret","data":{"a":"b"},"type":"x"}`, "secrets", `{"data":{"a":"(not shown)"},"kind":"Secret","type":"x"}`)
	f(`{"kind":"SecretList","items":[{"stringData":{"a":"b"}}]}`, "", `{"items":[{"stringData":{"a":"(not shown)"}}],"kind":"SecretList"}`)
	f(`{"data":{"a":"b"}}`, "secrets", `{"data":{"a":"(not shown)"}}`)
	f(`[{"op":"add","path":"/data/a","value":"b"}]`, "secrets", `[{"op":"add","path":"/data/a","value":"(not shown)"}]`)
}
