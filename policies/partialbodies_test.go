package policies

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// TestPartialBodies holds that no policy of the library writes a default into a part of
// an object: a client that applies or patches would come to own, or reset, what it did
// not name.
func TestPartialBodies(t *testing.T) {
	for _, c := range libraryConversions(t) {
		from := strings.NewReplacer("VERSION", c.From.APIVersion(), "KIND", c.From.Kind)
		to := strings.NewReplacer("VERSION", c.To.APIVersion(), "KIND", c.To.Kind)
		vars := func(contentType string) *convert.Vars {
			r := engine.Request{Verb: "patch", Group: c.From.Group, Version: c.From.Version, Resource: c.From.Resource, ContentType: contentType}
			return &convert.Vars{Request: r.Vars()}
		}
		f := func(what, body string, got []byte, err error) {
			t.Helper()
			if errors.Is(err, convert.ErrNeedsObject) { // then the whole object is converted
				return
			}
			if err != nil || adds(t, got, []byte(to.Replace(body))) {
				t.Errorf("%s to %s: %s of %s is %s (%v)", c.Policy, c.To.APIVersion(), what, from.Replace(body), got, err)
			}
		}
		for _, body := range []string{
			`{"apiVersion":"VERSION","kind":"KIND","metadata":{"name":"x"}}`,
			`{"apiVersion":"VERSION","kind":"KIND","metadata":{"name":"x"},"spec":{}}`,
			`{"apiVersion":"VERSION","kind":"KIND","metadata":{"name":"x"},"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`,
		} {
			got, err := c.Apply(nil, []byte(from.Replace(body)), vars("application/apply-patch+yaml"))
			f("what is applied", body, got, err)
			got, err = c.MergePatch(nil, []byte(from.Replace(body)), vars("application/merge-patch+json"))
			f("a merge patch", body, got, err)
			got, err = c.StrategicMergePatch(nil, []byte(from.Replace(body)), vars("application/strategic-merge-patch+json"))
			f("a strategic merge patch", body, got, err)
		}
	}
}

// adds reports whether got has a field that the object want has not, or another value. It
// may lack some: in node.k8s.io/v1 a RuntimeClass has no spec.
func adds(t *testing.T, got, want []byte) bool {
	t.Helper()
	var g, w any
	if err := errors.Join(json.Unmarshal(got, &g), json.Unmarshal(want, &w)); err != nil {
		t.Fatal(err)
	}
	return addsTo(g, w)
}

func addsTo(got, want any) bool {
	g, isObject := got.(map[string]any)
	w, wantObject := want.(map[string]any)
	if !isObject || !wantObject {
		return !reflect.DeepEqual(got, want)
	}
	for key, value := range g {
		if was, ok := w[key]; !ok || addsTo(value, was) {
			return true
		}
	}
	return false
}

// libraryConversions are all conversions of the library, chains included.
func libraryConversions(t *testing.T) []*engine.Conversion {
	t.Helper()
	var all []engine.Policy
	for _, shipped := range Library() {
		all = append(all, shipped.Policies...)
	}
	set, err := engine.Compile(all)
	if err != nil {
		t.Fatal(err)
	}
	return set.Conversions()
}
