package proxy_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// thingsCRD has both versions of a kind; v1beta1 is not served any more. "both" is in
// both versions, "young" in the new one only.
const thingsCRD = `{"kind":"CustomResourceDefinitionList","apiVersion":"apiextensions.k8s.io/v1","metadata":{},"items":[{
	"metadata":{"name":"things.acme.io","uid":"1","resourceVersion":"1"},
	"spec":{"group":"acme.io","names":{"plural":"things","kind":"Thing"},"versions":[
		{"name":"v1beta1","served":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{
			"old":{"type":"number"},"mode":{"type":"string"},"both":{"type":"string"},
			"open":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}}},
		{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{
			"new":{"type":"number"},"mode":{"type":"string"},"both":{"type":"string"},"young":{"type":"string"},
			"open":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}}}]},
	"status":{"conditions":[{"type":"Established","status":"True"}]}}]}`

// withCRD makes u a server that has the CRD. Its answers warn about spec.bad, as a
// server does that finds it.
func withCRD(t *testing.T) (*rig, *recorder) {
	t.Helper()
	u := record(t, "a", "1.32.13", things, func(q request) string {
		head := ""
		if strings.Contains(q.body, `"bad"`) && !strings.Contains(q.target, "Ignore") {
			head = `Warning: 299 - "unknown field \"spec.bad\""` + "\r\n"
		}
		return strings.Replace(ok(newThing), "\r\n", "\r\n"+head, 1)
	})
	u.own = func(q request) (string, bool) {
		const list = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?"
		return ok(thingsCRD), strings.HasPrefix(q.target, list) && !strings.Contains(q.target, "watch=")
	}
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	return r, u
}

const fieldsPath = "/apis/acme.io/v1beta1/namespaces/d/things"

// What a client's version does not have, and what stands twice, is refused, warned about
// or passed over, as the client asks, and as kube-apiserver does of the client's version.
func TestFieldValidation(t *testing.T) {
	r, u := withCRD(t)
	const head = `"apiVersion":"acme.io/v1beta1","kind":"Thing","metadata":{"name":"t"}`
	const sent = `{"apiVersion":"acme.io/v1","kind":"Thing","metadata":{"name":"t"},"spec":`
	tests := []struct {
		name, method, mediaType, body string
		mistakes                      []string // nil: it is right
		refusal                       string   // with Strict; "": as for an object
		forwarded                     string   // without Strict
	}{
		{
			name: "right", method: "POST", mediaType: "application/json", body: `{` + head + `,"spec":{"old":1.50,"open":{"x":{"y":1}}}}`,
			forwarded: sent + `{"new":1.50,"open":{"x":{"y":1}}}}`,
		},
		{
			name: "an unknown field", method: "POST", mediaType: "application/json", body: `{` + head + `,"spec":{"old":1,"bad":1}}`,
			mistakes: []string{`unknown field "spec.bad"`}, forwarded: sent + `{"new":1,"bad":1}}`,
		},
		{
			name: "the server's name of a field", method: "POST", mediaType: "application/json", body: `{` + head + `,"spec":{"old":1,"new":2}}`,
			mistakes: []string{`unknown field "spec.new"`}, forwarded: sent + `{"new":1}}`,
		},
		{
			name: "a field of the server's version only", method: "POST", mediaType: "application/json", body: `{` + head + `,"spec":{"young":"x"}}`,
			mistakes: []string{`unknown field "spec.young"`}, forwarded: sent + `{"young":"x"}}`,
		},
		{
			name: "which an update may send back", method: "PUT", mediaType: "application/json", body: `{` + head + `,"spec":{"young":"x"}}`,
			forwarded: sent + `{"young":"x"}}`,
		},
		{
			name: "twice, where a rule looks", method: "PUT", mediaType: "application/json", body: `{` + head + `,"spec":{"old":1,"old":2,"worse":1}}`,
			mistakes: []string{`duplicate field "spec.old"`, `unknown field "spec.worse"`}, forwarded: sent + `{"new":2,"worse":1}}`,
		},
		{
			name: "twice, in YAML", method: "POST", mediaType: "application/yaml", body: "kind: Thing\napiVersion: acme.io/v1beta1\nspec:\n  old: 1\n  old: 2\n",
			mistakes:  []string{"yaml: unmarshal errors:\n  line 5: key \"old\" already set in map"},
			forwarded: `{"apiVersion":"acme.io/v1","kind":"Thing","spec":{"new":2}}`,
		},
		{
			name: "a merge patch", method: "PATCH", mediaType: "application/merge-patch+json", body: `{"spec":{"new":2,"gone":null,"young":"x"}}`,
			mistakes:  []string{`unknown field "spec.new"`},
			refusal:   ` "" is invalid: patch: Invalid value: "{\"spec\":{\"new\":2,\"gone\":null,\"young\":\"x\"}}": strict decoding error: unknown field "spec.new"`,
			forwarded: `{"spec":{"gone":null,"young":"x"}}`,
		},
		{
			name: "a JSON patch", method: "PATCH", mediaType: "application/json-patch+json", body: `[{"op":"add","op":"remove","path":"/spec/old"}]`,
			mistakes:  []string{`duplicate field "[0].op"`},
			refusal:   ` "" is invalid: patch: Invalid value: "[{\"op\":\"add\",\"op\":\"remove\",\"path\":\"/spec/old\"}]": strict decoding error: duplicate field "[0].op"`,
			forwarded: `[{"op":"remove","path":"/spec/new"}]`,
		},
		{
			name: "server-side apply", method: "PATCH", mediaType: "application/apply-patch+yaml", body: "kind: Thing\napiVersion: acme.io/v1beta1\nspec:\n  old: 1\n  old: 2\n",
			mistakes:  []string{"yaml: unmarshal errors:\n  line 5: key \"old\" already set in map"},
			refusal:   "error strict decoding YAML: yaml: unmarshal errors:\n  line 5: key \"old\" already set in map",
			forwarded: `{"apiVersion":"acme.io/v1","kind":"Thing","spec":{"new":2}}`,
		},
	}
	for _, tt := range tests {
		for _, directive := range []string{"", "Warn", "Ignore", "Strict"} {
			t.Run(tt.name+"/"+directive, func(t *testing.T) {
				u.forget()
				target := fieldsPath + "/t"
				if tt.method == "POST" {
					target = fieldsPath
				}
				query := ""
				if directive != "" {
					query = "?fieldManager=x&fieldValidation=" + directive
				}
				got := r.do(tt.method, target+query, tt.mediaType, tt.body)
				if directive == "Strict" && len(tt.mistakes) > 0 {
					checkRefusal(t, got, u, tt.refusal, tt.mistakes)
					return
				}
				if got.code != 200 {
					t.Fatalf("answered %d %s", got.code, got.body)
				}
				q := u.only()
				if !sameJSON(q.body, tt.forwarded) || !strings.HasSuffix(q.target, query) {
					t.Errorf("sent %s\n%s\nwant %s", q.target, q.body, tt.forwarded)
				}
				var want []string
				if directive != "Ignore" {
					for _, mistake := range tt.mistakes {
						want = append(want, `299 - "`+strings.NewReplacer(`"`, `\"`, "\n", " ").Replace(mistake)+`"`)
					}
				}
				want = append(want, `299 - "acme.io/v1beta1 things is answered from acme.io/v1 by the policy things/apiMigrationRules[0]; move to acme.io/v1"`)
				if lines := got.header.Values("Warning"); !slices.Equal(lines, want) {
					t.Errorf("warns\n%q\nwant\n%q", lines, want)
				}
			})
		}
	}
}

