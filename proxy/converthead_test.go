package proxy_test

import (
	"net/http"
	"strings"
	"testing"
)

// A HEAD of what is converted is answered with the head of a GET: its type and length are
// the converted body's, in the form that the client takes.
func TestConvertedHead(t *testing.T) {
	const path = "/apis/acme.io/v1beta1/namespaces/d/things"
	list := `{"kind":"ThingList","apiVersion":"acme.io/v1","metadata":{},"items":[` + strings.TrimSuffix(strings.Repeat(newThing+",", 3000), ",") + `]}`
	u := record(t, "a", "1.32.13", things, func(q request) string {
		reply := ok(newThing)
		if !strings.HasSuffix(q.target, "/t") {
			reply = ok(list)
		}
		if q.method == http.MethodHead {
			reply, _, _ = strings.Cut(reply, "\r\n\r\n")
			reply += "\r\n\r\n"
		}
		return reply
	})
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	f := func(target, accept string, asked int) {
		t.Helper()
		get := r.do("GET", target, "", "", "Accept", accept)
		u.forget()
		head := r.do("HEAD", target, "", "", "Accept", accept)
		if head.code != get.code || head.body != "" || len(u.got()) != asked || u.got()[0].method != http.MethodHead {
			t.Errorf("HEAD %s was answered %d %q after %d requests, GET %d", target, head.code, head.body, len(u.got()), get.code)
		}
		for _, name := range []string{"Content-Type", "Content-Length", "Warning"} {
			if head.header.Get(name) != get.header.Get(name) {
				t.Errorf("HEAD %s has the %s %q, GET %q", target, name, head.header.Get(name), get.header.Get(name))
			}
		}
	}

	f(path+"/t", "application/json", 2)
	f(path+"/t", "application/yaml", 2)
	f(path, "application/json", 2) // a GET of it is chunked
}
