package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// A program has one meaning: that of gojq on what encoding/json decodes. Random
// programs on random objects hold the plan, and gojq on a part of the object, to
// it. Programs and objects are made of few names, so that they meet.

// jqKey writes a key of a path.
func (r dice) jqKey() string {
	return pick(r, ".a", ".a", ".b", ".b", ".c", ".list", ".n", `["x/y"]`, ".metadata.labels", ".metadata.annotations", ".metadata.name", ".apiVersion")
}

func (r dice) jqPath() string {
	path := ""
	for range 1 + r.IntN(3) {
		path += r.jqKey()
	}
	if path[0] == '[' {
		path = "." + path
	}
	return path
}

func (r dice) jqConstant() string {
	return pick(r, `"x"`, `"y"`, `"5"`, `""`, "null", "true", "false", "0", "5", "-1", "1.0", "1.50", "1e3", "12345678901234567890", "{}", "[]", `{"x":"y","k":[1,null]}`, "[1]", "$from", `"\u00e9\n"`)
}

// jqValue writes a term with one value.
func (r dice) jqValue(depth int) string {
	if depth == 0 {
		return pick(r, r.jqConstant(), r.jqPath(), ".")
	}
	depth--
	switch r.IntN(16) {
	case 0, 1:
		return r.jqConstant()
	case 2, 3:
		return r.jqPath()
	case 4:
		return r.jqCondition(depth)
	case 5:
		return fmt.Sprintf("(%s // %s)", r.jqValue(depth), r.jqValue(depth))
	case 6:
		return fmt.Sprintf("(%s | %s)", r.jqValue(depth), pick(r, "tostring", "tonumber", "tointeger", "type", "not", "error", ".[0]", ".[1]"))
	case 7:
		return fmt.Sprintf(`{"x": "y", "5": 6, "\u00e9\n": null}[%s]`, r.jqPath())
	case 8:
		return fmt.Sprintf(`{a: %s, %s}`, r.jqValue(depth), pick(r, "b", `"x/y"`, "b: ."))
	case 9:
		return fmt.Sprintf("[%s, %s]", r.jqValue(depth), r.jqValue(depth))
	case 10:
		return fmt.Sprintf("(if %s then %s %s end)", r.jqCondition(depth), r.jqValue(depth), pick(r, "", "else "+r.jqValue(depth), "elif .b then . else null"))
	case 11:
		return fmt.Sprintf("(%s | %s)", r.jqValue(depth), r.jqValue(depth))
	case 12:
		return fmt.Sprintf("(%s as $v | %s)", r.jqValue(depth), pick(r, "$v", "{a: $v}", "{$v}", "[$v, .]"))
	case 13:
		return fmt.Sprintf("(%s)", r.jqUpdate(depth))
	case 14:
		return r.jqPath() + "?"
	default:
		return pick(r, "(.list | length)", "(.n + 1)", `"\(.a)-x"`, "(.a, .b)", "empty", "[.list[]?]", "(. as {a: $q} | $q)", "(.a | keys)", "(. | tojson)", "(try .a.b catch .)", "-(.n)")
	}
}

func (r dice) jqCondition(depth int) string {
	if depth == 0 {
		return pick(r, r.jqPath(), fmt.Sprintf("(%s == %s)", r.jqPath(), r.jqConstant()), `has("a")`)
	}
	depth--
	switch r.IntN(10) {
	case 7:
		return fmt.Sprintf("%s(%s[]%s; %s)", pick(r, "any", "all"), pick(r, ".list", r.jqPath()), pick(r, "", "?"), r.jqCondition(depth))
	case 8:
		return fmt.Sprintf("(%s == %s)", r.jqPath(), r.jqPath())
	case 9:
		return fmt.Sprintf(`(%s as $k | %s | has($k))`, pick(r, `"a"`, `"b"`, ".n"), r.jqPath())
	case 0:
		return fmt.Sprintf("(%s | has(%s))", r.jqPath(), pick(r, `"a"`, `"b"`))
	case 1:
		return fmt.Sprintf("(%s | not)", r.jqCondition(depth))
	case 2:
		return fmt.Sprintf("(%s %s %s)", r.jqCondition(depth), pick(r, "and", "or"), r.jqCondition(depth))
	case 3:
		return fmt.Sprintf("(%s %s %s)", r.jqValue(depth), pick(r, "==", "!="), r.jqValue(depth))
	default:
		return r.jqCondition(0)
	}
}

