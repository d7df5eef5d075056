package proxy_test

import (
	"slices"
	"strings"
	"testing"
)

// droppingPolicies drop spec.both on the way to the server.
var droppingPolicies = map[string]map[string]string{
	"rules": {"things.yaml": strings.Replace(rules, "      transformations:\n", "      transformations:\n        - {path: spec.both, action: remove}\n", 1)},
	"programs": {
		"things.convert.cel": programs["things.convert.cel"],
		"things.request.jq":  programs["things.request.jq"] + " | del(.spec.both)",
		"things.response.jq": programs["things.response.jq"],
	},
}

// dropping runs MVP with such policies before a server that has the CRD of things.
func dropping(t *testing.T, files map[string]string) (*rig, *recorder) {
	t.Helper()
	u := record(t, "a", "1.32.13", things, func(request) string { return ok(newThing) })
	u.own = func(q request) (string, bool) {
		const list = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?"
		return ok(thingsCRD), strings.HasPrefix(q.target, list) && !strings.Contains(q.target, "watch=")
	}
	return start(t, files, nil, u), u
}

// What a conversion drops is told as kube-apiserver tells of a field that its version
// does not have: refused with Strict, warned about by default, passed over with Ignore.
func TestDroppedFields(t *testing.T) {
	const object = `{"apiVersion":"acme.io/v1beta1","kind":"Thing","metadata":{"name":"t"},"spec":{"old":1,"both":"x"}}`
	const told = `unknown field "spec.both"`
	tests := []struct{ name, method, mediaType, body, refusal string }{
		{"create", "POST", "application/json", object, ""},
		{"update", "PUT", "application/json", object, ""},
		{
			"merge patch", "PATCH", "application/merge-patch+json", `{"spec":{"both":"x"}}`,
			` "" is invalid: patch: Invalid value: "{\"spec\":{\"both\":\"x\"}}": strict decoding error: ` + told,
		},
		{
			"JSON patch", "PATCH", "application/json-patch+json", `[{"op":"add","path":"/spec/both","value":"x"}]`,
			` "" is invalid: patch: Invalid value: "[{\"op\":\"add\",\"path\":\"/spec/both\",\"value\":\"x\"}]": strict decoding error: ` + told,
		},
		{"server-side apply", "PATCH", "application/apply-patch+yaml", object, "error strict decoding YAML: " + told},
	}
	for form, files := range droppingPolicies {
		r, u := dropping(t, files)
		for _, tt := range tests {
			t.Run(form+"/"+tt.name, func(t *testing.T) {
				target := fieldsPath
				if tt.method != "POST" {
					target += "/t"
				}
				u.forget()
				got := r.do(tt.method, target+"?fieldManager=x&fieldValidation=Strict", tt.mediaType, tt.body)
				checkRefusal(t, got, u, tt.refusal, []string{told})
				for _, query := range []string{"?fieldManager=x", "?fieldManager=x&fieldValidation=Warn", "?fieldManager=x&fieldValidation=Ignore"} {
					got := r.do(tt.method, target+query, tt.mediaType, tt.body)
					warned := slices.Contains(got.header.Values("Warning"), `299 - "unknown field \"spec.both\""`)
					if got.code != 200 || warned == strings.HasSuffix(query, "Ignore") {
						t.Errorf("%s was answered %d %s with the warnings %q", query, got.code, got.body, got.header.Values("Warning"))
					}
				}
				for _, q := range u.got() {
					if strings.Contains(q.body, "both") {
						t.Errorf("sent %s", q.body)
					}
				}
			})
		}
	}
}

// A patch that deletes what the conversion drops, and one that does not name it, are
// right.
func TestDroppedFieldsThatAreNotSent(t *testing.T) {
	r, _ := dropping(t, droppingPolicies["rules"])
	f := func(mediaType, patch string) {
		t.Helper()
		got := r.do("PATCH", fieldsPath+"/t?fieldValidation=Strict", mediaType, patch)
		if lines := got.header.Values("Warning"); got.code != 200 || len(lines) != 1 {
			t.Errorf("%s was answered %d %s and warns %q", patch, got.code, got.body, lines)
		}
	}

	f("application/merge-patch+json", `{"spec":{"both":null,"old":1}}`)
	f("application/json-patch+json", `[{"op":"add","path":"/spec/old","value":1}]`)
	f("application/json-patch+json", `[{"op":"add","path":"/spec/both","value":1},{"op":"add","path":"/spec","value":{"old":1}}]`)
}

