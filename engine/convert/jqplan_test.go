package convert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlanShapes says which programs are done on bytes, and which by gojq.
func TestPlanShapes(t *testing.T) {
	f := func(code string, planned bool) {
		t.Helper()
		c := mustCompile(t, jqSpec(code, ""))
		if got := c.request.isPlanned(); got != planned {
			t.Errorf("%s: has a plan: %v, wanted %v", code, got, planned)
		}
	}

	f(`.`, true)
	f(`.spec.a = 1`, true)
	f(`.apiVersion = "v2" | .kind = "New"`, true)
	f(`.spec["a.b/c"] = .spec.x."y z"`, true)
	f(`.spec.a //= {"b": [1, -2.5, null]}`, true)
	f(`.spec.a |= (.b = 1 | del(.c))`, true)
	f(`.spec.a |= tointeger`, true)
	f(`.spec.a |= (if . == "x" then "y" elif . == "z" then "w" else . end)`, true)
	f(`.spec.a |= ({"x": "y"}[.] // .)`, true)
	f(`del(.spec.a, .spec.b)`, true)
	f(`rename(.spec.a; .spec.b) | move(.x; .y.z)`, true)
	f(`mapvalue(.spec.a; "x"; "y") | ensure(.spec.n; 1)`, true)
	f(`.spec.x as $v | del(.spec.x) | .spec.y = $v`, true)
	f(`if .spec | has("a") | not then .spec.a = 1 end`, true)
	f(`.spec.list[] |= rename(.a; .b)`, true)
	f(`.spec.list[]?.a = $from`, true)
	f(`.spec.list |= map(select(.a != null and (.b or .c)))`, true)
	f(`(.spec.list[] | select(.name == "a") | .image) |= "x"`, true)
	f(`del(.spec.list[] | select(.name == "a"))`, true)
	f(`.spec.hosts = [.spec.host] | .spec.ref = {name: .spec.name, "kind": "K"} | .a = .spec.hosts[0]`, true)
	f(`if .spec.a then error("a is gone") else . end`, true)

	f(`"k" as $k | .a[$k] = 1 | del(.a[$k]) | if has($k) then .[$k].x = .b[$k] else . end`, true)
	f(`if any(.l[]?; .a == 1) or all(.m[]; .b) then .spec = 1 else . end`, true)
	f(`.l |= (if any(. == 1) then [{a: 1}] else . end)`, true)

	f(`.k as $k | .a[$k] = 1`, false)
	f(`.a[$from] = 1`, false)
	f(`if any(.l, .m; . == 1) then .spec = 1 else . end`, false)
	f(strings.Repeat("(", 600)+`.a = 1`+strings.Repeat(")", 600), false)
	f(`.spec.n += 1`, false)
	f(`.spec.a = $request.verb`, false)
	f(`.spec.a = (.spec.b, .spec.c)`, false)
	f(`.spec.a = "\(.spec.b)"`, false)
	f(`def f: .a; f`, false)
	f(`def move(p; q): .; move(.a; .b)`, false)
	f(`.spec |= with_entries(.)`, false)
	f(`.spec.list[0] = 1`, false)
	f(`.spec.list[1:] |= .`, false)
	f(`.spec[.name] = 1`, false)
	f(`{apiVersion, kind}`, false)
	f(`.spec`, false)
	f(`map(.) | {a: .}`, false)
	f(`del(.a, .a.b)`, false)
	f(`del(.list[].a, .list[].b)`, false)
	f(`. as {a: $v} | .b = $v`, false)
	f(`.spec.list[].a[]? |= 1`, false)
	f(`.spec.a = 100000000000000000000000`, true)
	f(`.spec.a = 1e400`, true)
	f(`.spec.a = 1e18`, false) // gojq makes a string of it that is not its JSON
}

