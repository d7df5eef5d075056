package proxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// serving makes the state of a server from lines "GROUP/VERSION RESOURCE[/SUB]: VERB…".
func serving(name, lines string) *upstream.State {
	s := &upstream.State{Name: name, Synced: true}
	for line := range strings.Lines(lines) {
		head, verbs, _ := strings.Cut(strings.TrimSpace(line), ":")
		gv, path, ok := strings.Cut(head, " ")
		if !ok {
			continue
		}
		group, version, _ := strings.Cut(gv, "/")
		if version == "" {
			group, version = "", gv
		}
		name, sub, _ := strings.Cut(path, "/")
		r := resourceIn(s, group, version, name)
		if sub == "" {
			r.Verbs = strings.Fields(verbs)
		} else {
			r.Subresources = append(r.Subresources, apidiscoveryv2.APISubresourceDiscovery{Subresource: sub, Verbs: strings.Fields(verbs)})
		}
	}
	return s
}

func resourceIn(s *upstream.State, group, version, name string) *apidiscoveryv2.APIResourceDiscovery {
	g := slices.IndexFunc(s.Groups, func(g apidiscoveryv2.APIGroupDiscovery) bool { return g.Name == group })
	if g < 0 {
		g = len(s.Groups)
		s.Groups = append(s.Groups, apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group}})
	}
	versions := &s.Groups[g].Versions
	v := slices.IndexFunc(*versions, func(v apidiscoveryv2.APIVersionDiscovery) bool { return v.Version == version })
	if v < 0 {
		v = len(*versions)
		*versions = append(*versions, apidiscoveryv2.APIVersionDiscovery{Version: version})
	}
	resources := &(*versions)[v].Resources
	r := slices.IndexFunc(*resources, func(r apidiscoveryv2.APIResourceDiscovery) bool { return r.Resource == name })
	if r < 0 {
		r = len(*resources)
		*resources = append(*resources, apidiscoveryv2.APIResourceDiscovery{Resource: name})
	}
	return &(*resources)[r]
}

func TestSpread(t *testing.T) {
	const pods = "v1 pods: get list\nv1 pods/status: get\n"
	tests := []struct {
		name    string
		servers []string // of a, b, c
		want    []string // parts as "TEXT on SERVERS not on SERVERS"
	}{
		{"one server has nobody to differ from", []string{pods}, nil},
		{"the same on both", []string{pods, pods}, nil},
		{"the order of verbs does not matter", []string{"v1 pods: get list", "v1 pods: list get"}, nil},
		{
			"a resource, and its subresources with it",
			[]string{pods + "acme.io/v1 things: get\nacme.io/v1 things/status: get", pods},
			[]string{"acme.io/v1 things on a not on b"},
		},
		{"a subresource alone", []string{pods, pods + "v1 pods/resize: patch"}, []string{"v1 pods/resize on b not on a"}},
		{"verbs alone", []string{"v1 pods: get", "v1 pods: get list watch"}, []string{"v1 pods (list, watch) on b not on a"}},
		{
			"verbs that each server has for itself",
			[]string{"v1 pods: get create", "v1 pods: get delete"},
			[]string{"v1 pods (create) on a not on b", "v1 pods (delete) on b not on a"},
		},
		{
			"verbs of a resource that a third server lacks",
			[]string{"v1 pods: get", "v1 pods: get watch", "v1 nodes: get"},
			[]string{"v1 nodes on c not on a,b", "v1 pods (get) on a,b not on c", "v1 pods (watch) on b not on a,c"},
		},
		{
			"a subresource that not all of its resource's servers have",
			[]string{pods + "v1 things: get\nv1 things/scale: get", pods + "v1 things: get", pods},
			[]string{"v1 things on a,b not on c", "v1 things/scale on a not on b,c"},
		},
		{"a server that has said nothing yet is left out", []string{pods, ""}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			view := &upstream.View{}
			for i, lines := range tt.servers {
				view.Servers = append(view.Servers, serving(string(rune('a'+i)), lines))
			}
			var got []string
			for _, p := range spreadOf(view, nil).list() {
				got = append(got, fmt.Sprintf("%v on %s not on %s", p, strings.Join(p.servers, ","), strings.Join(p.missing, ",")))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(tt.want, "\n  "))
			}
		})
	}
}

