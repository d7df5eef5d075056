package engine

import (
	"fmt"
	"testing"
)

// BenchmarkPredicate evaluates one match whose variables were read before.
func BenchmarkPredicate(b *testing.B) {
	for _, tt := range []struct{ name, target string }{
		{"holds", "/apis/apps/v1/namespaces/web/deployments"},
		{"fails", "/apis/batch/v1/namespaces/web/jobs"},
	} {
		b.Run(tt.name, func(b *testing.B) {
			set := mustCompile(b, Policy{
				Name:  "a",
				Match: textOf("request.verb == 'create' && request.group == 'apps' && request.resource in ['deployments']"),
				Warn:  textOf("'a'"),
			})
			v := newVars(&Input{Request: mustParse(b, "POST", tt.target)})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := set.policies[0].match.holds(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPredicateAtLimit takes as long as an expression can before the cost
// limit stops it.
func BenchmarkPredicateAtLimit(b *testing.B) {
	list := "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
	code := fmt.Sprintf("%[1]s.all(a, %[1]s.all(b, %[1]s.all(c, %[1]s.all(d, %[1]s.all(e, %[1]s.all(f, a + b + c + d + e + f >= 0))))))", list)
	set := mustCompile(b, Policy{Name: "a", Match: textOf(code), Warn: textOf("'a'")})
	in := &Input{Request: mustParse(b, "GET", "/api/v1/pods")}
	for b.Loop() {
		if _, err := set.Decide(in); err == nil {
			b.Fatal("the limit was not met")
		}
	}
}

// BenchmarkDecide decides on a request with one policy that applies, among many
// for other resources. What grows with their number is the time of two look-ups
// in maps, and that of the garbage collector, which has more to go through for
// what a decision allocates: GOGC=off tells the two apart.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{0, 25, 2500} { // resources; four policies each
		b.Run(fmt.Sprintf("policies=%d", 4*n+1), func(b *testing.B) {
			set := mustCompile(b, append(manyPolicies(n), Policy{Name: "z", Match: textOf("request.verb == 'get' && request.resource == 'pods'"), Warn: textOf("'a'")})...)
			in := &Input{Request: mustParse(b, "GET", "/api/v1/namespaces/web/pods/a")}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := set.Decide(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParseRequest(b *testing.B) {
	for _, target := range []string{
		"/apis/apps/v1/namespaces/web/deployments/shop",
		"/api/v1/namespaces/web/pods?watch=1&resourceVersion=12345&allowWatchBookmarks=true",
	} {
		b.Run(target[:12], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseRequest("GET", target); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// scale are how many policies a cluster may have.
var scale = []int{1, 100, 10_000}

// policiesForPods returns n policies of which one is about pods in the namespace web;
// half of the others are about pods elsewhere.
func policiesForPods(n int) []Policy {
	policies := []Policy{{Name: "z", Match: textOf("request.verb == 'get' && request.resource == 'pods' && request.namespace == 'web' && !request.name.startsWith('x')"), Warn: textOf("'a'")}}
	for i := 1; i < n; i++ {
		code := fmt.Sprintf("request.resource == 'things%d' && request.verb in ['create', 'update'] && object.spec.a == 1", i)
		if i%2 == 0 {
			code = fmt.Sprintf("request.resource == 'pods' && request.namespace == 'ns-%d' && request.verb != 'get'", i)
		}
		policies = append(policies, Policy{Name: fmt.Sprintf("%05d", i), Match: textOf(code), Deny: textOf("'no'")})
	}
	return policies
}

// BenchmarkPolicies decides on a request that one policy is about, and on one that
// none is, in a set of n.
func BenchmarkPolicies(b *testing.B) {
	for _, n := range scale {
		set := mustCompile(b, policiesForPods(n)...)
		for _, tt := range []struct{ name, target string }{
			{"one applies", "/api/v1/namespaces/web/pods/a"}, {"none applies", "/api/v1/namespaces/other/pods/a"},
		} {
			b.Run(fmt.Sprintf("%s/policies=%d", tt.name, n), func(b *testing.B) {
				in := &Input{Request: mustParse(b, "GET", tt.target)}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := set.Decide(in); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkCompile compiles n policies, of two expressions each.
func BenchmarkCompile(b *testing.B) {
	for _, n := range scale {
		b.Run(fmt.Sprintf("policies=%d", n), func(b *testing.B) {
			policies := policiesForPods(n)
			b.ReportAllocs()
			for b.Loop() {
				mustCompile(b, policies...)
			}
		})
	}
}
