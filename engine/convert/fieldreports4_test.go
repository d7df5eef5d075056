package convert

import (
	"errors"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// programConverter has program for the way to the server; err is why it does not
// compile.
func programConverter(program string, limits Limits) (*Converter, error) {
	v := func(version string) Version {
		return Version{Group: "acme.io", Version: version, Resource: "things", Kind: "Thing"}
	}
	c, errs := Compile(Spec{
		Policy: "p", From: v("v1beta1"), To: v("v1"), Limits: limits,
		Request: &source.Text{Code: program, Start: source.Pos{File: "p.request.jq", Line: 1, Col: 1}},
	})
	return c, errs.Err()
}

// runProgram runs program on a Thing with the members in spec.
func runProgram(t *testing.T, program, spec string, limits Limits) (string, error) {
	t.Helper()
	c, err := programConverter(program, limits)
	if err != nil {
		t.Fatalf("%s: %v", program, err)
	}
	out, err := c.Object(nil, []byte(`{"apiVersion":"acme.io/v1beta1","kind":"Thing","spec":`+spec+`}`), ToServer, nil)
	return string(out), err
}

// Anything but exactly one object is the policy's failure, and nothing comes out: at load
// where no input can change that, else on the object.
func Test4_05_ResultsOfAProgram(t *testing.T) {
	for program, want := range map[string]string{
		`empty`:         "the program never makes anything: it must make one object",
		`select(false)`: "the program never makes anything: it must make one object",
		`., .`:          "the program always makes more than one value: it must make one object",
		`"text"`:        "the program always makes a string: it must make one object",
		`null`:          "the program always makes null: it must make one object",
		`[.]`:           "the program always makes an array: it must make one object",
	} {
		if _, err := programConverter(program, Limits{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", program, err, want)
		}
	}
	for program, want := range map[string]string{
		`if .spec.x then . else empty end`: "the program returned nothing, wanted one object",
		`select(.spec.x)`:                  "the program returned nothing, wanted one object",
		`., (.spec | select(.n))`:          "the program returned more than one value, wanted one object",
		`.spec.x // "text"`:                "the program returned a string, wanted one object",
		`.spec.x`:                          "the program returned null, wanted one object",
		`.spec.x // [.]`:                   "the program returned an array, wanted one object",
		`.spec.n`:                          "the program returned a number, wanted one object",
		`error("no")`:                      "the program failed: error: no",
	} {
		out, err := runProgram(t, program, `{"n":1}`, Limits{})
		var failed *Error
		if !errors.As(err, &failed) || failed.Invalid || out != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v, want %s", program, out, err, want)
		}
	}
}

// Numbers are exact, also where a program computes, and keep a form that a server
// accepts.
func Test4_08_BigNumbers(t *testing.T) {
	for _, tt := range []struct{ program, spec, want string }{
		{`.spec.n += 1`, `{"n":9007199254740992}`, `"n":9007199254740993`},
		{`.spec.n = .spec.n - 10`, `{"n":13911860366432393}`, `"n":13911860366432383`},
		{`.spec.n *= 10`, `{"n":12345678901234567890}`, `"n":123456789012345678900`},
		{`.spec.m = .spec.n`, `{"n":1e3}`, `"m":1e3`},
		{`.spec.m = 1`, `{"n":1.0}`, `"n":1.0`},
		{`.spec.m = 1`, `{"n":0.1}`, `"n":0.1`},
		{`.spec.m = 1`, `{"n":-0}`, `"n":-0`},
		{`.spec.m = 1`, `{"n":100000000000000000000000000001}`, `"n":100000000000000000000000000001`},
		{`.spec |= with_entries(.key += "x")`, `{"n":12345678901234567890}`, `"nx":12345678901234567890`},
	} {
		out, err := runProgram(t, tt.program, tt.spec, Limits{})
		if err != nil || !strings.Contains(out, tt.want) {
			t.Errorf("%s on %s: %s, %v, want %s", tt.program, tt.spec, out, err, tt.want)
		}
	}
}

// What does not end is refused at load. Where that is lifted, the limits of time and
// size end it.
func Test4_09_Loops(t *testing.T) {
	const refused = "cannot be used here"
	for program, want := range map[string]string{
		`.spec.l = [range(1e9)]`:                           refused,
		`def f: f; f`:                                      "f/0 calls itself and may not end",
		`def f: 1 + f; .spec.n = f`:                        "f/0 calls itself and may not end",
		`last(repeat(.))`:                                  refused,
		`.spec.l = [limit(1e8; repeat(0))]`:                refused,
		`.spec.a |= ([range(1e7)] | tojson)`:               refused,
		`.spec.n | until(. > 6; . - 1)`:                    refused,
		`.spec.n |= last(recurse(. + 1))`:                  refused,
		`.spec.n = (reduce range(1e9) as $x (0; . + $x))`:  refused,
		`.spec.n = [foreach range(1e9) as $x (0; . + $x)]`: refused,
	} {
		if _, err := programConverter(program, Limits{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", program, err, want)
		}
		out, err := runProgram(t, program, `{"n":1}`, Limits{UnboundedJQ: true, JQTime: MaxJQTime / 5})
		if err == nil || out != "" || !strings.Contains(err.Error(), "the program took longer than 50ms") {
			t.Errorf("%s, unbounded: %.100q, %.200v", program, out, err)
		}
	}

	// A string is not multiplied and an array not filled up, bounded or not.
	for program, want := range map[string]string{
		`.spec.s = "x" * 1e9`:    "a string cannot be multiplied here",
		`.spec.l[.spec.big] = 1`: "over the limit of 10000",
	} {
		for _, limits := range []Limits{{}, {UnboundedJQ: true}} {
			if _, err := runProgram(t, program, `{"big":1000000000}`, limits); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s with %+v: %v, want %s", program, limits, err, want)
			}
		}
	}

	// What cannot be bounded may end, of course, and then it is a program like others.
	for program, want := range map[string]string{
		`.spec.s |= gsub("a+"; "b")`:                              `"s":"xbyb"`,
		`.spec.sum = (reduce range(5) as $x (0; . + $x))`:         `"sum":10`,
		`def f: if . > 9 then . else . + 1 | f end; .spec.n |= f`: `"n":10`,
		`.spec.l = [foreach (1, 2) as $x (0; . + $x; [$x, .])]`:   `"l":[[1,1],[2,3]]`,
		`.spec.n |= until(. > 6; . + 1)`:                          `"n":7`,
	} {
		if out, err := runProgram(t, program, `{"s":"xaaya","n":1}`, Limits{UnboundedJQ: true}); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s, unbounded: %s, %v, want %s", program, out, err, want)
		}
	}

	// What is outside of the object stays outside, and mistakes stay mistakes.
	for program, want := range map[string]string{
		`.spec.e = env`:       refused,
		`.spec.e = $ENV.HOME`: refused,
		`.spec.t = now`:       refused,
		`.spec.i = input`:     refused,
		`debug`:               refused,
		`.spec.x = rangee(3)`: "function not defined: rangee/1",
		`.spec |`:             "unexpected end of the jq program",
	} {
		if _, err := programConverter(program, Limits{UnboundedJQ: true}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s, unbounded: %v, want %s", program, err, want)
		}
	}
}

// An error without a message, or with null, is an error.
func Test4_10_ErrorNull(t *testing.T) {
	const spec = `{"n":1}`
	for _, program := range []string{
		`if .spec.x then . else error(null) end`, `error(null)`, `null | error`, `.spec.n = error(null)`, `.spec.n |= error(null)`,
	} {
		out, err := runProgram(t, program, spec, Limits{})
		if err == nil || out != "" || !strings.Contains(err.Error(), "the program failed") {
			t.Errorf("%s: %q, %v", program, out, err)
		}
	}
	if out, err := runProgram(t, `if .spec.n then . else error(null) end`, spec, Limits{}); err != nil || !strings.Contains(out, spec) {
		t.Errorf("the branch without the error: %q, %v", out, err)
	}
}
