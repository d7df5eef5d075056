package engine

import (
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// named gives a conversion rules that leave a trace of it.
func named(name, from, to string, match string) Policy {
	spec := conversion(from, to)
	spec.Rules = []convert.Rule{{Action: convert.Rename, Path: "spec." + from, TargetPath: "spec." + to}}
	p := Policy{Name: name, Convert: spec}
	if match != "" {
		p.Match = textOf(match)
	}
	return p
}

func TestChains(t *testing.T) {
	audited := named("b", "v2", "v3", "")
	audited.Audit = true
	programmed := named("a", "v1", "v2", "")
	programmed.Convert.Request = textOf(".")
	always := named("a", "v1", "v2", "")
	always.When = WhenAlways
	tests := []struct {
		name     string
		policies []Policy
		served   string // by servers that are healthy; "-" before those of the others
		want     string // the path of versions; "" for no conversion
	}{
		{"the next version is served", []Policy{named("a", "v1", "v2", ""), named("b", "v2", "v3", "")}, "v2 v3", "v1 v2"},
		{"over a version that is gone", []Policy{named("a", "v1", "v2", ""), named("b", "v2", "v3", "")}, "v3", "v1 v2 v3"},
		{"in any order of the policies", []Policy{named("b", "v1", "v2", ""), named("a", "v2", "v3", "")}, "v3", "v1 v2 v3"},
		{"over two", []Policy{named("a", "v1", "v2", ""), named("b", "v2", "v3", ""), named("c", "v3", "v4", "")}, "v4", "v1 v2 v3 v4"},
		{"to the nearest", []Policy{named("a", "v1", "v2", ""), named("b", "v2", "v3", ""), named("c", "v3", "v4", "")}, "v3 v4", "v1 v2 v3"},
		{"nothing is served", []Policy{named("a", "v1", "v2", ""), named("b", "v2", "v3", "")}, "", "v1 v2"},
		{"nobody has it", []Policy{named("a", "v1", "v2", ""), named("b", "v2", "v3", "")}, "v4 -", ""},
		{"nobody has it, always", []Policy{always}, "v1 -", ""},
		{"its server is down", []Policy{named("a", "v1", "v2", ""), named("b", "v2", "v3", "")}, "v4 - v3", "v1 v2 v3"},
		{"two servers are down", []Policy{named("a", "v1", "v2", ""), named("b", "v2", "v3", "")}, "- v2 v3", "v1 v2"},
		{"the nearer one is down", []Policy{named("a", "v1", "v2", ""), named("b", "v2", "v3", "")}, "v3 - v2", "v1 v2 v3"},
		{"the client's own server is down", []Policy{named("a", "v1", "v2", "")}, "v2 - v1", "v1 v2"},
		{"the client's own is served", []Policy{named("a", "v1", "v2", ""), named("b", "v2", "v3", "")}, "v1", ""},
		{"always", []Policy{always, named("b", "v2", "v3", "")}, "v1 v3", "v1 v2 v3"},
		{"there and back", []Policy{named("a", "v1", "v2", ""), named("b", "v2", "v1", "")}, "", "v1 v2"},
		{"a ring", []Policy{named("a", "v1", "v2", ""), named("b", "v2", "v3", ""), named("c", "v3", "v1", "")}, "v3", "v1 v2 v3"},
		{"the second is for some requests only", []Policy{named("a", "v1", "v2", ""), named("b", "v2", "v3", "request.verb == 'get'")}, "v3", "v1 v2"},
		{"the second only looks", []Policy{named("a", "v1", "v2", ""), audited}, "v3", "v1 v2"},
		{"a program before rules", []Policy{programmed, named("b", "v2", "v3", "")}, "v3", "v1 v2 v3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := mustCompile(t, tt.policies...).WithSchemas(func(convert.Version) convert.Schema { return nil })
			in := &Input{Request: mustParse(t, "GET", "/apis/example.com/v1/namespaces/a/widgets/w")}
			healthy, down, downKnown := strings.Cut(" "+tt.served+" ", "-")
			in.Served = func(_, version, _ string) bool { return strings.Contains(healthy, " "+version+" ") }
			if downKnown {
				in.Known = func(_, version, _ string) bool { return strings.Contains(healthy+down, " "+version+" ") }
			}
			d, err := set.Decide(in)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if c := d.Conversion; c != nil {
				got = pathOf(c)
				checkTrace(t, c)
			}
			if got != tt.want {
				t.Errorf("converted %s, want %s", got, tt.want)
			}
		})
	}
}

func pathOf(c *Conversion) string {
	path := c.From.Version
	for _, v := range c.Via {
		path += " " + v.Version
	}
	return path + " " + c.To.Version
}

// checkTrace checks that c ran every rule between its two versions.
func checkTrace(t *testing.T, c *Conversion) {
	t.Helper()
	object := func(version string) string {
		return `{"apiVersion":"example.com/` + version + `","kind":"Widget","spec":{"` + version + `":1}}`
	}
	up, err := c.Object(nil, []byte(object(c.From.Version)), convert.ToServer, nil)
	if want := object(c.To.Version); err != nil || string(up) != want {
		t.Errorf("to the server: %s, %v, want %s", up, err, want)
	}
	down, err := c.Object(nil, up, convert.ToClient, nil)
	if want := object(c.From.Version); err != nil || string(down) != want {
		t.Errorf("to the client: %s, %v, want %s", down, err, want)
	}
}

// Discovery hears of every version that a chain leads to.
func TestChainsAreListed(t *testing.T) {
	set := mustCompile(t, named("a", "v1", "v2", ""), named("b", "v2", "v3", ""), named("c", "v3", "v1", ""))
	var got []string
	for _, c := range set.Conversions() {
		got = append(got, c.Policy+": "+pathOf(c))
	}
	const want = "a: v1 v2, a: v1 v2 v3, b: v2 v3, b: v2 v3 v1, c: v3 v1, c: v3 v1 v2"
	if strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
}

// A chain is as long as the bound and no longer.
func TestChainsAreBounded(t *testing.T) {
	var policies []Policy
	versions := strings.Fields("v0 v1 v2 v3 v4 v5 v6 v7 v8 v9 v10 v11 v12")
	for i := range versions[1:] {
		policies = append(policies, named("p"+versions[i], versions[i], versions[i+1], ""))
	}
	set := mustCompile(t, policies...)
	longest := ""
	for _, c := range set.Conversions() {
		if c.From.Version == "v0" {
			longest = pathOf(c)
		}
	}
	if want := strings.Join(versions[:maxChain+1], " "); longest != want {
		t.Errorf("the longest chain is %s, want %s", longest, want)
	}
}