// jqUpdate writes a term that changes its input.
func (r dice) jqUpdate(depth int) string {
	if depth == 0 {
		return pick(r, fmt.Sprintf("%s = %s", r.jqPath(), r.jqConstant()), fmt.Sprintf("del(%s)", r.jqPath()), ".")
	}
	depth--
	p, q := r.jqPath(), r.jqPath()
	switch r.IntN(22) {
	case 18:
		return fmt.Sprintf(`%s as $k | %s[$k] = %s`, pick(r, `"a"`, `"b"`, ".n"), p, r.jqValue(depth))
	case 19:
		return fmt.Sprintf(`"b" as $k | del(%s[$k]) | .n = %s[$k]`, p, q)
	case 0, 1:
		return fmt.Sprintf("%s = %s", p, r.jqValue(depth))
	case 2:
		return fmt.Sprintf("%s |= %s", p, r.jqValue(depth))
	case 3:
		return fmt.Sprintf("%s |= (%s)", p, r.jqUpdate(depth))
	case 4:
		return fmt.Sprintf("%s //= %s", p, r.jqValue(depth))
	case 5:
		return fmt.Sprintf("del(%s, %s)", p, q)
	case 6:
		return fmt.Sprintf("%s(%s; %s)", pick(r, "rename", "move"), p, q)
	case 7:
		return fmt.Sprintf("%s = %s | del(%s)", q, p, p)
	case 8:
		return fmt.Sprintf("mapvalue(%s; %s; %s)", p, r.jqConstant(), r.jqConstant())
	case 9:
		return fmt.Sprintf("ensure(%s; %s)", p, r.jqConstant())
	case 10:
		return fmt.Sprintf("if %s then %s else %s end", r.jqCondition(depth), r.jqUpdate(depth), r.jqUpdate(depth))
	case 11:
		return fmt.Sprintf("if %s then %s end", r.jqCondition(depth), r.jqUpdate(depth))
	case 12:
		return fmt.Sprintf("%s as $v | %s = $v", r.jqValue(depth), p)
	case 13:
		return fmt.Sprintf(".list |= %s(%s)", pick(r, "map", "map_values"), pick(r, r.jqUpdate(depth), fmt.Sprintf("select(%s)", r.jqCondition(depth)), r.jqValue(depth)))
	case 14:
		return fmt.Sprintf("(.list[]%s | select(%s) | %s) = %s", pick(r, "", "?"), r.jqCondition(depth), p, r.jqValue(depth))
	case 15:
		return fmt.Sprintf(".list[]%s |= (%s)", pick(r, "", "?"), r.jqUpdate(depth))
	case 16:
		return fmt.Sprintf("del(.list[]%s%s)", pick(r, "", "?"), pick(r, p, " | select("+r.jqCondition(depth)+")"))
	case 17:
		return pick(r, ".n += 1", ".a |= with_entries(.)", ".list |= reverse", "stash(.a; \"k\")", "unstash(.a; \"k\")", ". as $o | .b = $o.a.b",
			". as $o | .a |= $o.b", ".a |= empty", "select(.a)", "if .a == {} then del(.a) else . end", ".a |= (.b, .)", "del(.)", ".a.b += .c", "walk(.)", ". as {a: $q} | .b = $q",
			"with_entries(select(.key != \"a\"))", "{apiVersion, kind, metadata, a, b: {c: .b}}", "to_entries | from_entries", ".a[1:] = [1]", ".list[0].a = 1", "def f: .a; .b = f", "first(.)", "if .a then error(\"no\") else . end", "del(.list[1:])", ".a[\"b\", \"c\"] = 1", ". * {a: {b: 1}}")
	default:
		return fmt.Sprintf("%s | %s", r.jqUpdate(depth), r.jqUpdate(depth))
	}
}

