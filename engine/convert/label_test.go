package convert

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// What Label says of a client's label holds for the objects that the converter makes:
// for every set of labels on the server, the client sees a value exactly where Label says.
func TestLabelFindsWhatTheClientSees(t *testing.T) {
	label := func(key string) string { return "metadata.labels." + key }
	modify := func(key, match, replace string) Rule {
		return Rule{Action: Modify, Path: label(key), MatchValue: match, HasMatch: true, ReplaceValue: replace, HasReplace: true}
	}
	c := mustCompile(t, Spec{
		Policy: "p",
		From:   Version{Group: "g", Version: "v1", Resource: "things", Kind: "Thing"},
		To:     Version{Group: "g", Version: "v2", Resource: "things", Kind: "Thing"},
		Rules: []Rule{
			modify("a", "x", "y"),
			modify("b", "y", "z"),
			{Action: Rename, Path: label("a"), TargetPath: label("b")},
			modify("b", "z", "w"),
			modify("a", "z", "x"),
			modify("c", "y", "z"),
			modify("c", "x", "y"),
			modify("c", "w", "y"),
			{Action: EnsureFieldExistence, Path: label("c"), DefaultValue: "x", HasDefault: true},
			{Action: Remove, Path: label("d")},
		},
	})
	values := []string{"", "w", "x", "y", "z"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		server := map[string]string{}
		text := ""
		for _, key := range []string{"a", "b", "c", "d"} {
			if v := values[random.IntN(len(values))]; v != "" {
				server[key] = v
				text += fmt.Sprintf(",%q:%q", key, v)
			}
		}
		src := fmt.Sprintf(`{"apiVersion":"g/v2","kind":"Thing","metadata":{"labels":{"o":"o"%s}}}`, text)
		out, err := c.Object(nil, []byte(src), ToClient, nil)
		if err != nil {
			t.Fatal(err)
		}
		d := newDoc()
		if err := d.parse(out); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"a", "b", "c", "d", "o"} {
			l, err := c.Label(key)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range values[1:] {
				m := d.find(d.find(d.find(root, "metadata"), "labels"), key)
				seen := m != 0 && d.strIs(m, v)
				if got := labelHas(&l, server, v); got != seen {
					t.Fatalf("%s: Label says that the client sees %s=%s: %t, but it is %s", src, key, v, got, out)
				}
			}
		}
		d.free()
	}
}

// labelHas evaluates l on a server's labels.
func labelHas(l *Label, server map[string]string, value string) bool {
	if v, ok := server[l.Key]; ok {
		_, with := server[l.With]
		return (l.With == "" || with) && slices.Contains(l.Values([]string{value}), v)
	}
	v, ok := server[l.Instead]
	return ok && slices.Contains(l.InsteadValues([]string{value}), v)
}

func TestLabelErrors(t *testing.T) {
	f := func(want string, rules ...Rule) {
		t.Helper()
		c := mustCompile(t, Spec{From: Version{Version: "v1", Resource: "things"}, To: Version{Version: "v2", Resource: "things"}, Rules: rules})
		if _, err := c.Label("a"); err == nil || err.Error() != want {
			t.Errorf("Label(a) failed with %v, want %s", err, want)
		}
		if l, err := c.Label("other"); want != "changes all labels (move)" && (err != nil || l.Changed("other")) {
			t.Errorf("Label(other) is %v, %v", l, err)
		}
	}

	f("changes all labels (move)", Rule{Action: Move, Path: "metadata.labels", TargetPath: "spec.labels"})
	f("makes spec.a of metadata.labels.a", Rule{Action: Move, Path: "metadata.labels.a", TargetPath: "spec.a"})
	f("makes metadata.labels.a of spec.a", Rule{Action: Move, Path: "spec.a", TargetPath: "metadata.labels.a"})
	f("makes it an integer", Rule{Action: Rename, Path: "metadata.labels.a", TargetPath: "metadata.labels.b", Type: "integer"})
	f("makes it something that is no string",
		Rule{Action: Modify, Path: "metadata.labels.a", MatchValue: "1", HasMatch: true, ReplaceValue: 1, HasReplace: true})
	f("renames it more than once", Rule{Action: Rename, Path: "metadata.labels.a", TargetPath: "metadata.labels.b"},
		Rule{Action: Rename, Path: "metadata.labels.b", TargetPath: "metadata.labels.c"})
}
