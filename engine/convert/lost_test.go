package convert

import (
	"fmt"
	"testing"
)

// What a conversion is said to drop is what it drops: the object without it makes the
// same, and what else there is gets to the server.
func TestLost(t *testing.T) {
	f := func(spec Spec, body, want string) {
		t.Helper()
		c := mustCompile(t, spec)
		src := `{"apiVersion":"example.com/v1","kind":"Thing","spec":` + body + `}`
		lost := c.Lost([]byte(src))
		if got := fmt.Sprint(lost); got != want {
			t.Errorf("of %s is lost %s, want %s", body, got, want)
		}
		var paths []string
		for _, l := range lost {
			paths = append(paths, l.Path)
		}
		kept := Without(nil, []byte(src), paths)
		if len(lost) > 0 && string(kept) == src {
			t.Errorf("nothing can be left out of %s", src)
		}
		all, err := c.Object(nil, []byte(src), ToServer, nil)
		if err != nil {
			t.Fatal(err)
		}
		if rest, err := c.Object(nil, kept, ToServer, nil); err != nil || !sameJSON(t, all, rest) {
			t.Errorf("%s becomes %s, without what is lost %s, %v", src, all, rest, err)
		}
	}
	removes := jqSpec("", "")
	removes.Rules = []Rule{
		{Action: Rename, Path: "spec.first", TargetPath: "spec.second"},
		{Action: Remove, Path: "spec.second"},
		{Action: Remove, Path: "spec.list[*].gone"},
		{Action: Remove, Path: `spec["a.b"]`},
	}
	program := jqSpec(`del(.spec.gone, .spec["a b"].x) | .spec.n = 1 | del(.spec.list[].gone) | .spec.to = .spec.moved | del(.spec.moved) | del(.spec.some[] | select(.x == 1))`, "")

	f(removes, `{"first":1,"list":[{"gone":null,"x":1},{"gone":7},8],"a.b":"c"}`,
		`[{spec.first false} {spec.list[0].gone true} {spec.list[1].gone false} {spec["a.b"] false}]`)
	f(removes, `{"list":{"gone":1},"third":1}`, `[]`)
	emptied := jqSpec("", "")
	emptied.Rules = []Rule{
		{Action: Move, Path: "spec.in.x", TargetPath: "spec.x"},
		{Action: Remove, Path: "spec.in"},
	}
	f(emptied, `{"in":{"x":1}}`, `[]`)
	f(program, `{"gone":{},"a b":{"x":1},"list":[{"gone":1}],"moved":1,"some":[{"x":1}]}`,
		`[{spec.gone false} {spec["a b"].x false} {spec.list[0].gone false}]`)
	f(jqSpec(`if .spec.a then del(.spec.b) else . end`, ""), `{"a":true,"b":1}`, `[]`)
}
