package proxy_test

import (
	"net/http"
	"strings"
	"testing"
)

// A program that makes anything but one object fails the write, and no server sees
// any of it.
func Test4_05_NothingIsSent(t *testing.T) {
	for _, program := range []string{`.spec.no // empty`, `select(.spec.no)`, `., (.spec.no // .)`, `.spec.no // "text"`, `.spec.no`, `error(null)`} {
		u := record(t, "a", "1.32.13", things, nil)
		r := start(t, map[string]string{
			"p.convert.cel": `{'resource': 'things', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1'}`,
			"p.request.jq":  program,
		}, nil, u)
		got := r.do("POST", "/apis/acme.io/v1beta1/namespaces/d/things", "application/json", oldThing)
		if got.code != http.StatusInternalServerError || !strings.Contains(got.body, `"reason":"PolicyFailed"`) ||
			!strings.Contains(got.body, "p.request.jq:1:1: policy p: ") || len(u.got()) > 0 {
			t.Errorf("%s: answered %d %s, sent %q", program, got.code, got.body, u.got())
		}
	}
}

// A rule on the body lets pass what has none, and a body without the key is the
// stated failure.
func Test4_12_NoBody(t *testing.T) {
	u := record(t, "a", "1.32.13", pods, nil)
	r := start(t, map[string]string{"p.match.cel": `object.spec.hostNetwork == true`, "p.deny.cel": `'no'`}, nil, u)
	const path = "/api/v1/namespaces/d/pods"
	for _, tt := range []struct {
		method, target, body string
		code                 int
		want                 string
	}{
		{"GET", path + "/p", "", 200, ""},
		{"GET", path, "", 200, ""},
		{"GET", path + "?watch=1&timeoutSeconds=1", "", 200, ""},
		{"DELETE", path + "/p", "", 200, ""},
		{"DELETE", path, "", 200, ""},
		{"POST", path + "/p/exec?command=a", "", 200, ""},
		{"POST", path, `{"spec":{"hostNetwork":true}}`, 403, "denied by policy"},
		{"POST", path, `{"spec":{"hostNetwork":false}}`, 200, ""},
		{"POST", path, `{"kind":"Pod"}`, 500, "p.match.cel:1:12: cannot evaluate match of policy"},
	} {
		got := r.do(tt.method, tt.target, "application/json", tt.body)
		if got.code != tt.code || !strings.Contains(got.body, tt.want) {
			t.Errorf("%s %s %s: answered %d %s, want %d with %q", tt.method, tt.target, tt.body, got.code, got.body, tt.code, tt.want)
		}
	}
}

// What no policy converts reaches the server, and comes back, byte for byte: the order of
// its keys, its spaces and the form of its numbers.
func Test4_07_KeyOrder(t *testing.T) {
	const odd = "{ \"spec\" : {\"z\":1.0, \"a\":1e3,\t\"b\":\"\\u00e4\"},\r\n \"kind\":\"Pod\",\"apiVersion\" : \"v1\",\"metadata\":{\"name\":\"p\",\"annotations\":{\"z\":\"{\\\"b\\\": 1,\\\"a\\\":2}\",\"a\":\"\"}} }\n"
	u := record(t, "a", "1.32.13", pods, func(r request) string { return ok(r.body) })
	// The policy has the body decoded and changes nothing of it.
	r := start(t, map[string]string{"p.match.cel": `object.spec.z > 0`, "p.warn.cel": `'looked at'`}, nil, u)
	for _, method := range []string{"POST", "PUT"} {
		u.forget()
		target := "/api/v1/namespaces/d/pods"
		if method == "PUT" {
			target += "/p"
		}
		got := r.do(method, target, "application/json", odd)
		if got.code != http.StatusOK || got.body != odd || got.header.Get("Warning") == "" {
			t.Errorf("%s: answered %d %q with warning %q", method, got.code, got.body, got.header.Get("Warning"))
		}
		if sent := u.only(); sent.body != odd {
			t.Errorf("%s: the server got %q", method, sent.body)
		}
	}
}
