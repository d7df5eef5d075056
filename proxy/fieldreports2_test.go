package proxy_test

// Faults that people met in public with conversion between API versions, and the tests
// that hold them, as in fieldreports_test.go.
//
//	2.01 conversion changes metadata           Test2_01
//	2.03 endpoints lose their node names       Test2_03, by a policy of the test
//	2.05 integers with an exponent             Test2_05; policies TestRoundTripOfKinds
//	2.07 managedFields of a version that went  Test2_07
//	2.08 metadata inside of templates          Test2_08
//	2.10 another version than asked for        Test2_10
//	2.11 410 with a continue token             Test2_11
//	2.14 a stored release's apiVersion is gone Test2_14
//	2.15 the same object reads differently     Test2_15
//	2.16 a field comes and goes between reads  Test2_16, TestSchemaSkew
//	2.17 HPA v2 through v1                     Test2_17, by a policy of the test
//	2.18 a field is dropped in silence         Test2_18, TestUpdatePreserves
//	2.19 Ingress with an empty backend         Test2_19, by a policy of the test
//	2.20 references name a version that went   Test2_20
//	2.21 subresources and patch types          Test2_21, TestConvertedRequests

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

const oldPath = "/apis/acme.io/v1beta1/namespaces/d/things"

// Of metadata, a program changes labels and annotations only, both ways.
func Test2_01_IdentityStays(t *testing.T) {
	const meta = `{"name":"t","namespace":"d","uid":"u","resourceVersion":"7","generation":3,"creationTimestamp":"2026-01-01T00:00:00Z",` +
		`"deletionTimestamp":"2026-01-02T00:00:00Z","finalizers":["f"],"ownerReferences":[{"uid":"o"}],"managedFields":[{"manager":"m"}]`
	const program = `.metadata |= (.generation = 99 | .uid = "x" | .name = "y" | .namespace = "z" | .resourceVersion = "1" | del(.finalizers)
		| .creationTimestamp = null | del(.deletionTimestamp) | .ownerReferences = [] | .managedFields = [] | .labels.seen = "yes")`
	u := record(t, "a", "1.32.13", things, func(request) string {
		return ok(`{"apiVersion":"acme.io/v1","kind":"Thing","metadata":` + meta + `}}`)
	})
	r := start(t, map[string]string{
		"things.convert.cel": `{'resource': 'things', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1'}`,
		"things.request.jq":  program,
		"things.response.jq": program,
	}, nil, u)
	want := func(version string) string {
		return `{"apiVersion":"acme.io/` + version + `","kind":"Thing","metadata":` + meta + `,"labels":{"seen":"yes"}}}`
	}
	if got := r.do("GET", oldPath+"/t", "", ""); !sameJSON(got.body, want("v1beta1")) {
		t.Errorf("got %s\nwant %s", got.body, want("v1beta1"))
	}
	u.forget()
	r.do("PUT", oldPath+"/t", "application/json", `{"apiVersion":"acme.io/v1beta1","kind":"Thing","metadata":`+meta+`}}`)
	if sent := u.only().body; !sameJSON(sent, want("v1")) {
		t.Errorf("sent %s\nwant %s", sent, want("v1"))
	}
}

// Integers keep their digits, through rules and programs, planned or not.
func Test2_05_Integers(t *testing.T) {
	const digits = `"activeDeadlineSeconds":1000000,"a":1000090000,"b":2147483648,"c":9223372036854775807,"d":-9223372036854775808`
	forms := map[string]map[string]string{"rules": {"things.yaml": rules}, "programs": programs, "gojq": {
		"things.convert.cel": programs["things.convert.cel"],
		"things.request.jq":  `.spec |= with_entries(.value |= .)`,
		"things.response.jq": `.spec |= with_entries(.value |= .)`,
	}}
	for form, files := range forms {
		t.Run(form, func(t *testing.T) {
			u := record(t, "a", "1.32.13", things, func(q request) string {
				return ok(`{"apiVersion":"acme.io/v1","kind":"Thing","metadata":{"name":"t"},"spec":{` + digits + `}}`)
			})
			r := start(t, files, nil, u)
			got := r.do("POST", oldPath, "application/json", `{"apiVersion":"acme.io/v1beta1","kind":"Thing","metadata":{"name":"t"},"spec":{`+digits+`}}`)
			for _, number := range strings.Split(digits, ",") {
				if !strings.Contains(u.only().body, number) || !strings.Contains(got.body, number) {
					t.Errorf("%s: sent %s, answered %s", number, u.only().body, got.body)
				}
			}
		})
	}
}