func TestSpreadOnlyAndLacks(t *testing.T) {
	view := &upstream.View{Servers: []*upstream.State{
		serving("a", "v1 pods: get\nacme.io/v1beta1 things: get"),
		serving("b", "v1 pods: get\nv1 pods/resize: patch\nacme.io/v1beta1 things: get"),
		serving("c", "v1 pods: get\nv1 pods/resize: patch\nacme.io/v2 things: get"),
	}}
	s := spreadOf(view, nil)
	for _, want := range []struct {
		server      string
		only, lacks []string
	}{
		{"a", nil, []string{"v1 pods/resize", "acme.io/v2 things"}},
		{"b", nil, []string{"acme.io/v2 things"}},
		{"c", []string{"acme.io/v2 things"}, []string{"acme.io/v1beta1 things"}},
	} {
		if only, lacks := s.only(want.server); !slices.Equal(only, want.only) || !slices.Equal(lacks, want.lacks) {
			t.Errorf("of %s: only %q, lacks %q, want %q and %q", want.server, only, lacks, want.only, want.lacks)
		}
	}
}

// A change in health alone compares nothing anew.
func TestSpreadIsKept(t *testing.T) {
	a, b := serving("a", "v1 pods: get"), serving("b", "v1 pods: list")
	first := spreadOf(&upstream.View{Servers: []*upstream.State{a, b}}, nil)
	down := *b
	down.Healthy, down.Stale = !b.Healthy, true
	if again := spreadOf(&upstream.View{Servers: []*upstream.State{a, &down}}, first); again != first {
		t.Error("the same groups were compared again")
	}
	changed := serving("b", "v1 pods: get")
	if next := spreadOf(&upstream.View{Servers: []*upstream.State{a, changed}}, first); next == first || len(next.parts) != 0 {
		t.Errorf("after a change the spread is %v, want nothing", next.parts)
	}
}

// FuzzSpread holds the parts to what the servers have, verb by verb: what some serve
// and others do not is in exactly one part or implied by its resource's, and nothing
// else is in any.
func FuzzSpread(f *testing.F) {
	f.Add([]byte{1, 2, 3, 0xff, 0, 7, 0x55, 0xaa, 9})
	f.Add([]byte("any bytes will do, each gives the verbs of one capability on one server"))
	f.Fuzz(func(t *testing.T, data []byte) {
		view := randomView(data)
		truth := map[string][]string{} // "CAPABILITY VERB": servers
		for _, server := range view.Servers {
			collect(server.Groups, func(c capability, verbs []string) {
				truth[c.String()] = append(truth[c.String()], server.Name)
				for _, verb := range verbs {
					truth[c.String()+" "+verb] = append(truth[c.String()+" "+verb], server.Name)
				}
			})
		}
		covered := map[string]bool{}
		for _, p := range spreadOf(view, nil).list() {
			for _, verb := range p.verbs {
				key := p.capability.String() + " " + verb
				if covered[key] || !slices.Equal(p.servers, truth[key]) || len(p.servers)+len(p.missing) != len(view.Servers) {
					t.Errorf("%v is on %q not on %q, but %q is on %q (covered: %v)", p, p.servers, p.missing, key, truth[key], covered[key])
				}
				covered[key] = true
			}
		}
		for key, servers := range truth {
			path, _, isVerb := strings.Cut(strings.TrimPrefix(key, "v1 "), " ")
			if !isVerb || covered[key] || len(servers) == len(view.Servers) {
				continue
			}
			parent, _, isSub := strings.Cut(path, "/")
			if !isSub || !slices.Equal(truth["v1 "+parent], servers) {
				t.Errorf("%q is on %q only, which no part says", key, servers)
			}
		}
	})
}

// randomView has up to three servers with verbs of four capabilities, by the bits of
// data.
func randomView(data []byte) *upstream.View {
	view := &upstream.View{}
	verbs := []string{"create", "get", "list", "watch"}
	for i := range 3 {
		var lines strings.Builder
		lines.WriteString("v1 always: get\n")
		for j, name := range []string{"pods", "pods/resize", "nodes", "nodes/status"} {
			at := i*4 + j
			if at >= len(data) || data[at]&0x80 != 0 {
				continue
			}
			fmt.Fprintf(&lines, "v1 %s:", name)
			for bit, verb := range verbs {
				if data[at]&(1<<bit) != 0 {
					lines.WriteString(" " + verb)
				}
			}
			lines.WriteString("\n")
		}
		view.Servers = append(view.Servers, serving(string(rune('a'+i)), lines.String()))
	}
	return view
}
