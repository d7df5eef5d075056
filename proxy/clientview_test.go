package proxy_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// viewRules make around what they move an object that the client's version does not have,
// in which the server's version has a field of its own.
const viewRules = `apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: things}
spec:
  apiMigrationRules:
    - apiGroup: acme.io
      resource: things
      fromVersion: v1beta1
      toVersion: v1
      preserve: [spec.scale.max, spec.tier]
      transformations:
        - {path: spec.size, action: move, targetPath: spec.scale.count}
        - {path: spec.mode, action: modify, matchValue: fast, replaceValue: Quick}
        - {path: 'metadata.annotations["a/old"]', action: rename, targetPath: 'metadata.annotations["a/new"]'}
`

func viewing(t *testing.T, k *keeper, spec string) (*rig, *recorder) {
	t.Helper()
	k.version = 4
	k.set(`{"apiVersion":"acme.io/v1","kind":"Thing","metadata":{"name":"t"},"spec":` + spec + `}`)
	u := record(t, "a", "1.32.13", things, k.answer)
	return start(t, map[string]string{"things.yaml": viewRules}, nil, u), u
}

// sortedKeys is a JSON document with its keys in order.
func sortedKeys(t *testing.T, doc string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		t.Fatal(err)
	}
	sorted, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(sorted)
}

// A client does not see what its version does not have, and what it then writes, in any
// way, takes nothing of that away.
func TestPreservedIsHiddenAndKept(t *testing.T) {
	const has = `{"scale":{"count":5,"max":9},"tier":"gold","mode":"Quick"}`
	tests := []struct{ name, method, contentType, body, want string }{
		{"an update without it", "PUT", "application/json", put(`,"resourceVersion":"5"`, `{"size":6,"mode":"fast"}`), `{"mode":"Quick","scale":{"count":6,"max":9},"tier":"gold"}`},
		{"an update that clears the field beside it", "PUT", "application/json", put(`,"resourceVersion":"5"`, `{"mode":"fast"}`), `{"mode":"Quick","scale":{"max":9},"tier":"gold"}`},
		{"a merge patch that clears the field beside it", "PATCH", "application/merge-patch+json", `{"spec":{"size":null}}`, `{"mode":"Quick","scale":{"max":9},"tier":"gold"}`},
		{"a JSON patch that clears the field beside it", "PATCH", "application/json-patch+json", `[{"op":"remove","path":"/spec/size"}]`, `{"mode":"Quick","scale":{"max":9},"tier":"gold"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := &keeper{}
			r, _ := viewing(t, k, has)
			if got := r.do("GET", thingPath, "", ""); !strings.Contains(got.body, `"spec":{"mode":"fast","size":5}`) && !strings.Contains(got.body, `"spec":{"size":5,"mode":"fast"}`) {
				t.Errorf("the client sees %s", got.body)
			}
			if got := r.do(tt.method, thingPath, tt.contentType, tt.body); got.code != http.StatusOK {
				t.Fatalf("answered %d %s", got.code, got.body)
			}
			if got := sortedKeys(t, k.spec(t)); got != tt.want {
				t.Errorf("the server has %s\nwant %s", got, tt.want)
			}
		})
	}
}

// Nothing stays of a field that is cleared, nor of one that a new object has as null.
func TestClearedFieldLeavesNothing(t *testing.T) {
	k := &keeper{}
	r, _ := viewing(t, k, `{"scale":{"count":5},"mode":"Quick"}`)
	if got := r.do("PATCH", thingPath, "application/merge-patch+json", `{"spec":{"size":null}}`); got.code != http.StatusOK {
		t.Fatalf("answered %d %s", got.code, got.body)
	}
	if got := k.spec(t); got != `{"mode":"Quick"}` {
		t.Errorf("after the patch the server has %s", got)
	}
	if got := r.do("POST", strings.TrimSuffix(thingPath, "/t"), "application/json", put("", `{"size":null,"mode":"fast"}`)); got.code != http.StatusOK {
		t.Fatalf("answered %d %s", got.code, got.body)
	}
	if got := k.spec(t); got != `{"mode":"Quick"}` {
		t.Errorf("after the create the server has %s", got)
	}
}

// What a patch tests is what the client sees, and what it writes is told apart from what
// the client has under the other name.
func TestPatchesMeanWhatTheClientSees(t *testing.T) {
	const object = `{"apiVersion":"acme.io/v1","kind":"Thing","metadata":{"name":"t","annotations":{"a/new":"z"}},"spec":{"mode":"Quick"}}`
	f := func(contentType, patch string, code int, message string) {
		t.Helper()
		k := &keeper{version: 4}
		k.set(object)
		u := record(t, "a", "1.32.13", things, k.answer)
		r := start(t, map[string]string{"things.yaml": viewRules}, nil, u)
		if got := r.do("PATCH", thingPath, contentType, patch); got.code != code || !strings.Contains(got.body, message) {
			t.Errorf("%s was answered %d %s; want %d %s", patch, got.code, got.body, code, message)
		}
	}
	const merge, list = "application/merge-patch+json", "application/json-patch+json"
	f(list, `[{"op":"test","path":"/spec/mode","value":"fast"}]`, 200, `"mode":"fast"`)
	f(list, `[{"op":"test","path":"/spec/mode","value":"Quick"}]`, 422, "test")
	f(merge, `{"metadata":{"annotations":{"a/new":"k"}}}`, 422, `"message":"Thing.acme.io \"t\" is invalid: metadata.annotations`)
	f(merge, `{"metadata":{"annotations":{"a/old":null,"a/new":"k"}}}`, 200, `"k"`)
	f(merge, `{"metadata":{"annotations":{"a/old":"k"}}}`, 200, `"a/old":"k"`)
	f(list, `[{"op":"replace","path":"","value":{"apiVersion":"acme.io/v1beta1","kind":"Other","metadata":{"name":"t"}}}]`, 400, `its apiVersion and kind must stay`)
}

// A field selector selects by the values that the client sees.
func TestFieldSelectorValues(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(request) string {
		return ok(`{"apiVersion":"acme.io/v1","kind":"ThingList","items":[]}`)
	})
	r := start(t, map[string]string{"things.yaml": viewRules}, nil, u)
	for client, server := range map[string]string{
		"spec.mode=fast":              "spec.mode=Quick",
		"spec.mode==fast":             "spec.mode==Quick",
		"spec.mode!=fast":             "spec.mode!=Quick,spec.mode!=fast",
		"spec.mode=slow":              "spec.mode=slow",
		"spec.mode=Quick":             "spec.mode=Quick,spec.mode!=Quick", // which no client sees
		"spec.mode!=Quick":            "",
		"spec.mode!=Quick,spec.a=b":   "spec.a=b",
		`spec.size=5,spec.mode=fast`:  "spec.scale.count=5,spec.mode=Quick",
		`spec.mode=f\,ast,spec.x!=\=`: `spec.mode=f\,ast,spec.x!=\=`,
	} {
		for _, method := range []string{"GET", "DELETE"} {
			u.forget()
			if got := r.do(method, strings.TrimSuffix(thingPath, "/t")+"?fieldSelector="+url.QueryEscape(client), "", ""); got.code != 200 {
				t.Errorf("%s by %s was answered %d %s", method, client, got.code, got.body)
				continue
			}
			sent, err := url.Parse(u.only().target)
			if err != nil || sent.Query().Get("fieldSelector") != server {
				t.Errorf("%s by %s was sent as %s, want %s", method, client, sent, server)
			}
		}
	}
	u.forget()
	if got := r.do("GET", strings.TrimSuffix(thingPath, "/t")+"?fieldSelector=spec.scale.count%3D5", "", ""); got.code != 400 ||
		!strings.Contains(got.body, "field label not supported: spec.scale.count: in acme.io/v1beta1 there is no such field") {
		t.Errorf("the server's name was answered %d %s", got.code, got.body)
	}
	if sent := u.got(); len(sent) > 0 {
		t.Errorf("sent %v", sent)
	}
}

// What programs do to a label that somebody selects by is refused, where it is known.
func TestLabelSelectorsOfPrograms(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(request) string {
		return ok(`{"apiVersion":"acme.io/v1","kind":"ThingList","items":[]}`)
	})
	r := start(t, map[string]string{
		"things.convert.cel": `{'resource': 'things', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1'}`,
		"things.request.jq":  `mapvalue(.metadata.labels.env; "prod"; "production") | rename(.spec.old; .spec.new)`,
		"things.response.jq": `mapvalue(.metadata.labels.env; "production"; "prod") | rename(.spec.new; .spec.old) | if .metadata.labels.x == "y" then .spec.z = 1 end`,
	}, nil, u)
	list := strings.TrimSuffix(thingPath, "/t") + "?labelSelector="
	if got := r.do("DELETE", list+"env%21%3Dprod", "", ""); got.code != 400 ||
		!strings.Contains(got.body, "cannot select by the label env in acme.io/v1beta1: the policy things changes it by a jq program") {
		t.Errorf("answered %d %s", got.code, got.body)
	}
	if sent := u.got(); len(sent) > 0 {
		t.Errorf("sent %v", sent)
	}
	if got := r.do("GET", list+"x%3Dy", "", ""); got.code != 200 {
		t.Errorf("by a label that a program only reads: %d %s", got.code, got.body)
	}
}