// toldStatus is the Status that a client was answered.
func toldStatus(t *testing.T, got answer) (status metav1.Status) {
	t.Helper()
	if err := json.Unmarshal([]byte(got.body), &status); err != nil || status.Kind != "Status" {
		t.Errorf("answered %d %s, want a Status: %v", got.code, got.body, err)
	}
	return status
}

// checkRefusal wants a refusal with that message, or, by default, kube-apiserver's for an
// object, and nothing sent.
func checkRefusal(t *testing.T, got answer, u *recorder, message string, mistakes []string) {
	t.Helper()
	code := 422
	switch {
	case message == "":
		code, message = 400, `Thing in version "v1beta1" cannot be handled as a Thing: strict decoding error: `+strings.Join(mistakes, ", ")
	case strings.HasPrefix(message, "error"):
		code = 400
	}
	if status := toldStatus(t, got); got.code != code || status.Message != message || len(u.got()) > 0 {
		t.Errorf("answered %d %s and sent %d times, want %d %s", got.code, status.Message, len(u.got()), code, message)
	}
	if status := toldStatus(t, got); code == 422 && (status.Details == nil || len(status.Details.Causes) != 1 || status.Details.Causes[0].Field != "patch") {
		t.Errorf("answered %s, want one cause of the field patch", got.body)
	}
}

// What kube-apiserver refuses about the parameter itself is left to it, and what cannot
// be decoded to the conversion.
func TestFieldValidationThatIsNone(t *testing.T) {
	r, u := withCRD(t)
	f := func(query, body string, code int) {
		t.Helper()
		u.forget()
		got := r.do("POST", fieldsPath+"?"+query, "application/json", body)
		if got.code != code {
			t.Errorf("%s with %s was answered %d %s, want %d", query, body, got.code, got.body, code)
		}
		if lines := got.header.Values("Warning"); code == 200 && len(lines) > 1 {
			t.Errorf("%s with %s warns %q", query, body, lines)
		}
	}

	const old = `{"apiVersion":"acme.io/v1beta1","kind":"Thing","spec":{"worse":1}}`
	f("fieldValidation=Strictly", old, 200)
	f("fieldValidation="+url.QueryEscape("Strict,Warn"), old, 200)
	f("fieldValidation=Strict", `{"spec":`, 400)
	f("fieldValidation=Strict", `[]`, 400)
	f("fieldValidation=Strict", old, 400)
}

