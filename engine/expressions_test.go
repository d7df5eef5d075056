package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// takenApart is each expression on a line, with the values of its parts.
func takenApart(set *Set, all []Expression) string {
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "%s %s:", set.Policies()[e.Policy].Name, e.Role)
		for _, part := range e.Parts {
			fmt.Fprintf(&b, " %d[%s]%s=%s", part.Depth, part.Operator, part.Text, part.Value)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Only what is asked has values; a policy that denies ends the asking.
func TestEvaluated(t *testing.T) {
	text := func(code string) *source.Text {
		return &source.Text{Code: code, Start: source.Pos{File: "p", Line: 1, Col: 1}}
	}
	set := mustCompile(
		t,
		Policy{Name: "a", Match: text("request.verb == 'get' && true"), Deny: text("request.name == 'x' ? 'no' : ''"), Warn: text("'w'")},
		Policy{Name: "b", Route: text("upstream.name == 'u1'")},
		Policy{Name: "c", Match: text("true"), Convert: &convert.Spec{
			From: convert.Version{Version: "v1beta1", Resource: "pods"}, To: convert.Version{Version: "v1", Resource: "pods"},
		}},
		Policy{Name: "shipped", Origin: OriginLibrary, Warn: text("'s'")},
	)
	const apart = `
a match: 0[&&]request.verb == 'get' && true= 1[]request.verb == 'get'= 1[]true=true
a deny: 0[? :]request.name == 'x' ? 'no' : ''= 1[]request.name == 'x'= 1[]'no'="no" 1[]''=""
a warn: 0[]'w'="w"
b route: 0[]upstream.name == 'u1'=
c match: 0[]true=true
`
	if got := takenApart(set, set.Expressions()); got != apart[1:] {
		t.Errorf("got\n%s\nwant\n%s", got, apart[1:])
	}
	f := func(method, target, want string) {
		t.Helper()
		in := &Input{Request: mustParse(t, method, target)}
		got := takenApart(set, set.Evaluated(in, []*Upstream{{Name: "u1"}, {Name: "u2"}}))
		if got != want[1:] {
			t.Errorf("%s %s\n got\n%s\nwant\n%s", method, target, got, want[1:])
		}
	}

	f("POST", "/api/v1/namespaces/d/pods", `
a match: 0[&&]request.verb == 'get' && true=false 1[]request.verb == 'get'=false 1[]true=true
b route: 0[]upstream.name == 'u1'=true
b route: 0[]upstream.name == 'u1'=false
`)
	f("GET", "/api/v1/namespaces/d/pods/y", `
a match: 0[&&]request.verb == 'get' && true=true 1[]request.verb == 'get'=true 1[]true=true
a deny: 0[? :]request.name == 'x' ? 'no' : ''="" 1[]request.name == 'x'=false 1[]'no'="no" 1[]''=""
a warn: 0[]'w'="w"
b route: 0[]upstream.name == 'u1'=true
b route: 0[]upstream.name == 'u1'=false
`)
	f("GET", "/api/v1/namespaces/d/pods/x", `
a match: 0[&&]request.verb == 'get' && true=true 1[]request.verb == 'get'=true 1[]true=true
a deny: 0[? :]request.name == 'x' ? 'no' : ''="no" 1[]request.name == 'x'=true 1[]'no'="no" 1[]''=""
`)
	f("DELETE", "/api/v1beta1/namespaces/d/pods/y", `
a match: 0[&&]request.verb == 'get' && true=false 1[]request.verb == 'get'=false 1[]true=true
b route: 0[]upstream.name == 'u1'=true
b route: 0[]upstream.name == 'u1'=false
c match: 0[]true=true
`)
}