// The list that the bookmark behind initial events carries is of the client's version.
func TestInitialEventsBlueprint(t *testing.T) {
	blueprint := func(version string) string {
		return base64.StdEncoding.EncodeToString([]byte(`{"kind":"ThingList","apiVersion":"acme.io/` + version + `","metadata":{},"items":[]}`))
	}
	bookmark := func(version string) string {
		return `{"type":"BOOKMARK","object":{"kind":"Thing","apiVersion":"acme.io/` + version + `","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true","kubernetes.io/initial-events-list-blueprint":"` + blueprint(version) + `"}}}}` + "\n"
	}
	u := record(t, "a", "1.32.13", things, func(request) string {
		return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(bookmark("v1")) + "0\r\n\r\n"
	})
	r := start(t, map[string]string{"things.yaml": viewRules}, nil, u)
	const watch = "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
	if got := r.do("GET", strings.TrimSuffix(thingPath, "/t")+watch, "", ""); !strings.HasPrefix(got.body, bookmark("v1beta1")) {
		t.Errorf("got %s\nwant %s", got.body, bookmark("v1beta1"))
	}
}

// What is wrong with a body's kind is for the server to say, in its version.
func TestBodyOfAnotherKind(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(request) string { return ok(newThing) })
	r := start(t, map[string]string{"things.yaml": strings.Replace(viewRules, "toVersion: v1\n", "toVersion: v1\n      kind: Thing\n", 1)}, nil, u)
	r.do("POST", strings.TrimSuffix(thingPath, "/t"), "application/json", `{"kind":"Other","apiVersion":"acme.io/v1beta1","spec":{"size":1}}`)
	if got, want := u.only().body, `{"kind":"Other","apiVersion":"acme.io/v1","spec":{"size":1}}`; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}
