package engine

import (
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Regular expressions with counted repetitions are as good as others.
func TestRegularExpressions(t *testing.T) {
	request, err := ParseRequest("GET", "/api/v1/namespaces/web-42/pods")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{
		`request.namespace.matches('^web-[0-9]{2}$') ? 'yes' : ''`,
		`matches(request.namespace, '[a-z]{2,5}-x{0,3}') ? 'yes' : ''`,
		`request.namespace.find('web-' + '[0-9]{2}') != '' ? 'yes' : ''`,
		`request.namespace.find('[0-9]{2}') == '42' ? 'yes' : ''`,
	} {
		set, err := Compile([]Policy{{Name: "p", Deny: &source.Text{Code: code, Start: source.Pos{File: "p", Line: 1, Col: 1}}}})
		if err != nil {
			t.Errorf("%s: %v", code, err)
			continue
		}
		d, err := set.Decide(&Input{Request: &request})
		if err != nil || d.Denied == nil {
			t.Errorf("%s decided %+v, %v", code, d, err)
		}
	}
}

// One that comes with a request has a limit.
func TestRegularExpressionOfARequest(t *testing.T) {
	request, err := ParseRequest("POST", "/api/v1/namespaces/d/pods")
	if err != nil {
		t.Fatal(err)
	}
	f := func(pattern, want string) {
		t.Helper()
		for _, code := range []string{`'x'.find(object.re) == 'x' ? 'yes' : ''`, `'x'.findAll(object.re).size() == 1 ? 'yes' : ''`} {
			set, err := Compile([]Policy{{Name: "p", Deny: &source.Text{Code: code, Start: source.Pos{File: "p", Line: 1, Col: 1}}}})
			if err != nil {
				t.Fatal(err)
			}
			d, err := set.Decide(&Input{Request: &request, Object: func() ([]byte, error) { return []byte(`{"re":"` + pattern + `"}`), nil }})
			if want == "" && (err != nil || d.Denied == nil) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s of %.20s decided %+v, %v, want %q", code, pattern, d, err, want)
			}
		}
	}

	f("x{1,3}", "")
	f(strings.Repeat("y{0,900}", 3)+"x", "the regular expression is too large")
	f(strings.Repeat("x", 2000), "the regular expression has 2000 bytes, more than 1024")
}

// What an operator sets is what counts, and what the message says.
func TestCompileWithLimits(t *testing.T) {
	at := source.Pos{File: "p", Line: 1, Col: 1}
	request, err := ParseRequest("POST", "/apis/acme.io/v1beta1/namespaces/d/things")
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"apiVersion":"acme.io/v1beta1","kind":"Thing","spec":{"l":[1,2,3,4,5,6,7,8,9]}}`)
	decide := func(policy Policy, limits Limits) (*Decision, error) {
		t.Helper()
		set, err := CompileWith([]Policy{policy}, limits)
		if err != nil {
			t.Fatal(err)
		}
		return set.Decide(&Input{Request: &request, Object: func() ([]byte, error) { return body, nil }})
	}

	loop := Policy{Name: "loop", Deny: &source.Text{Code: `object.spec.l.all(x, x > 0) ? '' : 'no'`, Start: at}}
	if _, err := decide(loop, Limits{}); err != nil {
		t.Errorf("within the default it failed: %v", err)
	}
	if _, err := decide(loop, Limits{ExpressionCost: 10}); err == nil || !strings.Contains(err.Error(), "more than 10 units of cost") {
		t.Errorf("above the cost it gave %v", err)
	}

	spec := convert.Spec{
		From:    convert.Version{Group: "acme.io", Version: "v1beta1", Resource: "things"},
		To:      convert.Version{Group: "acme.io", Version: "v1", Resource: "things"},
		Request: &source.Text{Code: `.spec.m = [.spec.l[]]`, Start: at},
	}
	program := Policy{Name: "program", Convert: &spec}
	f := func(limits convert.Limits, want string) {
		t.Helper()
		d, err := decide(program, Limits{Bodies: limits})
		if err != nil || d.Conversion == nil {
			t.Fatalf("decided %+v, %v", d, err)
		}
		_, err = d.Conversion.Object(nil, body, convert.ToServer, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("with %+v it gave %v, want %q", limits, err, want)
		}
	}

	f(convert.Limits{}, "")
	f(convert.Limits{JQOutputBytes: 50}, "the value is too large")
	f(convert.Limits{ObjectBytes: 50}, "the limit is 50")
	f(convert.Limits{JQTime: 1}, "the program took longer than 1ns")
}
