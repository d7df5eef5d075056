package convert

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// actingSpec has rules in the lines 1, 2, 3 and a program in the file jq.
func actingSpec(program string) Spec {
	at := func(line int) source.Pos { return source.Pos{File: "rules", Line: line, Col: 1} }
	spec := Spec{
		Policy: "p", From: Version{Group: "acme.io", Version: "v1beta1", Kind: "Wheel"}, To: Version{Group: "acme.io", Version: "v1", Kind: "Wheel"},
		Rules: []Rule{
			{Pos: at(1), Action: Rename, Path: "spec.a", TargetPath: "spec.b", Type: "integer"},
			{Pos: at(2), Action: Modify, Path: "spec.b", MatchValue: 1, HasMatch: true, ReplaceValue: 2, HasReplace: true},
			{Pos: at(3), Action: Remove, Path: "spec.list[*].x"},
		},
	}
	if program != "" {
		spec.Request = &source.Text{Code: program, Start: source.Pos{File: "jq", Line: 1, Col: 1}}
	}
	return spec
}

// Whoever asks is told which rules change a body, in each of its forms, and which
// programs run.
func TestActed(t *testing.T) {
	rules, errs := Compile(actingSpec(""))
	if errs != nil {
		t.Fatal(errs)
	}
	program, errs := Compile(actingSpec(`.spec.c = 1`))
	if errs != nil {
		t.Fatal(errs)
	}
	f := func(want string, convert func(v *Vars) error) {
		t.Helper()
		var told []string
		err := convert(&Vars{Acted: func(pos source.Pos, dir Direction) {
			told = append(told, fmt.Sprintf("%s:%d>%d", pos.File, pos.Line, dir))
		}})
		if got := strings.Join(told, " "); err != nil || got != want {
			t.Errorf("told %q, %v, want %q", got, err, want)
		}
	}
	body := func(to func(dst, src []byte, v *Vars) ([]byte, error), src string) func(v *Vars) error {
		return func(v *Vars) error { _, err := to(nil, []byte(src), v); return err }
	}
	object := func(c *Converter, dir Direction) func(dst, src []byte, v *Vars) ([]byte, error) {
		return func(dst, src []byte, v *Vars) ([]byte, error) { return c.Object(dst, src, dir, v) }
	}

	f("", body(object(rules, ToServer), `{"spec":{"c":1}}`))
	f("rules:1>0 rules:2>0", body(object(rules, ToServer), `{"spec":{"a":1}}`))
	f("rules:1>0", body(object(rules, ToServer), `{"spec":{"a":3}}`))
	f("rules:3>0", body(object(rules, ToServer), `{"spec":{"list":[{},{"x":1}]}}`))
	f("rules:2>1 rules:1>1", body(object(rules, ToClient), `{"spec":{"b":2}}`))
	f("rules:1>0 jq:1>0", body(object(program, ToServer), `{"spec":{"a":3}}`))

	f("rules:1>0", body(rules.MergePatch, `{"spec":{"a":null}}`))
	f("rules:1>0", body(rules.StrategicMergePatch, `{"spec":{"a":7}}`))
	f("rules:1>0", body(rules.Apply, `{"spec":{"a":7}}`))
	f("rules:1>0", body(rules.JSONPatch, `[{"op":"replace","path":"/spec/a","value":7},{"op":"test","path":"/spec/c","value":7}]`))
	f("rules:1>0 rules:2>0", body(rules.JSONPatch, `[{"op":"replace","path":"/spec/a","value":1}]`))
	f("rules:3>0", body(rules.JSONPatch, `[{"op":"add","path":"/spec/list/0/x","value":1}]`))
	f("", body(rules.JSONPatch, `[{"op":"remove","path":"/spec/c"}]`))

	const answered = `{"apiVersion":"acme.io/v1","kind":"Wheel","spec":{"b":5}}`
	f("rules:1>1", func(v *Vars) error {
		return rules.Answer(io.Discard, strings.NewReader(`{"apiVersion":"acme.io/v1","kind":"WheelList","items":[`+answered+`]}`), v)
	})
	f("rules:1>1", func(v *Vars) error {
		return rules.Watch(io.Discard, strings.NewReader(`{"type":"ADDED","object":`+answered+`}`), v)
	})
}

// The rules of a chain are in the names of its outermost versions.
func TestRules(t *testing.T) {
	first, errs := Compile(actingSpec(`.`))
	if errs != nil {
		t.Fatal(errs)
	}
	second, errs := Compile(Spec{
		Policy: "q", From: Version{Group: "acme.io", Version: "v1", Kind: "Wheel"}, To: Version{Group: "acme.io", Version: "v2", Kind: "Wheel"},
		Rules: []Rule{
			{Action: Move, Path: "spec.b", TargetPath: "spec.deep.b"},
			{Action: EnsureFieldExistence, Path: "spec.d", DefaultValue: "x", HasDefault: true},
		},
		Response: &source.Text{Code: `.`, Start: source.Pos{File: "back", Line: 1, Col: 1}},
	})
	if errs != nil {
		t.Fatal(errs)
	}
	c := Compose(first, second)
	var got []string
	for _, r := range c.Rules() {
		got = append(got, fmt.Sprintf("%s %s %s %s%s%s%s", r.Action, r.Path, r.TargetPath, r.Type, r.Match, r.Replace, r.Default))
	}
	want := []string{
		"rename spec.a spec.deep.b integer", "modify spec.a spec.deep.b 12", "remove spec.list[*].x spec.list[*].x ",
		"move spec.a spec.deep.b ", `ensureFieldExistence spec.d spec.d "x"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the rules are\n%q, want\n%q", got, want)
	}
	var programs []string
	for _, p := range c.Programs() {
		programs = append(programs, fmt.Sprint(p.Text.Start.File, p.Direction))
	}
	if got := strings.Join(programs, " "); got != "jq0 back1" {
		t.Errorf("the programs are %s", got)
	}
}
