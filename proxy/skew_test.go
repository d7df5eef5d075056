package proxy_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// describing answers for OpenAPI v3 with an index of one document.
func describing(hash string) func(string) string {
	return func(target string) string {
		if target == "/openapi/v3" {
			return ok(fmt.Sprintf(`{"paths":{"apis/acme.io/v1":{"serverRelativeURL":"/openapi/v3/apis/acme.io/v1?hash=%s"}}}`, hash))
		}
		return ok(`{"openapi":"3.0.0","components":{"schemas":{}}}`)
	}
}

// skewRig is MVP before two servers of two versions with these descriptions.
func skewRig(t *testing.T, files map[string]string, old, young string) (r *rig, a, b *recorder, down *atomic.Bool) {
	t.Helper()
	down = &atomic.Bool{}
	a = record(t, "a", "1.31.14", things, nil)
	b = record(t, "b", "1.32.13", things, nil)
	a.openapi, b.openapi = describing(old), describing(young)
	b.ready = func() string {
		if down.Load() {
			return respond(500, "text/plain", "[-]shutdown failed\n")
		}
		return respond(200, "text/plain", "ok")
	}
	return start(t, files, nil, a, b), a, b, down
}

const callers = 16 // of whom chance would send some to each server

// What stores an object, and what reads one to store it, goes to the newest server
// where the servers describe the kind differently; the rest is spread.
func TestSchemaSkew(t *testing.T) {
	const object, list = "/apis/acme.io/v1/namespaces/d/things/t", "/apis/acme.io/v1/namespaces/d/things"
	r, a, b, _ := skewRig(t, nil, "1", "2")
	f := func(method, target, contentType string, spread bool) {
		t.Helper()
		a.forget()
		b.forget()
		body := ""
		if contentType != "" {
			body = "{}"
		}
		for i := range callers {
			got := r.do(method, target, contentType, body, "Authorization", fmt.Sprintf("Bearer %d", i))
			if got.code != 200 || len(got.header["Warning"]) > 0 {
				t.Fatalf("%s %s was answered %d %v %s", method, target, got.code, got.header, got.body)
			}
		}
		if n := len(a.got()); (n > 0) != spread || n+len(b.got()) != callers {
			t.Errorf("%s %s went %d times to the older server, %d times to the newer; spread: %t", method, target, n, len(b.got()), spread)
		}
	}

	f("POST", list, "application/json", false)
	f("PUT", object, "application/json", false)
	f("PUT", object+"/status", "application/json", false)
	f("PATCH", object, "application/merge-patch+json", false)
	f("PATCH", object, "application/apply-patch+yaml", false)
	f("PATCH", object+"/status", "application/merge-patch+json", false)
	f("DELETE", object, "", false)
	f("DELETE", list, "", false)
	f("GET", object, "", false)
	f("GET", object+"?resourceVersion=0", "", true)
	f("GET", list, "", true)
	f("GET", list+"?watch=1", "", true)

	same, a, b, _ := skewRig(t, nil, "1", "1")
	r = same
	f("POST", list, "application/json", true)
	f("GET", object, "", true)
}

// A write that a policy sends to an older server, or that only an older one can take
// now, says so; it is not refused.
func TestSchemaSkewIsTold(t *testing.T) {
	const list = "/apis/acme.io/v1/namespaces/d/things"
	warned := func(got answer) string { return strings.Join(got.header["Warning"], "\n") }

	r, a, _, _ := skewRig(t, map[string]string{"10-old.route.cel": `upstream.name == 'a' ? 2 : 1`}, "1", "2")
	got := r.do("POST", list, "application/json", "{}")
	const byPolicy = `299 - "create acme.io/v1 things d/ was sent to a (v1.31) because the policies 10-old prefer it: fields that only v1.32 knows are dropped"`
	if got.code != 200 || warned(got) != byPolicy || len(a.got()) != 1 {
		t.Errorf("answered %d with the warning %q, want %q", got.code, warned(got), byPolicy)
	}
	if got := r.do("GET", list+"/t", "", ""); warned(got) != "" {
		t.Errorf("reading has the warning %q", warned(got))
	}

	r, a, b, down := skewRig(t, nil, "1", "2")
	if got := r.do("POST", list, "application/json", "{}"); got.code != 200 || warned(got) != "" || len(b.got()) != 1 {
		t.Errorf("answered %d with the warning %q by %d requests to the newer", got.code, warned(got), len(b.got()))
	}
	down.Store(true)
	const away = `299 - "create acme.io/v1 things d/ was sent to a (v1.31) because b cannot be reached: fields that only v1.32 knows are dropped"`
	r.eventually("writes go to the older server, and say so", func() bool {
		got := r.do("POST", list, "application/json", "{}")
		return got.code == 200 && warned(got) == away && len(a.got()) > 0
	})
	r.eventually("the newer one is away and its kinds are known", func() bool {
		return r.do("DELETE", list+"/t", "", "").code == 200
	})
}

// A preference for a version is a policy's word, too.
func TestSchemaSkewAndPreference(t *testing.T) {
	const prefers = `apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: things}
spec:
  apiRoutingRules:
    - {apiGroup: acme.io, resource: things, clientVersion: v1, preferApiServerVersion: v1.31.y}
`
	r, a, _, _ := skewRig(t, map[string]string{"things.yaml": prefers}, "1", "2")
	got := r.do("PUT", "/apis/acme.io/v1/namespaces/d/things/t", "application/json", "{}")
	if got.code != 200 || len(a.got()) != 1 || !strings.Contains(got.header.Get("Warning"), "sent to a (v1.31) because the policies things/apiRoutingRules[0] prefer it") {
		t.Errorf("answered %d %v, sent %d times to the older server", got.code, got.header, len(a.got()))
	}
}
