package engine

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
)

func TestWithVersion(t *testing.T) {
	f := func(target, to, want string) {
		t.Helper()
		r, err := ParseRequest("GET", target)
		if err != nil {
			t.Fatal(err)
		}
		e := strings.Split(to, "/")
		got, err := r.WithVersion(e[0], e[1], e[2], func(path, operator, value string) string {
			return strings.ReplaceAll(path, "spec.old", "spec.new") + operator + value
		})
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s as %s\n got %s\nwant %s", target, to, got, want)
		}
	}
	f("/apis/policy/v1beta1/namespaces/web/poddisruptionbudgets/shop?watch=1", "policy/v1/poddisruptionbudgets",
		"/apis/policy/v1/namespaces/web/poddisruptionbudgets/shop?watch=1")
	f("/apis/extensions/v1beta1/ingresses", "networking.k8s.io/v1/ingresses", "/apis/networking.k8s.io/v1/ingresses")
	f("/apis/a/v1/xs/x/scale", "b/v2/ys", "/apis/b/v2/ys/x/scale")
	f("/apis/a/v1/watch/namespaces/n/xs", "b/v2/ys", "/apis/b/v2/watch/namespaces/n/ys")

	// From and to the core group.
	f("/api/v1/namespaces/web/events/e", "events.k8s.io/v1/events", "/apis/events.k8s.io/v1/namespaces/web/events/e")
	f("/apis/events.k8s.io/v1/namespaces/web/events/e", "/v1/events", "/api/v1/namespaces/web/events/e")
	f("/api/v1/pods", "/v2/pods", "/api/v2/pods")

	// A name that is like an element stays.
	f("/apis/v1/v1/namespaces/v1/v1/v1/v1", "g/v2/r", "/apis/g/v2/namespaces/v1/r/v1/v1")

	// Escapes, slashes and the query stay as they were sent.
	f("/%61pis%2Fpolicy/v1%62eta1/namespaces/%61/x%73//%2e%2e/?", "policy/v1/pdbs", "/%61pis%2Fpolicy/v1/namespaces/%61/pdbs//%2e%2e/?")
	f("/apis/a/v1/xs/?&limit=5&&x=%41+%zz&", "b/v2/ys", "/apis/b/v2/ys/?&limit=5&&x=%41+%zz&")

	// Field selectors follow a rename, and only their paths.
	f("/apis/a/v1/xs?fieldSelector=metadata.name%3Dspec.old&limit=5", "a/v2/xs", "/apis/a/v2/xs?fieldSelector=metadata.name%3Dspec.old&limit=5")
	f("/apis/a/v1/xs?fieldSelector=spec.old%3Dspec.old,spec.b!=c&x=spec.old", "a/v2/xs", "/apis/a/v2/xs?fieldSelector=spec.new%3Dspec.old%2Cspec.b%21%3Dc&x=spec.old")
	f("/apis/a/v1/xs?field%53elector=spec.old!%3Da%5C%2Cspec.old==", "a/v2/xs", "/apis/a/v2/xs?field%53elector=spec.new%21%3Da%5C%2Cspec.old%3D%3D")
	f("/apis/a/v1/xs?fieldSelector=spec.old", "a/v2/xs", "/apis/a/v2/xs?fieldSelector=spec.old")

	f("/healthz", "a/v2/xs", `cannot ask for another version of "/healthz": it is no resource`)
	f("/api/v1/pods", "a//xs", `cannot ask for list /v1 pods in group "a" version "": version and resource must be given`)
	f("/api/v1/pods", "a/v1?/xs", `cannot ask for list /v1 pods in group "a" version "v1?" resource "xs": "v1?" cannot stand in a path`)
}

// FuzzFieldSelector holds the replacing of paths against the parser of
// kube-apiserver.
func FuzzFieldSelector(f *testing.F) {
	for _, s := range []string{"a=b", "a==b,c!=d", `a=b\,c=d,e=f`, `a=\\,b=c`, "a", "=", ",,a=b,", "!=a", "a!b=c", `\a=b`, `a\,b=c`} {
		f.Add(s)
	}
	rename := func(path string) string {
		if path == "" {
			return "" // the parser drops a term that compares nothing
		}
		return path + ".x"
	}
	f.Fuzz(func(t *testing.T, selector string) {
		same := func(path, operator, value string) string { return path + operator + value }
		if got := mapFieldSelector(selector, same); got != selector {
			t.Fatalf("%q unchanged is %q", selector, got)
		}
		want, err := fields.ParseSelector(selector)
		if err != nil {
			return
		}
		want, err = want.Transform(func(field, value string) (string, string, error) { return rename(field), value, nil })
		if err != nil {
			t.Fatal(err)
		}
		mapped := mapFieldSelector(selector, func(path, operator, value string) string { return rename(path) + operator + value })
		got, err := fields.ParseSelector(mapped)
		if err != nil {
			t.Fatalf("%q became %q: %v", selector, mapped, err)
		}
		if !sameSelector(got, want) {
			t.Errorf("%q became %q\n got %v\nwant %v", selector, mapped, got, want)
		}
	})
}

// sameSelector compares the requirements in any order: the parser sorts them by
// their text, which the replacing changes.
func sameSelector(a, b fields.Selector) bool {
	count := map[fields.Requirement]int{}
	for _, r := range a.Requirements() {
		count[r]++
	}
	for _, r := range b.Requirements() {
		count[r]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}
