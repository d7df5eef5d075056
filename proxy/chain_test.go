package proxy_test

import (
	"strings"
	"testing"
)

const chainRules = `apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: chain}
spec:
  apiMigrationRules:
    - apiGroup: acme.io
      resource: things
      fromVersion: v1alpha1
      toVersion: v1beta1
      transformations:
        - {path: spec.oldest, action: rename, targetPath: spec.old}
    - apiGroup: acme.io
      resource: things
      fromVersion: v1beta1
      toVersion: v1
      transformations:
        - {path: spec.old, action: rename, targetPath: spec.new}
        - {path: spec.mode, action: modify, matchValue: a, replaceValue: b}
`

// A version that is two conversions away from what is served is found in discovery,
// read, listed, watched and written; one that is one away goes one step only.
func TestChainOfConversions(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(q request) string {
		switch {
		case strings.Contains(q.target, "watch=1"):
			return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
				chunked(`{"type":"ADDED","object":`+newThing+"}\n") + "0\r\n\r\n"
		case q.method == "GET" && strings.HasSuffix(q.target, "/things"):
			return ok(`{"apiVersion":"acme.io/v1","kind":"ThingList","metadata":{},"items":[` + newThing + `]}`)
		}
		return ok(newThing)
	})
	r := start(t, map[string]string{"chain.yaml": chainRules}, nil, u)
	const path = "/apis/acme.io/v1alpha1/namespaces/d/things"
	oldest := strings.NewReplacer("v1beta1", "v1alpha1", `"old"`, `"oldest"`).Replace(oldThing)

	if got := r.do("GET", path+"/t", "", ""); got.body != oldest {
		t.Errorf("got %s\nwant %s", got.body, oldest)
	}
	if got := r.do("GET", path, "", ""); !strings.Contains(got.body, oldest) || !strings.HasPrefix(got.body, `{"apiVersion":"acme.io/v1alpha1"`) {
		t.Errorf("listed %s", got.body)
	}
	if got := r.do("GET", path+"?watch=1&timeoutSeconds=1", "", ""); !strings.Contains(got.body, oldest) {
		t.Errorf("watched %s", got.body)
	}
	u.forget()
	r.do("PUT", path+"/t", "application/json", oldest)
	if q := u.only(); q.target != "/apis/acme.io/v1/namespaces/d/things/t" || q.body != newThing {
		t.Errorf("sent %s %s\nwant %s", q.target, q.body, newThing)
	}
	u.forget()
	r.do("PATCH", path+"/t", "application/json-patch+json", `[{"op":"replace","path":"/spec/oldest","value":2}]`)
	if q := u.only(); q.body != `[{"op":"replace","path":"/spec/new","value":2}]` {
		t.Errorf("sent %s", q.body)
	}
	for _, version := range []string{"v1alpha1", "v1beta1", "v1"} {
		if got := r.do("GET", "/apis/acme.io/"+version, "", ""); got.code != 200 || !strings.Contains(got.body, `"name":"things"`) {
			t.Errorf("discovery of %s: %d %s", version, got.code, got.body)
		}
	}
}

// While a server has the version in between, nothing is converted further.
func TestChainEndsAtWhatIsServed(t *testing.T) {
	middle := record(t, "a", "1.31.14", []served{{"acme.io", "v1beta1", "things", "Thing"}}, func(request) string { return ok(oldThing) })
	newest := record(t, "b", "1.32.13", things, func(request) string { return ok(newThing) })
	r := start(t, map[string]string{"chain.yaml": chainRules}, nil, middle, newest)
	oldest := strings.NewReplacer("v1beta1", "v1alpha1", `"old"`, `"oldest"`).Replace(oldThing)
	if got := r.do("GET", "/apis/acme.io/v1alpha1/namespaces/d/things/t", "", ""); got.body != oldest {
		t.Errorf("got %s\nwant %s", got.body, oldest)
	}
	if q := middle.only(); q.target != "/apis/acme.io/v1beta1/namespaces/d/things/t" {
		t.Errorf("sent %s", q.target)
	}
	middle.listener.Close()
	middle.hangUp()
	r.eventually("the chain goes on", func() bool {
		got := r.do("GET", "/apis/acme.io/v1alpha1/namespaces/d/things/t", "", "")
		return got.code == 200 && got.body == oldest && len(newest.got()) > 0
	})
}

// Programs chain as rules do: both run on the way to the server and back, each between its
// own two versions.
func TestChainOfPrograms(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(request) string { return ok(newThing) })
	files := map[string]string{
		"10-first.convert.cel": `{'resource': 'things', 'from': 'acme.io/v1alpha1', 'to': 'acme.io/v1beta1'}`,
		"10-first.request.jq":  `rename(.spec.oldest; .spec.old) | .spec.mode |= ltrimstr("was-")`,
		"10-first.response.jq": `.spec.mode |= "was-" + . | rename(.spec.old; .spec.oldest)`,
	}
	for name, text := range programs {
		files["20-"+name] = text
	}
	r := start(t, files, nil, u)
	oldest := strings.NewReplacer("v1beta1", "v1alpha1", `"old"`, `"oldest"`, `"a"`, `"was-a"`).Replace(oldThing)
	for _, method := range []string{"GET", "PUT"} {
		mediaType, body, want := "", "", ""
		if method == "PUT" {
			mediaType, body, want = "application/json", oldest, newThing
		}
		u.forget()
		got := r.do(method, "/apis/acme.io/v1alpha1/namespaces/d/things/t", mediaType, body)
		if q := u.only(); !sameJSON(got.body, oldest) || q.target != "/apis/acme.io/v1/namespaces/d/things/t" || !sameJSON(q.body, want) {
			t.Errorf("%s sent %s %s and was answered %s\nwant %s", method, q.target, q.body, got.body, oldest)
		}
	}
}

// The version at the start of a chain is in OpenAPI v3, derived step by step, also where
// conversions lead back.
func TestChainInOpenAPI(t *testing.T) {
	u := record(t, "a", "1.32.13", []served{{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"}}, nil)
	u.openapi = func(target string) string {
		if target == "/openapi/v3" {
			return ok(`{"paths":{"apis/policy/v1":{"serverRelativeURL":"/openapi/v3/apis/policy/v1?hash=1"}}}`)
		}
		return ok(pdbDocument)
	}
	migration := func(from, to string) string {
		return "    - {apiGroup: policy, resource: poddisruptionbudgets, fromVersion: " + from + ", toVersion: " + to + "}\n"
	}
	r := start(t, map[string]string{"chain.yaml": `apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: chain}
spec:
  apiMigrationRules:
` + migration("v1alpha1", "v1beta1") + migration("v1beta1", "v1") + migration("v1", "v1beta1")}, nil, u)
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		r.eventually("OpenAPI v3 lists "+version, func() bool {
			return strings.Contains(r.do("GET", "/openapi/v3", "", "").body, `"apis/policy/`+version+`"`)
		})
		got := r.do("GET", "/openapi/v3/apis/policy/"+version, "", "")
		if want := `"/apis/policy/` + version + `/namespaces/{namespace}/poddisruptionbudgets"`; got.code != 200 || !strings.Contains(got.body, want) {
			t.Errorf("the document of %s is %d %s", version, got.code, got.body)
		}
	}
}
