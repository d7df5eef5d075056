package proxy_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// What a server says of the request is said in the client's names: the whole body is
// compared, so that nothing else of it changes.
func TestRefusalInTheClientsNames(t *testing.T) {
	const path = "/apis/acme.io/v1beta1/namespaces/d/things"
	tests := []struct {
		name, method, mediaType, body string
		code                          int
		reply, want                   string
	}{
		{
			name: "an invalid field", method: "POST", mediaType: "application/json", body: oldThing, code: 422,
			reply: `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Thing.acme.io \"t\" is invalid: spec.new: Invalid value: \"spec.new\": spec.new in body must be of type integer: \"string\"","reason":"Invalid","details":{"name":"t","group":"acme.io","kind":"Thing","causes":[{"reason":"FieldValueTypeInvalid","message":"Invalid value: \"spec.new\": spec.new in body must be of type integer: \"string\"","field":"spec.new"}]},"code":422}` + "\n",
			want:  `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Thing.acme.io \"t\" is invalid: spec.old: Invalid value: \"spec.new\": spec.old in body must be of type integer: \"string\"","reason":"Invalid","details":{"name":"t","group":"acme.io","kind":"Thing","causes":[{"reason":"FieldValueTypeInvalid","message":"Invalid value: \"spec.new\": spec.old in body must be of type integer: \"string\"","field":"spec.old"}]},"code":422}` + "\n",
		},
		{
			name: "an unknown field", method: "PUT", mediaType: "application/json", body: oldThing, code: 400,
			reply: `{"kind":"Status","message":"Thing in version \"v1\" cannot be handled as a Thing: strict decoding error: unknown field \"spec.new.x\"","reason":"BadRequest","code":400}`,
			want:  `{"kind":"Status","message":"Thing in version \"v1beta1\" cannot be handled as a Thing: strict decoding error: unknown field \"spec.old.x\"","reason":"BadRequest","code":400}`,
		},
		{
			name: "a conflict of managers", method: "PATCH", mediaType: "application/apply-patch+yaml", body: oldThing, code: 409,
			reply: `{"kind":"Status","message":"Apply failed with 1 conflict: conflict with \"a\" using acme.io/v1: .spec.new","reason":"Conflict","details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"a\" using acme.io/v1","field":".spec.new"}]},"code":409}`,
			want:  `{"kind":"Status","message":"Apply failed with 1 conflict: conflict with \"a\" using acme.io/v1: .spec.old","reason":"Conflict","details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"a\" using acme.io/v1","field":".spec.old"}]},"code":409}`,
		},
		{
			name: "a value that a rule exchanges", method: "PUT", mediaType: "application/json", body: oldThing, code: 422,
			reply: `{"kind":"Status","message":"Thing.acme.io \"t\" is invalid: spec.mode: Unsupported value: \"b\": supported values: \"b\", \"c\"","reason":"Invalid","details":{"group":"acme.io","kind":"Thing","causes":[{"message":"Unsupported value: \"b\": supported values: \"b\", \"c\"","field":"spec.mode"}]},"code":422}`,
			want:  `{"kind":"Status","message":"Thing.acme.io \"t\" is invalid: spec.mode: Unsupported value: \"a\": supported values: \"a\", \"c\"","reason":"Invalid","details":{"group":"acme.io","kind":"Thing","causes":[{"message":"Unsupported value: \"a\": supported values: \"a\", \"c\"","field":"spec.mode"}]},"code":422}`,
		},
		{
			name: "an undeclared field", method: "PATCH", mediaType: "application/apply-patch+yaml", body: oldThing, code: 500,
			reply: `{"kind":"Status","message":"failed to create typed patch object (d/t; acme.io/v1, Kind=Thing): .spec.new.x: field not declared in schema","code":500}`,
			want:  `{"kind":"Status","message":"failed to create typed patch object (d/t; acme.io/v1beta1, Kind=Thing): .spec.old.x: field not declared in schema","code":500}`,
		},
		{
			name: "no JSON, whatever it says", method: "GET", code: 404,
			reply: "spec.new: not found", want: "spec.new: not found",
		},
		{
			name: "no Status", method: "GET", code: 400,
			reply: `{"message":"spec.new"}`, want: `{"message":"spec.new"}`,
		},
		{
			name: "more than is held", method: "GET", code: 400,
			reply: `{"kind":"Status","message":"` + strings.Repeat("spec.new ", 200<<10) + `"}`,
			want:  `{"kind":"Status","message":"` + strings.Repeat("spec.new ", 200<<10) + `"}`,
		},
	}
	var code int
	var reply string
	u := record(t, "a", "1.32.13", things, func(request) string { return respond(code, "application/json", reply) })
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, reply = tt.code, tt.reply
			got := r.do(tt.method, path+"/t?fieldManager=x", tt.mediaType, strings.Replace(tt.body, `"resourceVersion":"7"`, `"labels":{}`, 1))
			if tt.method == "POST" {
				got = r.do("POST", path, tt.mediaType, tt.body)
			}
			if got.code != tt.code || got.body != tt.want {
				t.Errorf("answered %d %.600s\nwant %d %.600s", got.code, got.body, tt.code, tt.want)
			}
		})
	}
}

