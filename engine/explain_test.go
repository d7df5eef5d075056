package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// explained is an explanation as a few lines: the policy, why it does nothing, and
// the parts of its match.
func explained(all []Explanation) string {
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "%s %t: %s\n", e.Policy, e.Acts, strings.Join(e.Reasons, "; "))
		for _, p := range e.Match {
			fmt.Fprintf(&b, "%s%d:%d [%s] %s = %s %v\n", strings.Repeat("  ", p.Depth+1), p.Pos.Line, p.Pos.Col, p.Operator, p.Text, p.Value, p.Reads)
		}
	}
	return b.String()
}

// The parts of a predicate stand where they are written, and each has its value,
// also those that decide nothing.
func TestExplainParts(t *testing.T) {
	f := func(match, want string) {
		t.Helper()
		set := mustCompile(t, Policy{Name: "p", Match: &source.Text{Code: match, Start: source.Pos{File: "m", Line: 1, Col: 1}}, Warn: textOf("'w'")})
		all := set.Explain(&Input{
			Request: mustParse(t, "POST", "/api/v1/namespaces/d/pods"),
			Object:  func() ([]byte, error) { return []byte(`{"kind":"Pod","n":3,"l":["ä","b"]}`), nil },
		})
		if got := explained(all); got != strings.TrimPrefix(want, "\n") {
			t.Errorf("%s\n got %s\nwant %s", match, got, want)
		}
	}

	f(`request.verb == 'get'`, `
p false: its match is false
  1:1 [] request.verb == 'get' = false [{request.verb "create"}]
`)
	f(`  ((object.n == 3)) && (true || false)`, `
p true: 
  1:3 [&&] ((object.n == 3)) && (true || false) = true []
    1:5 [] object.n == 3 = true [{object.n 3}]
    1:25 [||] true || false = true []
      1:25 [] true = true []
      1:33 [] false = false []
`)
	f(`'ä' in object.l && object.x.y == 1 && request.namespace != ')&&('`, `
p false: its match fails: no such key: x
  1:1 [&&] 'ä' in object.l && object.x.y == 1 && request.namespace != ')&&(' = error: no such key: x []
    1:1 [] 'ä' in object.l = true [{object.l ["ä", "b"]}]
    1:21 [] object.x.y == 1 = error: no such key: x []
    1:40 [] request.namespace != ')&&(' = true [{request.namespace "d"}]
`)
	f(`has(object.n) ? !(object.n in [1, 2]) : {'a': 1}['a'] == 1`, `
p true: 
  1:1 [? :] has(object.n) ? !(object.n in [1, 2]) : {'a': 1}['a'] == 1 = true []
    1:1 [] has(object.n) = true []
    1:17 [!] !(object.n in [1, 2]) = true []
      1:19 [] object.n in [1, 2] = false [{object.n 3}]
    1:41 [] {'a': 1}['a'] == 1 = true []
`)
	f("// why\nrequest.dryRun // not\n  || object.l.exists(x, x == 'b')", `
p true: 
  2:1 [||] request.dryRun || object.l.exists(x, x == "b") = true []
    2:1 [] request.dryRun = false []
    3:6 [] object.l.exists(x, x == 'b') = true [{object.l ["ä", "b"]}]
`)
}

// Why a policy does nothing, for each reason that there is.
func TestExplainReasons(t *testing.T) {
	audited := Policy{Name: "60-audit", Warn: textOf("'a'"), Audit: true}
	set := mustCompile(t,
		Policy{Name: "05-other", Match: textOf("request.name == 'x' && object.kind == 'Pod'"), Warn: textOf("'w'")},
		Policy{Name: "10-first", Convert: conversion("v1beta1", "v1"), Match: textOf("true")},
		Policy{Name: "20-second", Convert: conversion("v1beta1", "v1")},
		Policy{Name: "30-alpha", Convert: conversion("v1alpha1", "v1")},
		Policy{Name: "40-quiet", Warn: textOf("''"), Deny: textOf("request.name == 'no' ? 'denied' : ''")},
		Policy{Name: "50-prefer", Prefer: &Preference{Group: "apps", Resource: "deployments"}},
		audited,
		Policy{Name: "70-user", Warn: textOf("user.name")},
	)
	f := func(target string, in Input, want string) {
		t.Helper()
		in.Request = mustParse(t, "GET", target)
		if got := explained(set.Explain(&in)); !strings.Contains(got, strings.TrimPrefix(want, "\n")) {
			t.Errorf("%s\n got %s\nwant %s", target, got, want)
		}
	}
	known := Input{User: func() (*User, error) { return &User{Name: "ann"}, nil }}
	f("/apis/example.com/v1beta1/widgets", known, `
10-first true: 
  1:1 [] true = true []
20-second false: the policy 10-first, which is before it, converts
30-alpha false: it is about example.com/v1alpha1 widgets; the version of the request is "v1beta1"
40-quiet false: its deny says nothing; its warn says nothing
50-prefer false: it prefers servers for apps/* deployments
60-audit true: 
70-user true: 
`)
	f("/apis/example.com/v1beta1/widgets/x", known, "05-other false: its match looks into the body, and the request has none\n")
	served := known
	served.Served = func(_, version, _ string) bool { return version == "v1beta1" }
	f("/apis/example.com/v1beta1/widgets", served,
		"20-second false: it converts only while no server serves example.com/v1beta1 widgets, and one does\n")
	f("/apis/example.com/v1/gadgets", known, `30-alpha false: it is about example.com/v1alpha1 widgets; the resource of the request is "gadgets"`)
	f("/healthz", known, "20-second false: it is about example.com/v1beta1 widgets; the request is for no resource\n")
	f("/api/v1/namespaces/d/pods/no", known, "40-quiet true: \n50-prefer false: it is not asked: the policy 40-quiet denies the request\n")
	f("/api/v1/pods", Input{}, "70-user false: its warn fails: "+errUserUnknown.Error()+"\n")
	f("/api/v1/pods", Input{Without: []int{7}}, "70-user false: it is passed over, since it failed on this request\n")
}

// What acts is what Decide says.
func TestExplainActs(t *testing.T) {
	set := mustCompile(t, manyPolicies(40)...)
	for _, target := range []string{"/api/v1/namespaces/a/pods", "/apis/example.com/v1beta1/widgets", "/healthz"} {
		in := Input{Request: mustParse(t, "GET", target)}
		d, err := set.Decide(&in)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range set.Explain(&in) {
			acts := slices.Contains(d.Indexes, i) || slices.ContainsFunc(d.Audited, func(a Audit) bool { return a.Index == i })
			if e.Index != i || e.Acts != acts || !acts && len(e.Reasons) == 0 {
				t.Errorf("%s: Explain says %+v, Decide that it acts: %t", target, e, acts)
			}
		}
	}
}

// What a Secret holds does not stand in an explanation.
func TestExplainSecret(t *testing.T) {
	set := mustCompile(t, Policy{Name: "p", Match: textOf("object.data.k == 'hunter'"), Warn: textOf("'w'")})
	in := Input{
		Request: mustParse(t, "POST", "/api/v1/namespaces/d/secrets"),
		Object:  func() ([]byte, error) { return []byte(`{"data":{"k":"hunter2"}}`), nil },
	}
	if got := explained(set.Explain(&in)); strings.Contains(got, "hunter2") || !strings.Contains(got, "{object.data.k not shown: the object is a Secret}") {
		t.Errorf("the explanation is %s", got)
	}
}
