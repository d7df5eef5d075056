package convert

import (
	"slices"
	"testing"
)

func TestWithout(t *testing.T) {
	c := statusConverter(t)
	f := func(object string, want string, unknown ...string) {
		t.Helper()
		drop := slices.DeleteFunc(slices.Clone(unknown), func(path string) bool { return !c.RenameTarget(path) })
		if got := string(Without(nil, []byte(object), drop)); got != want {
			t.Errorf("of %s without %q is left %s, want %s", object, unknown, got, want)
		}
	}

	f(`{"spec": {"config":{"old":1.0,"new":2}}, "data":1}`, `{"spec": {"config":{"old":1.0}}}`, "spec.config.new", "data", "data")
	f(`{"spec":{"items":[{"image":{"name":1}},{"image":{"name":2,"tag":3}},{"image":4}]}}`,
		`{"spec":{"items":[{},{"image":{"tag":3}},{}]}}`, "spec.items[0].image", "spec.items[1].image.name", "spec.items[2].image")
	f(`{"data":{"a":1,"b":2}}`, `{"data":{"b":2}}`, "data.a")

	// Not where a rule puts anything, not there, no path, no JSON.
	f(`{"spec":{"config":{"newer":1},"x":2},"status":{}}`, `{"spec":{"config":{"newer":1},"x":2},"status":{}}`, "spec.config.newer", "spec.x", "status")
	f(`{"spec":{"items":[]}}`, `{"spec":{"items":[]}}`, "spec.items[0].image", "spec.items[x].image", "data", "spec.config.new", "", "a..b")
	f(`{"data":`, `{"data":`, "data")
}