// A delete that says no more than that it succeeded says of which kind in the client's
// names, in whatever form.
func TestSuccessInTheClientsNames(t *testing.T) {
	const reply = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"t","group":"new.acme.io","kind":"gadgets","uid":"u"}}`
	const want = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"t","group":"acme.io","kind":"things","uid":"u"}}`
	u := record(t, "a", "1.32.13", []served{{"new.acme.io", "v1", "gadgets", "Gadget"}}, func(request) string { return ok(reply) })
	r := start(t, map[string]string{"things.convert.cel": `{'resource': 'things', 'from': 'acme.io/v1', 'to': 'new.acme.io/v1', 'toResource': 'gadgets', 'kind': 'Thing', 'toKind': 'Gadget'}`}, nil, u)
	for _, target := range []string{"/apis/acme.io/v1/namespaces/d/things/t", "/apis/acme.io/v1/namespaces/d/things"} {
		if got := r.do("DELETE", target, "", ""); got.code != 200 || got.body != want {
			t.Errorf("DELETE %s was answered %d %s, want %s", target, got.code, got.body, want)
		}
	}
}

// The server's warnings come through a conversion with the one of the conversion, with
// the client's names in those that name fields.
func TestWarningsInTheClientsNames(t *testing.T) {
	sent := []string{
		`299 - "unknown field \"spec.new.x\""`,
		`299 - "acme.io/v1 Thing is deprecated in v1.40+"`,
		`299 - "unknown field \"spec.old.x\""`, // the same, once it is translated
		`299 - "one spec.new: x", 299 - "two"`,
		`110 cache "spec.new: stale"`,
	}
	u := record(t, "a", "1.32.13", things, func(request) string {
		var lines strings.Builder
		for _, line := range sent {
			lines.WriteString("Warning: " + line + "\r\n")
		}
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", lines.String(), len(newThing), newThing)
	})
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	want := []string{
		`299 - "unknown field \"spec.old.x\""`, sent[1], sent[3], sent[4],
		`299 - "acme.io/v1beta1 things is answered from acme.io/v1 by the policy things/apiMigrationRules[0]; move to acme.io/v1"`,
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		target, mediaType, body := "/apis/acme.io/v1beta1/namespaces/d/things/t", "", ""
		if method == http.MethodPost {
			target, mediaType, body = "/apis/acme.io/v1beta1/namespaces/d/things", "application/json", oldThing
		}
		got := r.do(method, target, mediaType, body)
		if lines := got.header.Values("Warning"); !slices.Equal(lines, want) {
			t.Errorf("%s warns\n%q\nwant\n%q", method, lines, want)
		}
	}
}