// Unknown fields in JSON patches and server-side apply are told of in the client's
// version, also those that the server's version has.
func TestFieldValidationOfPatches(t *testing.T) {
	r, u := withCRD(t)
	const jsonPatch = "application/json-patch+json"
	invalid := func(patch, told string) string {
		return ` "" is invalid: patch: Invalid value: "` + strings.ReplaceAll(patch, `"`, `\"`) + `": strict decoding error: ` + told
	}
	tests := []struct{ name, patch, told, forwarded string }{
		{"an unknown field", `[{"op":"add","path":"/spec/worse","value":1}]`, `unknown field "spec.worse"`, `[{"op":"add","path":"/spec/worse","value":1}]`},
		{"in a value", `[{"op":"add","path":"/spec","value":{"worse":1,"old":2}}]`, `unknown field "spec.worse"`, `[{"op":"add","path":"/spec","value":{"worse":1,"new":2}}]`},
		{"the server's name", `[{"op":"add","path":"/spec/new","value":1},{"op":"add","path":"/spec/mode","value":"a"}]`, `unknown field "spec.new"`, `[{"op":"add","path":"/spec/mode","value":"b"}]`},
		{"the server's name in a value", `[{"op":"replace","path":"/spec","value":{"new":1,"old":2}}]`, `unknown field "spec.new"`, `[{"op":"replace","path":"/spec","value":{"new":2}}]`},
		{"gone again", `[{"op":"add","path":"/spec/worse","value":1},{"op":"remove","path":"/spec/worse"}]`, "", `[{"op":"add","path":"/spec/worse","value":1},{"op":"remove","path":"/spec/worse"}]`},
		{"a field of the server's only", `[{"op":"add","path":"/spec/young","value":"x"}]`, "", `[{"op":"add","path":"/spec/young","value":"x"}]`},
		{"an open object", `[{"op":"add","path":"/spec/open/a~1b","value":{"x":1}}]`, "", `[{"op":"add","path":"/spec/open/a~1b","value":{"x":1}}]`},
		{"odd operations", `[7,{"op":"add"},{"op":"add","path":"x"}]`, "", `[7,{"op":"add"},{"op":"add","path":"x"}]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u.forget()
			got := r.do("PATCH", fieldsPath+"/t", jsonPatch, tt.patch)
			if sent := u.only().body; got.code != 200 || !sameJSON(sent, tt.forwarded) {
				t.Errorf("answered %d %s, sent %s", got.code, got.body, sent)
			}
			want := `299 - "` + strings.ReplaceAll(tt.told, `"`, `\"`) + `"`
			if lines := got.header.Values("Warning"); slices.Contains(lines, want) != (tt.told != "") || len(lines) > 2 {
				t.Errorf("warns %q, want %q", lines, want)
			}
			u.forget()
			got = r.do("PATCH", fieldsPath+"/t?fieldValidation=Strict", jsonPatch, tt.patch)
			if tt.told == "" {
				if got.code != 200 {
					t.Errorf("answered %d %s", got.code, got.body)
				}
				return
			}
			checkRefusal(t, got, u, invalid(tt.patch, tt.told), nil)
		})
	}

	apply := func(query, spec, want string) {
		t.Helper()
		u.forget()
		got := r.do("PATCH", fieldsPath+"/t?fieldManager=x"+query, "application/apply-patch+yaml",
			"apiVersion: acme.io/v1beta1\nkind: Thing\nmetadata: {name: t, namespace: d}\nspec: "+spec+"\n")
		if status := toldStatus(t, got); got.code != 500 || status.Message != want || len(u.got()) > 0 {
			t.Errorf("%s was answered %d %s and sent %d times", spec, got.code, got.body, len(u.got()))
		}
	}
	const typed = "failed to create typed patch object (d/t; acme.io/v1beta1, Kind=Thing): "
	apply("", "{old: 1, new: 2}", typed+".spec.new: field not declared in schema")
	apply("&fieldValidation=Strict", "{young: x, worse: 1}", typed+"errors:\n  .spec.worse: field not declared in schema\n  .spec.young: field not declared in schema")
}

// A strategic merge patch is told of as kube-apiserver does, which shows it as Go does.
// What its directives say are no fields.
func TestFieldValidationOfStrategicMergePatches(t *testing.T) {
	u := record(t, "a", "1.32.13", []served{{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"}}, func(q request) string { return ok(`{}`) })
	r := start(t, nil, []string{"policy-v1beta1"}, u)
	ask := func(patch string) answer {
		return r.do("PATCH", "/apis/policy/v1beta1/namespaces/d/poddisruptionbudgets/x?fieldValidation=Strict", "application/strategic-merge-patch+json", patch)
	}
	if got := ask(`{"spec":{"$retainKeys":["minAvailable"],"minAvailable":1,"selector":{"$patch":"replace","matchExpressions":[{"$patch":"replace"}]},"gone":null}}`); got.code != 200 {
		t.Errorf("answered %d %s", got.code, got.body)
	}
	u.forget()
	got := ask(`{"spec":{"minAvailable":1,"minAvailabl":"x"}}`)
	checkRefusal(t, got, u, ` "" is invalid: patch: Invalid value: "map[spec:map[minAvailabl:x minAvailable:1]]": strict decoding error: unknown field "spec.minAvailabl"`, nil)
}
