package convert

import (
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

func jqSpec(request, response string) Spec {
	spec := Spec{
		Policy: "jq",
		From:   Version{Group: "example.com", Version: "v1", Kind: "Thing"},
		To:     Version{Group: "example.com", Version: "v2", Kind: "Thing"},
	}
	if request != "" {
		spec.Request = &source.Text{Code: request, Start: source.Pos{File: "p.request.jq", Line: 1, Col: 1}}
	}
	if response != "" {
		spec.Response = &source.Text{Code: response, Start: source.Pos{File: "p.response.jq", Line: 1, Col: 1}}
	}
	return spec
}

// TestJQ runs request programs on one object.
func TestJQ(t *testing.T) {
	f := func(program, spec, want string) {
		t.Helper()
		c, errs := Compile(jqSpec(program, ""))
		if errs != nil {
			t.Errorf("%s: %v", program, errs)
			return
		}
		src := `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a","uid":"1"},"spec":` + spec + `}`
		vars := &Vars{Request: map[string]any{"verb": "create", "query": map[string]any{"groups": []string{"a"}}}}
		got, err := c.Object(nil, []byte(src), ToServer, vars)
		if err != nil {
			if err.Error() != want {
				t.Errorf("%s\n got error %v\nwant %s", program, err, want)
			}
			return
		}
		want = `{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"a","uid":"1"},"spec":` + want + `}`
		if !sameJSON(t, got, []byte(want)) {
			t.Errorf("%s\n got %s\nwant %s", program, got, want)
		}
	}

	f(`.`, `{"n":1.10}`, `{"n":1.10}`)
	f(`rename(.spec.a; .spec.b)`, `{"a":null,"c":1}`, `{"b":null,"c":1}`)
	f(`rename(.spec.a; .spec.b)`, `{"c":1}`, `{"c":1}`)
	f(`move(.spec.a.x; .spec.b.y)`, `{"a":{"x":false}}`, `{"a":{},"b":{"y":false}}`)
	f(`move(.spec.a.x; .spec.b)`, `{"a":"text"}`, `{"a":"text"}`)
	f(`.spec.list[] |= rename(.a; .b)`, `{"list":[{"a":1},{"b":2}]}`, `{"list":[{"b":1},{"b":2}]}`)
	f(`mapvalue(.spec.a; "x"; "y")`, `{"a":"x"}`, `{"a":"y"}`)
	f(`mapvalue(.spec.a; null; "y")`, `{}`, `{}`)
	f(`ensure(.spec.a.b; 1)`, `{"a":null}`, `{"a":{"b":1}}`)
	f(`ensure(.spec.a; 1)`, `{"a":false}`, `{"a":false}`)
	f(`.spec.a |= tointeger`, `{"a":"9007199254740993"}`, `{"a":9007199254740993}`)
	f(`.spec.a |= tointeger`, `{"a":3.00}`, `{"a":3}`)
	f(`.spec.a |= tointeger`, `{"a":"x"}`, `p.request.jq:1:1: policy jq: the program failed: cannot make an integer of "x"`)
	f(`.spec.a |= tointeger`, `{"a":1e3}`, `{"a":1000}`)
	f(`.spec.a |= tointeger`, `{"a":"-7"}`, `{"a":-7}`)
	for _, a := range []string{`"1e3"`, `"3.0"`, `" 3"`, `"03"`, `"-0"`, `3.5`, `9223372036854775808`, `1e400`, `null`, `true`, `[3]`, `{}`} {
		// The + "" keeps it from being done without gojq.
		f(`.spec.a |= tointeger | .spec.b = "" + ""`, `{"a":`+a+`}`, `p.request.jq:1:1: policy jq: the program failed: cannot make an integer of `+a)
	}
	f(`.spec.n += 1`, `{"n":9007199254740992}`, `{"n":9007199254740993}`)
	f(`.spec.n *= 1000`, `{"n":3}`, `{"n":3000}`)
	f(`.spec.n -= 1`, `{"n":3}`, `{"n":2}`)
	f(`.spec.n = .spec.n * 1000`, `{"n":1e3}`, `{"n":1000000}`)
	f(`.spec.a = (.spec.l - ["x"])`, `{"l":["x","y"]}`, `{"a":["y"],"l":["x","y"]}`)
	f(`.spec.l[.spec.i] = 1`, `{"l":[0,0],"i":1}`, `{"i":1,"l":[0,1]}`)
	f(`.spec = {v: $request.verb, g: $request.query.groups[0], $from, $to}`, `{}`,
		`{"from":"example.com/v1","g":"a","to":"example.com/v2","v":"create"}`)
	f(`.metadata.name = "b" | .metadata.uid = "2" | .metadata.finalizers = ["x"] | .apiVersion = "x" | .kind = "y"`, `{}`, `{}`)
	f(`del(.metadata)`, `{}`, `{}`)
	f(`del(.apiVersion, .kind)`, `{}`, `{}`)
	f(`stash(.spec.a; "k") | unstash(.spec.a; "k")`, `{"a":[1.50]}`, `{"a":[1.50]}`)
	f(`.spec.s |= split(",")`, `{"s":"a,b"}`, `{"s":["a","b"]}`)
	f(`if .spec.s | contains("a") then .spec.s = "b" else . end`, `{"s":"a"}`, `{"s":"b"}`)
	f(`def f(g): g; f(.)`, `{}`, `{}`)

	const at = `p.request.jq:1:1: policy jq: `
	f(`.spec.a // empty`, `{}`, at+`the program returned nothing, wanted one object`)
	f(`., (.spec.a // .)`, `{}`, at+`the program returned more than one value, wanted one object`)
	f(`.spec.a // "text"`, `{}`, at+`the program returned a string, wanted one object`)
	f(`.spec.a // null`, `{}`, at+`the program returned null, wanted one object`)
	f(`.spec.a // [.]`, `{}`, at+`the program returned an array, wanted one object`)
	f(`error(null)`, `{}`, at+`the program failed: error: null`)
	f(`., error("x")`, `{}`, at+`the program failed: error: x`)
	f(`.metadata = 1`, `{}`, at+`the program made metadata 1, wanted an object`)
	f(`.spec.s * .spec.n | .`, `{"s":"x","n":1000000000}`, at+`the program failed: a string cannot be multiplied here`)
	f(`.spec.s *= 1000`, `{"s":"x"}`, at+`the program failed: a string cannot be multiplied here`)
	f(`.spec.l[.spec.n] = 1`, `{"l":[],"n":100000000}`, at+`the program failed: array index 100000000 is over the limit of 10000`)
	f(`setpath(["spec","l",.spec.n]; 1)`, `{"l":[],"n":1e8}`, at+`the program failed: array index 1e8 is over the limit of 10000`)
	f(`getpath(["spec","l",.spec.n]) = 1`, `{"l":[],"n":1e8}`, at+`the program failed: array index 1e8 is over the limit of 10000`)
	f(`.spec = ([.spec.l[] as $a | .spec.l[] as $b | .spec.l[] as $c | select($a == 1)] | length)`,
		`{"l":[`+strings.Repeat("0,", 300)+`0]}`,
		at+`the program took longer than 250ms: context deadline exceeded`)
	f(`.spec = ([.,.]|[.,.]|[.,.]|[.,.]|[.,.]|[.,.]|[.,.]|[.,.]|[.,.]|[.,.]|[.,.]|[.,.]|[.,.]|[.,.]|[.,.]|[.,.]|[.,.]|[.,.]|[.,.]|[.,.])`, `{"s":"xxxxxxxxxxxxxxxxx"}`,
		at+`cannot encode what the program returned: the value is too large`)
}

// TestJQMistakes compiles programs that must not run.
func TestJQMistakes(t *testing.T) {
	f := func(program, want string) {
		t.Helper()
		_, errs := Compile(jqSpec(program, ""))
		if got := errs.Error(); got != want {
			t.Errorf("%s\n got %s\nwant %s", program, got, want)
		}
	}

	f(".spec |", "p.request.jq:1:8: unexpected end of the jq program\n  .spec |\n         ^")
	f(".spec | }", "p.request.jq:1:9: cannot parse the jq program: unexpected token \"}\"\n  .spec | }\n          ^")
	f("# rename\n.spec |= renam(.a; .b)",
		"p.request.jq:2:10: function not defined: renam/2; did you mean \"rename\"?\n  .spec |= renam(.a; .b)\n           ^")
	f("rename(.a)", "p.request.jq:1:1: function not defined: rename/1; rename takes 2 arguments\n  rename(.a)\n  ^")
	f(".a = $reqest.verb", "p.request.jq:1:6: variable not defined: $reqest; did you mean \"$request\"?\n  .a = $reqest.verb\n       ^")
	f(`.test = test("x")`,
		"p.request.jq:1:9: test/1 cannot be used here: a regular expression cannot be interrupted; use startswith, endswith, split, ltrimstr or contains\n  .test = test(\"x\")\n          ^")
	f(`{now: 1, b: "\(now)"}`,
		"p.request.jq:1:16: now/0 cannot be used here: the same object must always convert alike\n  {now: 1, b: \"\\(now)\"}\n                 ^")
	f("def f: f; f", "p.request.jq:1:8: f/0 calls itself and may not end; use map or walk\n  def f: f; f\n         ^")
	f("def f: def g: f; g; f", "p.request.jq:1:15: f/0 calls itself and may not end; use map or walk\n  def f: def g: f; g; f\n                ^")
	f(`.spec.l as $l | reduce $l[] as $x (.; {a: ., b: .}) | tojson`, "p.request.jq:1:17: reduce cannot be used here: a client's list would decide how large a value grows; use map, add, any, all, min_by or group_by\n  .spec.l as $l | reduce $l[] as $x (.; {a: ., b: .}) | tojson\n                  ^")
	f(`[foreach .spec.l[] as $x (0; . + $x)]`, "p.request.jq:1:2: foreach cannot be used here: a client's list would decide how large a value grows; use map, add, any, all, min_by or group_by\n  [foreach .spec.l[] as $x (0; . + $x)]\n   ^")
	f("$ENV.PATH", "p.request.jq:1:1: $ENV cannot be used here: a conversion has no environment\n  $ENV.PATH\n  ^")
	f("_guard_index", "p.request.jq:1:1: function not defined: _guard_index/0\n  _guard_index\n  ^")
	f(`import "a" as a; .`, "p.request.jq:1:1: modules cannot be used here; write the functions into the program\n  import \"a\" as a; .\n  ^")
	f(`.a | @nope`, "p.request.jq:1:6: format not defined: @nope; known are @text, @json, @html, @uri, @urid, @csv, @tsv, @sh, @base64, @base64d\n  .a | @nope\n       ^")
	f("[range(1e9)] | input",
		"p.request.jq:1:2: range/1 cannot be used here: it can run without end; use the object's own arrays, to_entries, map or add\n  [range(1e9)] | input\n   ^\n"+
			"p.request.jq:1:16: input/0 cannot be used here: a conversion has one input, the object\n  [range(1e9)] | input\n                 ^")
}