// jsonText writes a random JSON value, as no encoder would.
func (r dice) jsonText(b *strings.Builder, depth int) {
	space := func() { b.WriteString(pick(r, "", "", "", " ", "\n\t")) }
	members := func(open, closing string, member func()) {
		b.WriteString(open)
		space()
		for i := range r.IntN(5) {
			if i > 0 {
				b.WriteByte(',')
				space()
			}
			member()
			space()
		}
		b.WriteString(closing)
	}
	n := r.IntN(10)
	switch {
	case n < 4 && depth > 0:
		members("{", "}", func() { r.jsonMember(b, pick(r, `"a"`, `"b"`, `"c"`, `"list"`, `"n"`, `"x\/y"`, `"\u0061"`), depth-1) })
	case n < 6 && depth > 0:
		members("[", "]", func() { r.jsonText(b, depth-1) })
	default:
		b.WriteString(pick(r, `"x"`, `"y"`, `"\u0078"`, `"5"`, `"1e3"`, `"-"`, `""`, `"\ud800"`, "\"\xff\xfe\"", `"é"`, `"\u00e9\n"`, `"\ud83d\ude00"`, "null", "null", "true", "false",
			"0", "5", "-0", "1.0", "1.50", "1e3", "1E+3", "-1", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "123456789012345678901234567890", "0.1", "1e400", "1000"))
	}
}

func (r dice) jsonMember(b *strings.Builder, key string, depth int) {
	b.WriteString(key + pick(r, ":", " : "))
	r.jsonText(b, depth)
}

// jsonObject writes an object as a client or server might send it.
func (r dice) jsonObject() []byte {
	var b strings.Builder
	b.WriteString(`{"apiVersion":"example.com/v1","kind":"Thing"`)
	if r.IntN(4) > 0 {
		b.WriteString(`,"metadata":` + pick(r, `{"name":"o","labels":{"a":"x"},"uid":"u"}`, `{"uid":"u", "annotations":null}`, `{}`, `null`, `{"annotations":{"k":"[1.50]"},"name":"o"}`))
	}
	for _, key := range []string{`"a"`, `"b"`, `"c"`, `"list"`, `"n"`, `"x/y"`, `"\u0062"`} {
		if r.IntN(3) > 0 {
			b.WriteByte(',')
			r.jsonMember(&b, key, 3)
		}
	}
	b.WriteByte('}')
	return []byte(b.String())
}

// patient are the limits of a machine that has other things to do.
var patient = Limits{JQTime: time.Minute}.withDefaults()

// programSpec is jqSpec with those.
func programSpec(code string) Spec {
	spec := jqSpec(code, "")
	spec.Limits = patient
	return spec
}

// referenceJQ is what src becomes by gojq on encoding/json.
func referenceJQ(t testing.TB, p *jqCode, src []byte, vars []any) (any, error) {
	t.Helper()
	out, err := p.run(plainDecoded(t, src), vars, patient)
	if err != nil {
		return nil, err
	}
	e := encoder{limit: 1 << 24}
	if err := e.value(out, 0); err != nil {
		t.Fatal(err)
	}
	return plainDecoded(t, e.dst), nil
}

func plainDecoded(t testing.TB, b []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return v
}

// planOutcome says what became of a random case.
type planOutcome struct{ planned, followed, projected bool }

// checkProgram checks one random program on one random object.
func checkProgram(t *testing.T, seed uint64) (outcome planOutcome) {
	t.Helper()
	r := newDice(seed)
	code := r.jqUpdate(3)
	c, errs := Compile(programSpec(code))
	if errs != nil {
		t.Fatalf("%s: %v", code, errs)
	}
	for range 4 {
		o := checkOnObject(t, c, code, r.jsonObject())
		outcome.planned = o.planned
		outcome.projected = o.projected
		outcome.followed = outcome.followed || o.followed
	}
	return outcome
}