// Where nobody knows the fields of the client's version, only the server can tell: what
// it says comes in the client's names.
func TestFieldValidationWithoutSchema(t *testing.T) {
	const refusal = `{"kind":"Status","message":"Thing in version \"v1\" cannot be handled as a Thing: strict decoding error: unknown field \"spec.new.x\"","code":400}`
	u := record(t, "a", "1.32.13", things, func(request) string { return respond(400, "application/json", refusal) })
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	got := r.do("POST", fieldsPath+"?fieldValidation=Strict", "application/json", `{"apiVersion":"acme.io/v1beta1","kind":"Thing","spec":{"old":{"x":1}}}`)
	if want := strings.NewReplacer("spec.new.x", "spec.old.x", `\"v1\"`, `\"v1beta1\"`).Replace(refusal); got.code != 400 || got.body != want {
		t.Errorf("answered %d %s, want %s", got.code, got.body, want)
	}
	if q := u.only(); !strings.HasSuffix(q.target, "?fieldValidation=Strict") {
		t.Errorf("sent %s", q.target)
	}
}

// The fields of Kubernetes' own kinds are known from their types, also in versions that
// no server has.
func TestFieldValidationOfBuiltins(t *testing.T) {
	u := record(t, "a", "1.32.13", []served{{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"}}, func(q request) string { return ok(q.body) })
	r := start(t, nil, []string{"policy-v1beta1"}, u)
	const path = "/apis/policy/v1beta1/namespaces/d/poddisruptionbudgets"
	const budget = `{"apiVersion":"policy/v1beta1","kind":"PodDisruptionBudget","metadata":{"name":"x"},"spec":{"minAvailabl":1,"selector":{}}}`
	got := r.do("POST", path+"?fieldValidation=Strict", "application/json", budget)
	const want = `PodDisruptionBudget in version "v1beta1" cannot be handled as a PodDisruptionBudget: strict decoding error: unknown field "spec.minAvailabl"`
	if status := toldStatus(t, got); got.code != 400 || status.Message != want || len(u.got()) > 0 {
		t.Errorf("answered %d %s", got.code, got.body)
	}
	got = r.do("POST", path, "application/json", budget)
	if lines := got.header.Values("Warning"); got.code != 200 || len(lines) == 0 || lines[0] != `299 - "unknown field \"spec.minAvailabl\""` {
		t.Errorf("answered %d and warned %q", got.code, lines)
	}
}

// What a client has wrong a thousand times does not fill the head of its answer.
func TestFieldValidationWarnsWithinBounds(t *testing.T) {
	r, _ := withCRD(t)
	var spec []string
	for i := range 1000 {
		spec = append(spec, fmt.Sprintf(`"x%03d":1`, i))
	}
	got := r.do("POST", fieldsPath, "application/json", `{"apiVersion":"acme.io/v1beta1","kind":"Thing","spec":{`+strings.Join(spec, ",")+`}}`)
	lines := got.header.Values("Warning")
	size := len(strings.Join(lines, ""))
	if got.code != 200 || lines[0] != `299 - "unknown field \"spec.x000\""` || size < 4<<10 || size > 8<<10 {
		t.Errorf("answered %d with %d warnings of %d bytes, the first %q", got.code, len(lines), size, lines[0])
	}
}

// A merge patch that deletes what there is not is no mistake.
func TestFieldValidationOfNull(t *testing.T) {
	u := record(t, "a", "1.32.13", []served{{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"}}, func(q request) string { return ok(`{}`) })
	r := start(t, nil, []string{"policy-v1beta1"}, u)
	ask := func(patch string) answer {
		return r.do("PATCH", "/apis/policy/v1beta1/namespaces/d/poddisruptionbudgets/x?fieldValidation=Strict", "application/merge-patch+json", patch)
	}
	if got := ask(`{"spec":{"a":null,"selector":{"b":null}}}`); got.code != 200 {
		t.Errorf("answered %d %s", got.code, got.body)
	}
	got := ask(`{"spec":{"a":null,"b":[{"c":null}]}}`)
	const want = ` "" is invalid: patch: Invalid value: "{\"spec\":{\"a\":null,\"b\":[{\"c\":null}]}}": strict decoding error: unknown field "spec.b"`
	if message := toldStatus(t, got).Message; got.code != 422 || message != want {
		t.Errorf("answered %d %s, want %s", got.code, message, want)
	}
}

// What a client is told of its patch is not in the log.
func TestFieldValidationLogsNoBody(t *testing.T) {
	r, _ := withCRD(t)
	r.do("PATCH", fieldsPath+"/t?fieldValidation=Strict", "application/merge-patch+json", `{"spec":{"mode":"secret","new":1}}`)
	logged, _ := r.lastAccess(fieldsPath + "/t")["error"].(string)
	if want := `strict decoding error: unknown field "spec.new"`; logged != want {
		t.Errorf("logged %q, want %q", logged, want)
	}
}
