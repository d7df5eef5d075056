package convert

import (
	"testing"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// A program that can make no object of anything is told at load, and one that may make
// one, of some input, is not.
func TestResultMistakes(t *testing.T) {
	f := func(program, want string) {
		t.Helper()
		_, errs := Compile(Spec{
			From: Version{"a.io", "v1", "things", "Thing"}, To: Version{"a.io", "v2", "things", "Thing"},
			Request: &source.Text{Code: program, Start: source.Pos{File: "p.jq", Line: 1, Col: 1}},
		})
		got := ""
		if len(errs) > 0 {
			got = errs[0].Msg
		}
		if got != want || len(errs) > 1 {
			t.Errorf("%s\n got %q\nwant %q", program, errs, want)
		}
	}
	const (
		nothing = "the program never makes anything: it must make one object"
		many    = "the program always makes more than one value: it must make one object"
		only    = ": it must make one object"
	)
	f(`empty`, nothing)
	f(`.spec.a = 1 | empty`, nothing)
	f(`empty | .spec.a = 1`, nothing)
	f(`select(false)`, nothing)
	f(`if .spec.a then empty else select(null) end`, nothing)
	f(`., .`, many)
	f(`(., .) | .`, many)
	f(`., empty, .`, many)
	f(`if .spec.a == 1 then ., . else (1, 2, 3) end`, many)
	f(`"text"`, "the program always makes a string"+only)
	f(`. | null`, "the program always makes null"+only)
	f(`[.]`, "the program always makes an array"+only)
	f(`. == {}`, "the program always makes a boolean"+only)
	f(`. | not`, "the program always makes a boolean"+only)
	f(`. | tojson`, "the program always makes a string"+only)
	f(`length`, "the program always makes a number"+only)
	f(`map(.a)`, "the program always makes an array"+only)
	f(`1`, "the program always makes a number"+only)
	f(`if .spec then 1 elif .status then 2 else 3 end`, "the program always makes a number"+only)

	for _, right := range []string{
		`.`, `.spec.a = 1`, `.spec`, `.spec.a`, `.spec[]`, `{spec}`, `{spec: .spec[]}`, `., empty`,
		`select(.spec)`, `if .spec then . else empty end`, `if .spec then . else 1 end`, `if .spec then "a" end`,
		`if empty then 1 else 2 end`, `.spec // empty`, `empty // .`, `try empty`, `def empty: .; empty`, `def f: .; f`,
		`. as $x | $x`, `del(.spec.a)`, `"a" | {a: .}`, `[.] | .[0]`, `[.] | first`, `{"a": 1}`, `error("no")`, `.spec = (1, 2)`,
		`"\(.spec.a)" | {a: .}`, `. + {}`, `rename(.spec.a; .spec.b)`, `with_entries(.)`, `1 | error`, `[.spec, .] | add`, `select(.a == false)`,
	} {
		f(right, "")
	}
}
