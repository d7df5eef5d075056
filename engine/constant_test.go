package engine

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

func textOf(code string) *source.Text {
	return &source.Text{Code: code, Start: source.Pos{File: "a.convert.cel", Line: 1, Col: 1}}
}

func TestEvalConstant(t *testing.T) {
	f := func(code string, want any) {
		t.Helper()
		got, err := EvalConstant(textOf(code))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("EvalConstant(%q)\n got %#v\nwant %#v", code, got, want)
		}
	}
	f("// what changes\n{'from': 'policy/v1beta1', 'to': 'policy/' + 'v1'}", map[string]any{"from": "policy/v1beta1", "to": "policy/v1"})
	f("{'a': 1, 'b': 'x', 'c': [1, 2.5, true, null, 3u], 'd': {}}",
		map[string]any{"a": int64(1), "b": "x", "c": []any{int64(1), 2.5, true, nil, uint64(3)}, "d": map[string]any{}})
	f("'audit'", "audit")
	f("[1, 2].map(x, x * 2)", []any{int64(2), int64(4)})
}

func TestEvalConstantMistakes(t *testing.T) {
	f := func(code, want string) {
		t.Helper()
		_, err := EvalConstant(textOf(code))
		if err == nil {
			t.Fatalf("EvalConstant(%q): no error", code)
		}
		if err.Error() != want {
			t.Errorf("EvalConstant(%q)\n got %s\nwant %s", code, err, want)
		}
	}
	f("{'from': request.verb}", "a.convert.cel:1:10: cannot use \"request\" here: the value must be constant, since it is for all requests and known before any; write the value itself, and say in match which requests it is for\n  {'from': request.verb}\n           ^")
	f("[object, upstream, reqest]", "a.convert.cel:1:2: cannot use \"object\" here: the value must be constant, since it is for all requests and known before any; write the value itself, and say in match which requests it is for\n  [object, upstream, reqest]\n   ^")
	f("[reqest]", "a.convert.cel:1:2: undeclared reference to \"reqest\"; if it is a text, write it in quotes: 'reqest'\n  [reqest]\n   ^")
	f("{'from' 'a'}", "a.convert.cel:1:9: syntax error: ':' is missing before \"'a'\"\n  {'from' 'a'}\n          ^")
	f("{1: 2}", "a.convert.cel:1:1: cannot use the value: the keys of a map must be strings, not int\n  {1: 2}\n  ^")
	f("[timestamp('2026-01-01T00:00:00Z')]", "a.convert.cel:1:1: cannot use the value: a google.protobuf.Timestamp has no JSON form\n  [timestamp('2026-01-01T00:00:00Z')]\n  ^")
	f("[1][2]", "a.convert.cel:1:1: cannot evaluate the expression: index out of bounds: 2\n  [1][2]\n  ^")
	f("", "a.convert.cel:1:1: the expression is empty")
	long := "'" + strings.Repeat("a", MaxExpressionBytes) + "'"
	f(long, "a.convert.cel:1:1: the expression is too long: it has 65538 bytes, more than 65536\n  "+long[:160]+"\n  ^")
}

// FuzzExpression compiles and runs any text: no panic, and every mistake is at a
// place in the text.
func FuzzExpression(f *testing.F) {
	for _, code := range []string{
		"request.verb == 'get' && user.name in ['a']", "{'a': [1, 2.0, null]}", "[1].exists(x, x > 0)", "'a' +\n#", "request", "has(request.verb)",
		"upstream.serves('v1', 'pods') ? 1.5 : -1.0", "'ä' + 'ö' == ==", "object.?a[?1].orValue(2)", "optional.none()", "'a'.replace('a', 'bb', -1)", "['a'].join('b').lastIndexOf('a')", "sets.contains([1], [1, 1].distinct())", "quantity('1Gi').isGreaterThan(quantity('1'))",
	} {
		f.Add(code)
	}
	f.Fuzz(func(t *testing.T, code string) {
		if len(code) > 500 {
			t.Skip("long ones are slow and show no more")
		}
		text := textOf(code)
		if _, mistake := EvalConstant(text); mistake != nil {
			checkPlace(t, text, mistake)
		}
		for _, p := range []Policy{{Name: "a", Match: text, Warn: text}, {Name: "a", Deny: text}, {Name: "a", Route: text}} {
			set, err := Compile([]Policy{p})
			var mistakes source.Errors
			if errors.As(err, &mistakes) {
				for _, mistake := range mistakes {
					checkPlace(t, text, mistake)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			r, err := ParseRequest("POST", "/api/v1/namespaces/a/pods?a=b")
			if err != nil {
				t.Fatal(err)
			}
			d, err := set.Decide(&Input{Request: &r, Object: func() ([]byte, error) { return []byte(`{"a":[1,{"b":null}]}`), nil }})
			if err == nil {
				_, _, _ = d.Score(&Upstream{Name: "a"})
			}
		}
	})
}

func checkPlace(t *testing.T, text *source.Text, mistake *source.Error) {
	t.Helper()
	lines := strings.Split(text.Code, "\n")
	if mistake.Pos.Line < 1 || mistake.Pos.Line > len(lines) || mistake.Caret > len(lines[mistake.Pos.Line-1]) {
		t.Errorf("%q: the mistake is outside: %v", text.Code, mistake)
	}
}
