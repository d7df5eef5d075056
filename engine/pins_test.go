package engine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestPinsOf(t *testing.T) {
	names := map[int]string{varVerb: "verb", varGroup: "group", varVersion: "version", varResource: "resource", varNamespace: "namespace", varPath: "path", varUserAgent: "userAgent"}
	f := func(code, want string, whole bool) {
		t.Helper()
		match := mustCompile(t, Policy{Name: "a", Match: textOf(code), Warn: textOf("'a'")}).policies[0].match
		var got []string
		for _, p := range match.pins {
			got = append(got, names[p.variable]+"="+strings.Join(p.values, ","))
		}
		if strings.Join(got, " ") != want || match.whole != whole {
			t.Errorf("%s: pins %q, whole %v, want %q, %v", code, got, match.whole, want, whole)
		}
	}

	f(`request.resource == 'pods'`, "resource=pods", true)
	f(`'pods' == request.resource && request.verb in ['get', 'list']`, "resource=pods verb=get,list", true)
	f(`request.group == 'apps' && request.version == 'v1' && request.resource == 'deployments' && request.namespace == 'web'`,
		"group=apps version=v1 resource=deployments namespace=web", true)
	f(`request.resource == 'pods' && object.spec.hostNetwork`, "resource=pods", false)
	f(`object.spec.hostNetwork && request.resource == 'pods'`, "resource=pods", false)
	f(`request.resource == 'pods' || request.resource in ['nodes', 'pods']`, "resource=nodes,pods", true)
	f(`(request.resource == 'pods' && request.verb == 'get') || (request.resource == 'nodes' && request.verb == 'list')`,
		"resource=nodes,pods verb=get,list", false)
	f(`request.resource == 'pods' || request.verb == 'get'`, "", false)
	f(`request.resource == 'pods' || user.name == 'a'`, "", false)
	f(`request.resource == 'pods' && (request.verb == 'get' || user.name == 'a')`, "resource=pods", false)
	f(`request.resource == 'pods' && request.resource == 'nodes'`, "resource=", true)
	f(`request.path == '/healthz'`, "path=/healthz", true)
	f(`request.userAgent == 'x'`, "userAgent=x", true)

	// Anything else pins nothing.
	f(`!(request.resource == 'pods')`, "", false)
	f(`request.resource != 'pods'`, "", false)
	f(`request.resource == request.name`, "", false)
	f(`request.resource in ['pods', request.name]`, "", false)
	f(`request.resource.startsWith('p')`, "", false)
	f(`request.verb == 'get' ? request.resource == 'pods' : true`, "", false)
	f(`user.name == 'a'`, "", false)
	f(`request.dryRun == true`, "", false)
	f(`[{'resource': 'a'}].exists(request, request.resource == 'a')`, "", false)
	f(`true`, "", false)
}

// TestPinsAreSound makes predicates up and compares: a policy that the pins leave out
// would have said false, without an error, and one that they decide alone true.
func TestPinsAreSound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	var predicate func(depth int) string
	predicate = func(depth int) string {
		if depth == 0 || random.IntN(4) == 0 {
			variable := pick("request.resource", "request.verb", "request.group", "request.name")
			switch random.IntN(7) {
			case 0:
				return "user.name == 'a'" // an error
			case 1:
				return "object.x == 1" // an error, or silent
			case 2:
				return variable + " != 'a'"
			case 3:
				return fmt.Sprintf("%s in ['%s', '%s']", variable, pick("a", "b", "get"), pick("a", "c", "list"))
			case 4:
				return pick("true", "false")
			}
			return fmt.Sprintf("%s == '%s'", variable, pick("a", "b", "get", "list", ""))
		}
		switch random.IntN(6) {
		case 0:
			return "!(" + predicate(depth-1) + ")"
		case 1:
			return fmt.Sprintf("(%s ? %s : %s)", predicate(depth-1), predicate(depth-1), predicate(depth-1))
		}
		return fmt.Sprintf("(%s %s %s)", predicate(depth-1), pick("&&", "||"), predicate(depth-1))
	}
	var requests []*Request
	for _, group := range []string{"a", "b", ""} {
		for _, resource := range []string{"a", "b", "c"} {
			for _, name := range []string{"", "/a", "/get"} {
				target := "/api/v1/" + resource + name
				if group != "" {
					target = "/apis/" + group + "/v1/" + resource + name
				}
				requests = append(requests, mustParse(t, "GET", target))
			}
		}
	}
	pinned, whole := 0, 0
	for range 1500 {
		code := predicate(3)
		p := mustCompile(t, Policy{Name: "a", Match: textOf(code), Warn: textOf("'a'")}).policies[0]
		if len(p.pins) > 0 {
			pinned++
		}
		if p.match.whole {
			whole++
		}
		for _, r := range requests {
			v := newVars(&Input{Request: r})
			holds, err := p.match.holds(v)
			v.release()
			admits := p.pins.admits(r)
			if !admits && (holds || err != nil) || p.match.whole && (holds != admits || err != nil) {
				t.Fatalf("%s on %v: holds %v, %v; the pins %v admit it: %v, whole %v", code, r, holds, err, p.pins, admits, p.match.whole)
			}
		}
	}
	if pinned < 200 || whole < 50 {
		t.Errorf("only %d of the predicates had pins, %d nothing else", pinned, whole)
	}
}

// A policy stands where the fewest others do, and its others pins are compared there.
func TestIndexPlaces(t *testing.T) {
	var policies []Policy
	for i := range 100 {
		policies = append(policies, Policy{
			Name:  fmt.Sprintf("p%03d", i),
			Match: textOf(fmt.Sprintf("request.resource == 'pods' && request.group == '' && request.version == 'v1' && request.namespace == 'ns-%d'", i)),
			Warn:  textOf("'a'"),
		})
	}
	set := mustCompile(t, policies...)
	for target, want := range map[string]string{
		"/api/v1/namespaces/ns-42/pods":      "p042",
		"/api/v1/namespaces/ns-42/services":  "",
		"/api/v1/namespaces/ns-100/pods":     "",
		"/api/v2/namespaces/ns-42/pods":      "",
		"/apis/a/v1/namespaces/ns-42/pods/x": "",
	} {
		c := set.index.find(mustParse(t, "GET", target))
		n := 0
		for _, list := range c.lists[:c.n] {
			n += len(list)
		}
		got := ""
		if p := c.next(); p != nil {
			got = p.Name
		}
		if got != want || n > 1 || c.next() != nil {
			t.Errorf("%s: %q of %d candidates, want %q", target, got, n, want)
		}
	}
}
