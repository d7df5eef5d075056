package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Reports of kind 4 and where they are tested:
//
//	4.02 expression size           policies, and below
//	4.03 regular expressions       below
//	4.05 none or several results   engine/convert; proxy: nothing is sent
//	4.08 big numbers               engine/convert
//	4.09 loops and memory          engine/convert
//	4.10 error(null)               engine/convert
//	4.11 integers                  below
//	4.12 missing keys, no body     below; proxy: by verb

// decideOn decides on a request for pods by one policy.
func decideOn(t *testing.T, method, target string, body []byte, p Policy) (*Decision, error) {
	t.Helper()
	p.Name = "p"
	in := &Input{Request: mustParse(t, method, target)}
	if body != nil {
		in.Object = func() ([]byte, error) { return body, nil }
	}
	return mustCompile(t, p).Decide(in)
}

// An expression that is too long is refused before it is parsed.
func Test4_02_ExpressionSize(t *testing.T) {
	code := "'" + strings.Repeat("x", 50<<20) + "' == ''"
	allocated := testing.AllocsPerRun(1, func() {
		_, err := Compile([]Policy{{Name: "p", Match: textOf(code), Warn: textOf("'a'")}})
		if want := "the expression is too long: it has 52428808 bytes, more than 65536"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %.200v, want %s", err, want)
		}
	})
	if allocated > 1000 { // a parse makes millions
		t.Errorf("the refusal took %v allocations", allocated)
	}
}

// Both forms of matches are the same, on a text of a MiB, and neither compiles a
// constant pattern when it runs.
func Test4_03_RegularExpressions(t *testing.T) {
	body := []byte(`{"metadata":{"annotations":{"a":"` + strings.Repeat("ab", 512<<10) + `"}}}`)
	const text = `object.metadata.annotations.a`
	for _, pattern := range []string{"(ab)+$", "[a-q][^u-z]{13}x", "^b"} {
		var messages []string
		for _, form := range []string{"%s.matches('%s')", "matches(%s, '%s')"} {
			call := fmt.Sprintf(form, text, pattern)
			d, err := decideOn(t, "POST", "/api/v1/namespaces/d/pods", body, Policy{Deny: textOf(call + " ? 'yes' : 'no'")})
			if err != nil {
				t.Fatalf("%s: %v", call, err)
			}
			messages = append(messages, d.Denied.Message)

			v := newVars(&Input{Request: mustParse(t, "GET", "/api/v1/pods")})
			constant := mustCompile(t, Policy{Name: "p", Match: textOf(strings.Replace(call, text, "request.resource", 1)), Warn: textOf("'a'")}).policies[0].match
			if allocs := testing.AllocsPerRun(10, func() { _, _ = constant.holds(v) }); allocs > 5 { // to compile one takes dozens
				t.Errorf("%s: %v allocations in each evaluation", call, allocs)
			}
		}
		if messages[0] != messages[1] {
			t.Errorf("%s: the two forms say %q", pattern, messages)
		}

		// A pattern that comes with the request is refused in both forms alike.
		for _, form := range []string{"object.x.matches(object.re)", "matches(object.x, object.re)"} {
			_, err := Compile([]Policy{{Name: "p", Match: textOf(form), Warn: textOf("'a'")}})
			if err == nil || !strings.Contains(err.Error(), "the regular expression of matches must be written out as one text") {
				t.Errorf("%s: %v", form, err)
			}
		}
	}
}

// Integers in a body compare and compute with integer literals.
func Test4_11_Integers(t *testing.T) {
	for _, predicate := range []string{
		"object.spec.replicas == 3", "object.spec.replicas > 2", "object.spec.replicas < 4", "object.spec.replicas in [3, 4]",
		"object.spec.replicas % 2 == 1", "object.spec.replicas + 1 == 4", "object.spec.replicas == 3.0", "object.spec.replicas <= 3.5",
		"object.spec.ports.exists(p, p == 8080)", "object.spec.big == 9007199254740993", "int(object.metadata.resourceVersion) > 41",
		"object.spec.half == 0.5", "object.spec.one == 1",
	} {
		body := []byte(`{"metadata":{"resourceVersion":"42"},"spec":{"replicas":3,"ports":[80,8080],"big":9007199254740993,"half":0.5,"one":1.0}}`)
		d, err := decideOn(t, "POST", "/api/v1/namespaces/d/pods", body, Policy{Match: textOf(predicate), Deny: textOf("'yes'")})
		if err != nil || d.Denied == nil {
			t.Errorf("%s: %+v, %v", predicate, d, err)
		}
	}
}

// A missing key is an error with its place, the forms that allow for one are not, and
// a request without a body is not looked into.
func Test4_12_MissingKeys(t *testing.T) {
	const code = "object.spec.hostNetwork == true"
	for predicate, want := range map[string]string{
		code: "p.convert.cel:1:7: cannot evaluate match of policy \"p\" for create /v1 pods d/: no such key: spec",
		"has(object.spec) && has(object.spec.hostNetwork) && object.spec.hostNetwork": "",
		"object.?spec.?hostNetwork.orValue(false)":                                    "",
		"has(object.spec.hostNetwork)":                                                "p.convert.cel:1:11: cannot evaluate match of policy \"p\" for create /v1 pods d/: no such key: spec",
	} {
		d, err := decideOn(t, "POST", "/api/v1/namespaces/d/pods", []byte(`{"kind":"Pod"}`), Policy{Match: textOf(predicate), Deny: textOf("'no'")})
		var eval *EvalError
		switch {
		case want == "" && (err != nil || d.Denied != nil):
			t.Errorf("%s: %+v, %v", predicate, d, err)
		case want != "" && (!errors.As(err, &eval) || !strings.HasSuffix(err.Error(), want[strings.Index(want, "cannot"):])):
			t.Errorf("%s: %v, want %s", predicate, err, want)
		}
	}
	for _, r := range [][2]string{
		{"GET", "/api/v1/namespaces/d/pods/p"},
		{"GET", "/api/v1/pods"},
		{"GET", "/api/v1/pods?watch=1"},
		{"DELETE", "/api/v1/namespaces/d/pods/p"},
		{"DELETE", "/api/v1/namespaces/d/pods"},
		{"POST", "/api/v1/namespaces/d/pods/p/exec?command=a"},
	} {
		d, err := decideOn(t, r[0], r[1], nil, Policy{Match: textOf(code), Deny: textOf("'no'")})
		if err != nil || d.Denied != nil {
			t.Errorf("%s: %+v, %v", r, d, err)
		}
	}
}