// TestExamplePrograms holds that the programs of the examples are done on bytes. A table
// of package policies says which of the shipped ones are.
func TestExamplePrograms(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/*.jq")
	if err != nil || len(files) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := mustCompile(t, jqSpec(string(code), ""))
		if !c.request.isPlanned() || c.request.whole.needs.all {
			t.Errorf("%s: has a plan: %v, needs %v", file, c.request.isPlanned(), c.request.whole.needs)
		}
	}
}

// TestPlanFollows holds plans of programs as policies have them to doing the work: one that
// gives up on objects as clients send them costs more than none.
func TestPlanFollows(t *testing.T) {
	f := func(code, src, want string) {
		t.Helper()
		c := mustCompile(t, jqSpec(code, ""))
		d := newDoc()
		defer d.free()
		if err := d.parse([]byte(src)); err != nil {
			t.Fatal(err)
		}
		p := beginPlan(&run{d: d, at: root, of: c})
		defer p.end()
		if !c.request.isPlanned() || !p.follow(c.request.parts.first, root) {
			t.Errorf("%s gave up on %s", code, src)
		} else if got := string(d.appendTo(nil, root)); got != want {
			t.Errorf("%s\n got %s\nwant %s", code, got, want)
		}
	}

	f(`del(.a | select(. == null))`, `{"b":1}`, `{"b":1}`)
	f(`del(.a | select(. == null))`, `{"a":null,"b":1}`, `{"b":1}`)
	f(`del(.a.b | select(. == null or . == ""))`, `{"a":{"b":"x"}}`, `{"a":{"b":"x"}}`)
	f(`del(.a.b | select(. == null or . == ""))`, `{}`, `{}`)
	f(`.a |= map(del(.b | select(. == null)) | rename(.b; .c.b))`, `{"a":[{},{"b":1}]}`, `{"a":[{},{"c":{"b":1}}]}`)
}

// TestPlanBytes holds that a plan leaves the bytes that it does not name.
func TestPlanBytes(t *testing.T) {
	f := func(code, src, want string) {
		t.Helper()
		c := mustCompile(t, jqSpec(code, ""))
		if !c.request.isPlanned() {
			t.Errorf("%s has no plan", code)
			return
		}
		got, err := c.Object(nil, []byte(src), ToServer, nil)
		if err != nil || string(got) != want {
			t.Errorf("%s\n got %s, %v\nwant %s", code, got, err, want)
		}
	}

	const kept = `"z" :1.10, "\u0061b":[ 1e3,"\ud800" ]`
	f(`rename(.spec.a; .spec.b)`, `{"spec":{"a": {"n":1E2}, `+kept+`}}`, `{"spec":{"b": {"n":1E2}, `+kept+`}}`)
	f(`rename(.spec.a; .spec.b)`, `{"spec":{"b":1,"a":2,`+kept+`}}`, `{"spec":{"b":2,`+kept+`}}`)
	f(`del(.spec.a | select(. == null or . == ""))`, `{"spec":{"a":"",`+kept+`}}`, `{"spec":{`+kept+`}}`)
	f(`del(.spec.a | select(. == null or . == ""))`, `{"spec":{"a":1.0,`+kept+`}}`, `{"spec":{"a":1.0,`+kept+`}}`)
	f(`del(.spec.a | select(. == null))`, `{"spec":{`+kept+`}}`, `{"spec":{`+kept+`}}`)
	f(`move(.spec.a; .x.y)`, `{"spec":{"a":2,`+kept+`}}`, `{"spec":{`+kept+`},"x":{"y":2}}`)
	f(`.spec.a = .spec.z`, `{"spec":{"a":2,`+kept+`}}`, `{"spec":{"a":1.10,`+kept+`}}`)
	f(`.spec.a.b.c = "x"`, `{"spec":{"a":null,`+kept+`}}`, `{"spec":{"a":{"b":{"c":"x"}},`+kept+`}}`)
	f(`.spec.l[] |= (.x //= 0)`, `{"spec":{"l":[{"x":1.0}, {"y":-0},null],`+kept+`}}`, `{"spec":{"l":[{"x":1.0}, {"y":-0,"x":0},{"x":0}],`+kept+`}}`)
	f(`.spec.l |= map(select(.x))`, `{"spec":{"l":[{"x":1.0}, {"y":-0}, {"x":2.0}],`+kept+`}}`, `{"spec":{"l":[{"x":1.0}, {"x":2.0}],`+kept+`}}`)
	f(`.spec.r = {a: .spec.z, b: [$from, $to]}`, `{"spec":{`+kept+`}}`, `{"spec":{`+kept+`, "r":{"a":1.10,"b":["example.com/v1","example.com/v2"]}}}`)
	f(`.apiVersion = "x" | .metadata.uid = "x" | del(.kind)`,
		`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{ "uid":"1", "name":"a"}}`,
		`{"apiVersion":"example.com/v2","metadata":{ "uid":"1", "name":"a"},"kind":"Thing"}`)
	f(`.metadata.labels.a = .metadata.name | .metadata = {labels: .metadata.labels}`, `{"metadata":{"name":"n"}}`, `{"metadata":{"labels":{"a":"n"},"name":"n"}}`)
}

// TestPlanGivesUp holds that what fails in jq fails by jq's words, whatever a plan
// had done by then.
func TestPlanGivesUp(t *testing.T) {
	f := func(code, src, want string) {
		t.Helper()
		c := mustCompile(t, jqSpec(code, ""))
		if !c.request.isPlanned() {
			t.Errorf("%s has no plan", code)
			return
		}
		got, err := c.Object(nil, []byte(src), ToServer, nil)
		if err == nil || err.Error() != "p.request.jq:1:"+want {
			t.Errorf("%s\n got %s, %v\nwant %s", code, got, err, want)
		}
	}

	f(`.spec.a = 1 | .spec.b.c = 2`, `{"spec":{"b":"text"}}`,
		`15: policy jq: the program failed: setpath(["spec","b","c"]; 2) cannot be applied to {"spec":{"a":1,"b":"text"}}: expected an object but got: string ("text")`)
	f(`del(.spec.a.b)`, `{"spec":{"a":[]}}`, `1: policy jq: the program failed: expected an object but got: array ([])`)
	f(`.spec.l[] |= .x`, `{}`, `1: policy jq: the program failed: cannot iterate over: null`)
	f(`.spec.a |= tointeger`, `{"spec":{"a":"1e3"}}`, `1: policy jq: the program failed: cannot make an integer of "1e3"`)
	f(`.spec.x = 1 | if .spec.a then error("a is gone: " + "use b") else . end`, `{"spec":{"a":1}}`,
		`15: policy jq: the program failed: error: a is gone: use b`)
	f(strings.Repeat(`.spec = [.spec, .spec] | `, 24)+`.`, `{"spec":{"b":1}}`,
		`1: policy jq: cannot encode what the program returned: the value is too large`)

	// A plan that gives up where jq goes on.
	c := mustCompile(t, jqSpec(`.spec.x = 1 | (.spec.m[] | .y) = 2`, ""))
	got, err := c.Object(nil, []byte(`{"spec":{"m":{"k":{"z":1.10}}}}`), ToServer, nil)
	if want := `{"spec":{"m":{"k":{"z":1.10,"y":2}},"x":1}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

// TestNeeds says what of an object programs are given.
func TestNeeds(t *testing.T) {
	f := func(code, want string) {
		t.Helper()
		c := mustCompile(t, jqSpec(code, ""))
		if got := c.request.whole.needs.String(); got != want {
			t.Errorf("%s\n needs %s\nwanted %s", code, got, want)
		}
	}

	f(`.`, `{}`)
	f(`.spec.n += 1`, `{spec:{n:*}}`)
	f(`.spec.a = $request.verb`, `{spec:{a:*}}`)
	f(`.spec |= (.a = .b | del(.c))`, `{spec:{a:* b:* c:*}}`)
	f(`. as $o | .spec.a = $o.metadata.name`, `{metadata:{name:*} spec:{a:*}}`)
	f(`.spec.l[].x += 1`, `{spec:{l:*}}`)
	f(`if .spec.a then .spec.b += 1 elif .x == null then . else error(.y) end`, `{spec:{a:{} b:*} x:{} y:*}`)
	f(`select(.spec | has("a")) | .n = (.m | length)`, `{m:* n:* spec:{a:*}}`)
	f(`stash(.spec.a; "k") | .x = {a, b: .c, "d": 1}`, `{a:* c:* metadata:{annotations:*} spec:{a:*} x:*}`)
	f(`.x = [.a.b, (.c // .d), "\(.e)"] | del(.f, .g)`, `{a:{b:*} c:* d:* e:* f:* g:* x:*}`)
	f(`"k" as $k | .a[$k] += 1 | .b = has($k) | .c[.d[$k]] = 1`, `{a:{k:*} b:* c:* d:{k:*} k:*}`)
	f(`.x = any(.l[]?; .a == 1)`, `{l:* x:*}`)
	f(`. as {a: $v} | .b = $v`, `*`)
	f(`.spec | .`, `*`)
	f(`{apiVersion, kind}`, `*`)
	f(`.n = length`, `*`)
	f(`with_entries(.)`, `*`)
	f(`def f: .a; .b = f`, `*`)
	f(`.spec.a = ($request | .verb)`, `{spec:{a:*}}`)
	f(`try (.a.b += 1) catch .`, `*`)
	f(`(try .a.b catch null) as $x | .c = $x`, `{a:{b:*} c:*}`)
}

// String shows n in tests.
func (n *need) String() string {
	if n.all {
		return "*"
	}
	parts := []string{}
	for _, key := range n.keys() {
		parts = append(parts, key+":"+n.members[key].String())
	}
	return "{" + strings.Join(parts, " ") + "}"
}

// TestErrorPlaces says at which stage of a program an error is shown.
func TestErrorPlaces(t *testing.T) {
	f := func(code, want string) {
		t.Helper()
		c := mustCompile(t, jqSpec(code, ""))
		_, err := c.Object(nil, []byte(`{"spec":{"s":"x"}}`), ToServer, nil)
		if err == nil || !strings.HasPrefix(err.Error(), "p.request.jq:"+want+": policy jq: the program failed") {
			t.Errorf("%s\n got %v\nwant it at %s", code, err, want)
		}
	}

	f(`.spec.s.a`, "1:1")
	f(`.spec.s | .a`, "1:11")
	f("# first\n.spec.n = 1\n| # second | .\n  .spec.s.a = 1\n| .spec.n = 2", "4:3")
	f(`.spec.n += 1 | .spec.n |= (. + 1 | .a) | .`, "1:16")
	f(`.spec as $v | .x = $v.s.a | .`, "1:1")
	f(`. | .spec as $v | .x = $v.s.a | .`, "1:5")
	f(`def f: .a | .b; .spec.n = 1 | .spec.s | f`, "1:41")
	f(`if .spec | has("s") then . else . end | .spec.s |= error`, "1:41")
	f(`. | "\(.spec | .s.a)"`, "1:5")
}

// TestPlanAllocations holds that a plan allocates nothing for what it passes.
func TestPlanAllocations(t *testing.T) {
	c := mustCompile(t, benchSpec(plannedProgram))
	for _, size := range []int{1 << 10, 100 << 10} {
		src := benchObject(size)
		dst := make([]byte, 0, 2*len(src))
		allocations := testing.AllocsPerRun(100, func() {
			if _, err := c.Object(dst, src, ToServer, nil); err != nil {
				t.Fatal(err)
			}
		})
		if allocations > 4 {
			t.Errorf("%v allocations for %d bytes", allocations, len(src))
		}
	}
}