// What comes as one version is executed as the other: the server notes that one for
// the manager. What it notes is passed on, and comes back, as it is.
func Test2_07_ManagedFields(t *testing.T) {
	const noted = `"managedFields":[{"manager":"kubectl","operation":"Apply","apiVersion":"acme.io/v1","fieldsV1":{"f:spec":{"f:new":{}}}}]`
	u := record(t, "a", "1.32.13", things, func(request) string {
		return ok(`{"apiVersion":"acme.io/v1","kind":"Thing","metadata":{"name":"t",` + noted + `},"spec":{"new":1}}`)
	})
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	got := r.do("PATCH", oldPath+"/t?fieldManager=kubectl", "application/apply-patch+yaml",
		"apiVersion: acme.io/v1beta1\nkind: Thing\nmetadata: {name: t}\nspec: {old: 1}\n")
	if !strings.Contains(got.body, noted) || !sameJSON(u.only().body, `{"apiVersion":"acme.io/v1","kind":"Thing","metadata":{"name":"t"},"spec":{"new":1}}`) {
		t.Errorf("sent %s, answered %s", u.only().body, got.body)
	}
	u.forget()
	r.do("PUT", oldPath+"/t", "application/json", got.body)
	if sent := u.only().body; !strings.Contains(sent, noted) || strings.Contains(sent, "v1beta1") {
		t.Errorf("sent %s", sent)
	}
}

// Labels and annotations of what an object embeds are carried whole.
func Test2_08_EmbeddedMetadata(t *testing.T) {
	const meta = `"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"},"creationTimestamp":null}`
	object := func(version string) string {
		return `{"apiVersion":"batch/` + version + `","kind":"CronJob",` + strings.Replace(meta, "{", `{"name":"c",`, 1) +
			`,"spec":{"jobTemplate":{` + meta + `,"spec":{"template":{` + meta + `,"spec":{"containers":[]}},"volumeClaimTemplates":[{` + meta + `}]}}}}`
	}
	u := record(t, "a", "1.32.13", []served{{"batch", "v1", "cronjobs", "CronJob"}}, func(request) string { return ok(object("v1")) })
	r := start(t, nil, []string{"batch-v1beta1"}, u)
	got := r.do("POST", "/apis/batch/v1beta1/namespaces/d/cronjobs", "application/json", object("v1beta1"))
	if got.body != object("v1beta1") || u.only().body != object("v1") {
		t.Errorf("sent     %s\nanswered %s", u.only().body, got.body)
	}
}

// The preferred version is the same whoever is asked and whoever is away, and an
// address answers with its own version.
func Test2_10_VersionThatIsAskedFor(t *testing.T) {
	f := newUpgradeRig(t, func(request) string { return ok(newThing) })
	seen := map[string]int{}
	look := func() {
		for range 50 {
			_, after, _ := strings.Cut(f.do("GET", "/apis/acme.io", "", "", "Accept", "application/json").body, `"preferredVersion":`)
			seen[after]++
		}
	}
	look()
	f.take(true)
	look()
	f.take(false)
	look()
	if len(seen) != 1 || !strings.Contains(fmt.Sprint(seen), `"groupVersion":"acme.io/v1"`) {
		t.Errorf("preferred were %v", seen)
	}
	for version, want := range map[string]string{"v1": newThing, "v1beta1": oldThing} {
		if got := f.do("GET", "/apis/acme.io/"+version+"/namespaces/d/things/t", "", ""); got.body != want {
			t.Errorf("%s was answered %s", version, got.body)
		}
	}
}

// The token of a page is opaque, in every version; that of a 410 reaches the client.
func Test2_11_ContinueTokens(t *testing.T) {
	const gone = `{"kind":"Status","apiVersion":"v1","metadata":{"continue":"fresh=="},"status":"Failure","message":"too old","reason":"Expired","code":410}`
	u := record(t, "a", "1.32.13", things, func(q request) string {
		switch {
		case strings.Contains(q.target, "continue=old%2B%3D"):
			return respond(410, "application/json", gone)
		case strings.Contains(q.target, "continue=second%3D"):
			return ok(`{"apiVersion":"acme.io/v1","kind":"ThingList","metadata":{"resourceVersion":"9"},"items":[` + newThing + `]}`)
		}
		return ok(`{"apiVersion":"acme.io/v1","kind":"ThingList","metadata":{"resourceVersion":"9","continue":"second=","remainingItemCount":1},"items":[]}`)
	})
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	for _, version := range []string{"v1", "v1beta1"} {
		path := "/apis/acme.io/" + version + "/things?limit=2"
		if got := r.do("GET", path, "", ""); !strings.Contains(got.body, `"metadata":{"resourceVersion":"9","continue":"second=","remainingItemCount":1}`) {
			t.Errorf("%s: the first page is %s", version, got.body)
		}
		if got := r.do("GET", path+"&continue=second%3D", "", ""); strings.Count(got.body, `"name":"t"`) != 1 {
			t.Errorf("%s: the second page is %s", version, got.body)
		}
		if got := r.do("GET", path+"&continue=old%2B%3D", "", ""); got.code != 410 || got.body != gone {
			t.Errorf("%s: answered %d %s", version, got.code, got.body)
		}
	}
}