func checkOnObject(t *testing.T, c *Converter, code string, src []byte) planOutcome {
	t.Helper()
	p := c.request
	d := newDoc()
	defer d.free()
	if err := d.parse(src); err != nil {
		t.Fatalf("%v in %s", err, src)
	}
	x := &run{c: c, of: c, d: d, at: root}
	want, wantErr := referenceJQ(t, p.whole, src, x.variables(nil))
	if errors.Is(wantErr, errPanicked) {
		return planOutcome{}
	}
	o := planOutcome{planned: p.isPlanned(), projected: !p.whole.needs.all}
	compare := func(how string) {
		got := d.bytes(root)
		if size := d.size(root); size != len(got) {
			t.Fatalf("%s was said to have %d bytes", got, size)
		}
		if wantErr != nil {
			t.Fatalf("%s\n   on %s\n%s made %s\nwant error %v", code, src, how, got, wantErr)
		}
		if !json.Valid(got) || !reflect.DeepEqual(plainDecoded(t, got), want) {
			t.Fatalf("%s\n   on %s\n%s made %s\nwant %v", code, src, how, got, want)
		}
	}
	done := false
	if p.parts != nil {
		var err error
		if done, err = x.inParts(p.parts, nil); err != nil {
			t.Fatalf("%s\n   on %s\n%v", code, src, err)
		}
	}
	if done {
		o.followed = true
		compare("the plan")
		if err := d.parse(src); err != nil {
			t.Fatal(err)
		}
	} else if got := d.bytes(root); !bytes.Equal(got, src) {
		t.Fatalf("%s\n   on %s\nthe plan was given up and left %s", code, src, got)
	}
	err := x.interpret(p.whole, nil)
	if errors.Is(err, errUncovered) {
		err = x.interpret(&jqCode{code: p.whole.code, needs: &wholeNeed}, nil)
	}
	switch {
	case err == nil:
		compare("gojq")
	case wantErr != nil && err.Error() != wantErr.Error():
		t.Fatalf("%s\n   on %s\n got error %v\nwant error %v", code, src, err, wantErr)
	case wantErr == nil:
		t.Fatalf("%s\n   on %s\n got error %v\nwant %v", code, src, err, want)
	}
	return o
}

// checkWhole checks that what surrounds the program, such as what it cannot
// change, does not depend on the way it ran.
func checkWhole(t *testing.T, seed uint64) {
	t.Helper()
	r := newDice(seed)
	code := r.jqUpdate(3)
	c := mustCompile(t, programSpec(code))
	slow := *c
	program := *c.request
	program.parts, program.whole = nil, &jqCode{code: program.whole.code, needs: &wholeNeed}
	slow.request = &program
	for range 2 {
		src := r.jsonObject()
		got, err := c.Object(nil, src, ToServer, nil)
		want, wantErr := slow.Object(nil, src, ToServer, nil)
		if errors.Is(wantErr, errPanicked) {
			continue
		}
		if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Fatalf("%s\n   on %s\n got error %v\nwant error %v", code, src, err, wantErr)
		}
		if err == nil && !reflect.DeepEqual(plainDecoded(t, got), plainDecoded(t, want)) {
			t.Fatalf("%s\n   on %s\n got %s\nwant %s", code, src, got, want)
		}
	}
}

func TestProgramProperty(t *testing.T) {
	var planned, followed, projected int
	for seed := range uint64(tries) {
		o := checkProgram(t, seed)
		checkWhole(t, seed)
		if o.planned {
			planned++
		}
		if o.followed {
			followed++
		}
		if o.projected {
			projected++
		}
	}
	t.Logf("of %d programs, %d had a plan, %d were done by it, %d needed a part of the object", tries, planned, followed, projected)
	if planned < tries/4 || followed < tries/8 || projected < tries/3 {
		t.Errorf("of %d programs, %d had a plan, %d were done by it, %d needed a part of the object: too few", tries, planned, followed, projected)
	}
}

func FuzzPlan(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		checkProgram(t, seed)
		checkWhole(t, seed)
	})
}
