package convert

import (
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// closed is a schema that knows the names of fields: those of the objects at its keys.
type closed map[string]string

func (closed) TypeAt([]string) Type { return TypeUnknown }

func (c closed) FieldsAt(path []string) ([]string, bool) {
	names, ok := c[strings.Join(path, ".")]
	return strings.Fields(names), ok
}

func TestMissingFields(t *testing.T) {
	client := closed{"": "apiVersion kind metadata spec", "spec": "old mode list same", "spec.list.*": "a b"}
	server := closed{"": "apiVersion kind metadata spec status", "spec": "fresh mode list same extra", "spec.list.*": "a c"}
	f := func(want string, rules ...Rule) {
		t.Helper()
		for i := range rules {
			rules[i].Pos = source.Pos{File: "r", Line: i + 1, Col: 1}
		}
		spec := Spec{From: Version{"a.io", "v1", "things", "Thing"}, To: Version{"a.io", "v2", "things", ""}, Rules: rules}
		c := mustCompile(t, spec)
		var got []string
		for _, e := range c.MissingFields(client, server) {
			got = append(got, e.Error())
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
		}
		for _, e := range c.MissingFields(nil, types{}) {
			t.Errorf("of schemas that know no names: %v", e)
		}
	}

	f("", Rule{Action: Rename, Path: "spec.old", TargetPath: "spec.fresh"})
	f(`r:1:1: path: a.io/v1 Thing has no field spec.oldd; did you mean spec.old?
r:1:1: targetPath: a.io/v2 things has no field spec.frsh; did you mean spec.fresh?`, Rule{Action: Rename, Path: "spec.oldd", TargetPath: "spec.frsh"})

	// The name in between is in neither version, and need not be.
	f("", Rule{Action: Rename, Path: "spec.old", TargetPath: "spec.tmp"}, Rule{Action: Rename, Path: "spec.tmp", TargetPath: "spec.fresh"})
	f(`r:1:1: targetPath: a.io/v2 things has no field spec.elsewhere; known are fresh, mode, list, same, extra
r:2:1: targetPath: a.io/v2 things has no field spec.elsewhere; known are fresh, mode, list, same, extra`,
		Rule{Action: Rename, Path: "spec.old", TargetPath: "spec.tmp"}, Rule{Action: Rename, Path: "spec.tmp", TargetPath: "spec.elsewhere"})

	f("", Rule{Action: Rename, Path: "spec.list[*].b", TargetPath: "spec.list[*].c"})
	f("r:1:1: path: a.io/v1 Thing has no field spec.list[*].d; known are a, b", Rule{Action: Rename, Path: "spec.list[*].d", TargetPath: "spec.list[*].c"})

	f("", Rule{Action: Modify, Path: "spec.mode", HasReplace: true, ReplaceValue: 1})
	f("", Rule{Action: Modify, Path: "spec.extra", HasReplace: true, ReplaceValue: 1}) // which only the server has
	f("r:1:1: path: a.io/v2 things has no field spec.mod; did you mean spec.mode?", Rule{Action: Modify, Path: "spec.mod", HasReplace: true, ReplaceValue: 1})

	f("", Rule{Action: EnsureFieldExistence, Path: "spec.extra", HasDefault: true, DefaultValue: 1})
	f("", Rule{Action: EnsureFieldExistence, Path: "spec.extra", HasDefault: true, DefaultValue: 1, Unless: []string{"spec.mode", "spec.old", "spec.fresh"}})
	f("r:1:1: unless: a.io/v2 things has no field spec.mod; did you mean spec.mode?",
		Rule{Action: EnsureFieldExistence, Path: "spec.extra", HasDefault: true, DefaultValue: 1, Unless: []string{"spec.mod"}})
	f("r:1:1: unless: a.io/v2 things has no field spec.list[*].d; known are a, c",
		Rule{Action: EnsureFieldExistence, Path: "spec.list[*].c", HasDefault: true, DefaultValue: 1, Unless: []string{"spec.list[*].d"}})
	f("r:1:1: path: a.io/v2 things has no field spec.old; known are fresh, mode, list, same, extra", Rule{Action: EnsureFieldExistence, Path: "spec.old", HasDefault: true, DefaultValue: 1})

	f("", Rule{Action: Remove, Path: "spec.old"})
	f("r:1:1: path: a.io/v1 Thing has no field spec.extra; known are old, mode, list, same", Rule{Action: Remove, Path: "spec.extra"})
	f("r:1:1: path: a.io/v1 Thing has no field specs; did you mean spec?", Rule{Action: Remove, Path: "specs.old"})

	f("", Rule{Action: Remove, Path: "metadata.labels.anything"}, Rule{Action: Remove, Path: "spec.list[*].a.deeper"}, Rule{Action: Remove, Path: "spec.same.deeper"})
}

// What a rule makes may be for the program behind it; what it reads is the client's.
func TestMissingFieldsBesideProgram(t *testing.T) {
	c := mustCompile(t, Spec{
		From: Version{"a.io", "v1", "things", "Thing"}, To: Version{"a.io", "v2", "things", "Thing"},
		Rules: []Rule{
			{Action: Rename, Path: "spec.old", TargetPath: "spec.tmp"},
			{Action: EnsureFieldExistence, Path: "spec.tmp2", HasDefault: true},
			{Action: Remove, Path: "spec.none"},
		},
		Preserve: []Preserved{{Path: "spec.gone", Pos: source.Pos{File: "p", Line: 1, Col: 1}}},
		Request:  &source.Text{Code: `.spec.fresh = .spec.tmp`, Start: source.Pos{File: "q", Line: 1, Col: 1}},
	})
	got := c.MissingFields(closed{"spec": "old"}, closed{"spec": "fresh"}).Error()
	const want = `path: a.io/v1 Thing has no field spec.none; known are old
p:1:1: preserve: a.io/v2 Thing has no field spec.gone; known are fresh`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