// A client that looks up the version of a stored manifest finds it wherever it looks,
// with all verbs, behind the version that servers serve.
func Test2_14_RemovedVersionIsFound(t *testing.T) {
	u := record(t, "a", "1.32.13", []served{{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"}}, nil)
	u.openapi = func(target string) string {
		switch {
		case target == "/openapi/v3":
			return ok(`{"paths":{"apis/policy/v1":{"serverRelativeURL":"/openapi/v3/apis/policy/v1?hash=1"}}}`)
		case strings.HasPrefix(target, "/openapi/v3/"):
			return ok(pdbDocument)
		}
		return respond(404, "text/plain", "")
	}
	r := start(t, nil, []string{"policy-v1beta1"}, u)
	f := func(target, accept string, wants ...string) {
		t.Helper()
		got := r.do("GET", target, "", "", "Accept", accept)
		at := 0
		for _, want := range wants {
			i := strings.Index(got.body[at:], want)
			if i < 0 {
				t.Errorf("%s as %s is %d %s, want %q behind byte %d", target, accept, got.code, got.body, want, at)
				return
			}
			at += i
		}
	}

	f("/apis", "application/json", `"groupVersion":"policy/v1"`, `"groupVersion":"policy/v1beta1"`, `"preferredVersion":{"groupVersion":"policy/v1","version":"v1"}`)
	f("/apis", aggregated, `"version":"v1"`, `"version":"v1beta1"`)
	f("/apis/policy", "application/json", `"groupVersion":"policy/v1"`, `"groupVersion":"policy/v1beta1"`)
	f("/apis/policy/v1beta1", "application/json", `"name":"poddisruptionbudgets"`, `"PodDisruptionBudget"`,
		`"verbs":["create","delete","deletecollection","get","list","patch","update","watch"]`)
	r.eventually("OpenAPI v3 lists it", func() bool {
		return strings.Contains(r.do("GET", "/openapi/v3", "", "").body, `"apis/policy/v1beta1"`)
	})
	f("/openapi/v3/apis/policy/v1beta1", "application/json", `"version":"v1beta1"`)
}

const pdbDocument = `{"openapi":"3.0.0","info":{"title":"t","version":"1"},"paths":{"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets":{` +
	`"post":{"x-kubernetes-action":"post","x-kubernetes-group-version-kind":{"group":"policy","version":"v1","kind":"PodDisruptionBudget"}}}},` +
	`"components":{"schemas":{"io.k8s.api.policy.v1.PodDisruptionBudget":{"type":"object","properties":{"spec":{"type":"object"}},` +
	`"x-kubernetes-group-version-kind":[{"group":"policy","version":"v1","kind":"PodDisruptionBudget"}]}}}}`

// Reads of one object through a conversion are the same bytes from either server.
func Test2_15_SameBytes(t *testing.T) {
	const stored = `{"kind":"Thing","apiVersion":"acme.io/v1","metadata":{"name":"t","resourceVersion":"7"},"spec":{"new":"0.1","mode":"b","mem":"1Gi","cpu":"100m","z":null,"list":[]}}`
	for form, files := range map[string]map[string]string{"rules": {"things.yaml": rules}, "programs": programs} {
		a := record(t, "a", "1.31.14", things, func(request) string { return ok(stored) })
		b := record(t, "b", "1.32.13", things, func(request) string { return ok(stored) })
		a.openapi, b.openapi = describing("1"), describing("1")
		r := start(t, files, nil, a, b)
		seen := map[string]bool{}
		for i := range 2 * callers {
			seen[r.do("GET", oldPath+"/t", "", "", "Authorization", fmt.Sprintf("Bearer %d", i)).body] = true
		}
		if len(seen) != 1 || len(a.got()) == 0 || len(b.got()) == 0 {
			t.Errorf("%s: %d different answers of %d and %d reads: %v", form, len(seen), len(a.got()), len(b.got()), seen)
		}
	}
}

// A field that only the newer server has is there on every read, of either version.
func Test2_16_FieldIsAlwaysThere(t *testing.T) {
	r, a, b, _ := skewRig(t, map[string]string{"things.yaml": rules}, "1", "2")
	a.answer = func(request) string { return ok(newThing) }
	b.answer = func(request) string { return ok(strings.Replace(newThing, `"mode"`, `"later":1,"mode"`, 1)) }
	for i := range 50 {
		for _, version := range []string{"v1", "v1beta1"} {
			got := r.do("GET", "/apis/acme.io/"+version+"/namespaces/d/things/t", "", "", "Authorization", fmt.Sprintf("Bearer %d", i))
			if !strings.Contains(got.body, `"later":1`) {
				t.Fatalf("read %d of %s is %s", i, version, got.body)
			}
		}
	}
}

// What the server's version does not know is the server's to refuse or to warn of, as
// the client asked, and reaches it; nothing is dropped on the way.
func Test2_18_NothingIsDroppedInSilence(t *testing.T) {
	const strict = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"strict decoding error: unknown field \"spec.odd\"","reason":"BadRequest","code":400}`
	u := record(t, "a", "1.32.13", things, func(q request) string {
		if strings.Contains(q.target, "fieldValidation=Strict") {
			return respond(400, "application/json", strict)
		}
		return strings.Replace(ok(newThing), "\r\n", "\r\nWarning: 299 - \"unknown field \\\"spec.odd\\\"\"\r\n", 1)
	})
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	body := strings.Replace(oldThing, `"mode"`, `"odd":1,"mode"`, 1)
	got := r.do("POST", oldPath+"?fieldValidation=Strict", "application/json", body)
	if got.code != 400 || got.body != strict || !strings.Contains(u.only().body, `"odd":1`) {
		t.Errorf("sent %s, answered %d %s", u.only().body, got.code, got.body)
	}
	got = r.do("POST", oldPath+"?fieldValidation=Warn", "application/json", body)
	if got.code != 200 || !slices.Contains(got.header["Warning"], `299 - "unknown field \"spec.odd\""`) {
		t.Errorf("answered %d %q", got.code, got.header["Warning"])
	}
}

// Versions in references are data, and who reads by one of them is answered.
func Test2_20_ReferencesAreData(t *testing.T) {
	const references = `"ownerReferences":[{"apiVersion":"acme.io/v1beta1","kind":"Thing","name":"o","uid":"u","blockOwnerDeletion":true}]},` +
		`"spec":{"scaleTargetRef":{"apiVersion":"acme.io/v1beta1","kind":"Thing"}},"involvedObject":{"apiVersion":"acme.io/v1beta1"},"roleRef":{"kind":"Thing"}}`
	object := func(version string) string {
		return `{"apiVersion":"acme.io/` + version + `","kind":"Thing","metadata":{"name":"t",` + references
	}
	const partial = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"t","uid":"u"}}`
	u := record(t, "a", "1.32.13", things, func(q request) string {
		if strings.Contains(q.raw, "as=PartialObjectMetadata") {
			return ok(partial)
		}
		return ok(object("v1"))
	})
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	got := r.do("POST", oldPath, "application/json", object("v1beta1"))
	if got.body != object("v1beta1") || u.only().body != object("v1") {
		t.Errorf("sent %s, answered %s", u.only().body, got.body)
	}
	got = r.do("GET", oldPath+"/t", "", "", "Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	if got.code != 200 || got.body != partial {
		t.Errorf("the garbage collector got %d %s", got.code, got.body)
	}
}

// The media type, the query and what a subresource has of its own reach the server.
func Test2_21_QueriesAndSubresources(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(request) string { return ok(newThing) })
	u.subresources = map[string][]string{"things": {"scale", "approval"}}
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	const query = "?dryRun=All&fieldManager=a%20b&force=true&fieldValidation=Strict&x=%2F"
	bodies := map[string][2]string{
		"application/merge-patch+json":           {`{"spec":{"old":1}}`, `{"spec":{"new":1}}`},
		"application/strategic-merge-patch+json": {`{"spec":{"old":1}}`, `{"spec":{"new":1}}`},
		"application/json-patch+json":            {`[{"op":"test","path":"/spec/old","value":1}]`, `[{"op":"test","path":"/spec/new","value":1}]`},
		"application/apply-patch+yaml": {
			`{"apiVersion":"acme.io/v1beta1","kind":"Thing","spec":{"old":1}}`, `{"apiVersion":"acme.io/v1","kind":"Thing","spec":{"new":1}}`,
		},
	}
	for mediaType, body := range bodies {
		for sub, want := range map[string]string{"": body[1], "/status": body[1], "/approval": body[1], "/scale": body[0]} {
			u.forget()
			got := r.do(http.MethodPatch, oldPath+"/t"+sub+query, mediaType, body[0])
			sent := u.only()
			if got.code != 200 || sent.target != "/apis/acme.io/v1/namespaces/d/things/t"+sub+query || sent.body != want ||
				!strings.Contains(sent.raw, "Content-Type: "+mediaType+"\r\n") {
				t.Errorf("%s of %q: answered %d, sent %s", mediaType, sub, got.code, sent.raw)
			}
		}
	}
}
