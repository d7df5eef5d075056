package discovery

import (
	"fmt"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groups reads what a server serves, one resource a line, in the server's order:
//
//	policy/v1 poddisruptionbudgets PodDisruptionBudget Namespaced short=pdb sub=status,eviction:policy/v1/Eviction
//	metrics.k8s.io/v1beta1 (stale)
//
// verbs= and categories= may follow too. As in kube-apiserver's documents, a kind
// of the resource's own group version has neither; with "explicit", as custom
// resources have it, it has both.
func groups(t testing.TB, text string) []apidiscoveryv2.APIGroupDiscovery {
	t.Helper()
	var out []apidiscoveryv2.APIGroupDiscovery
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		gv, err := schema.ParseGroupVersion(words[0])
		if err != nil || len(words) < 2 {
			t.Fatalf("cannot read the line %q", line)
		}
		v := versionIn(&out, gv)
		if words[1] == "(stale)" {
			v.Freshness = apidiscoveryv2.DiscoveryFreshnessStale
			continue
		}
		v.Resources = append(v.Resources, resource(t, gv, words[1:]))
	}
	return out
}

func versionIn(groups *[]apidiscoveryv2.APIGroupDiscovery, gv schema.GroupVersion) *apidiscoveryv2.APIVersionDiscovery {
	for i := range *groups {
		g := &(*groups)[i]
		if g.Name != gv.Group {
			continue
		}
		for j := range g.Versions {
			if g.Versions[j].Version == gv.Version {
				return &g.Versions[j]
			}
		}
		g.Versions = append(g.Versions, apidiscoveryv2.APIVersionDiscovery{Version: gv.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent})
		return &g.Versions[len(g.Versions)-1]
	}
	*groups = append(*groups, apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: gv.Group}})
	return versionIn(groups, gv)
}

func resource(t testing.TB, gv schema.GroupVersion, words []string) apidiscoveryv2.APIResourceDiscovery {
	t.Helper()
	if len(words) < 3 {
		t.Fatalf("a resource needs a name, a kind and a scope: %q", words)
	}
	r := apidiscoveryv2.APIResourceDiscovery{
		Resource: words[0], Scope: apidiscoveryv2.ResourceScope(words[2]),
		SingularResource: strings.ToLower(words[1]), ResponseKind: &metav1.GroupVersionKind{Kind: words[1]},
		Verbs: []string{"create", "delete", "get", "list", "watch"},
	}
	for _, w := range words[3:] {
		key, value, _ := strings.Cut(w, "=")
		values := strings.Split(value, ",")
		switch key {
		case "verbs":
			r.Verbs = values
		case "short":
			r.ShortNames = values
		case "categories":
			r.Categories = values
		case "explicit":
			r.ResponseKind.Group, r.ResponseKind.Version = gv.Group, gv.Version
		case "sub":
			for _, s := range values {
				r.Subresources = append(r.Subresources, subresource(s, *r.ResponseKind))
			}
		default:
			t.Fatalf("unknown word %q", w)
		}
	}
	return r
}

func subresource(text string, kind metav1.GroupVersionKind) apidiscoveryv2.APISubresourceDiscovery {
	name, own, foreign := strings.Cut(text, ":")
	if foreign {
		parts := strings.Split(own, "/")
		kind = metav1.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}
	}
	return apidiscoveryv2.APISubresourceDiscovery{Subresource: name, ResponseKind: &kind, Verbs: []string{"get", "update"}}
}

// conversions reads one conversion a line, with the client's names first:
//
//	policy/v1beta1 poddisruptionbudgets -> policy/v1 poddisruptionbudgets
//	old.io/v1 gizmos Gizmo -> new.io/v1 widgets Widget
func conversions(t testing.TB, text string) []Conversion {
	t.Helper()
	var out []Conversion
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		from, to, ok := strings.Cut(line, "->")
		if !ok {
			t.Fatalf("cannot read the conversion %q", line)
		}
		var c Conversion
		c.FromGroup, c.FromVersion, c.FromResource, c.FromKind = side(t, from)
		c.ToGroup, c.ToVersion, c.ToResource, c.ToKind = side(t, to)
		out = append(out, c)
	}
	return out
}

func side(t testing.TB, text string) (group, version, resource, kind string) {
	t.Helper()
	words := append(strings.Fields(text), "", "")
	gv, err := schema.ParseGroupVersion(words[0])
	if err != nil {
		t.Fatal(err)
	}
	return gv.Group, gv.Version, words[1], words[2]
}

// summary writes one line a group: versions in order, ~ before stale ones, and in
// brackets the resources, + before those that only a conversion serves.
func summary(m *Merged) string {
	var b strings.Builder
	if m.Empty() {
		return "nothing\n"
	}
	for _, g := range m.groups {
		fmt.Fprintf(&b, "%s:", g.Name)
		for _, v := range g.Versions {
			stale := ""
			if v.Freshness == apidiscoveryv2.DiscoveryFreshnessStale {
				stale = "~"
			}
			var names []string
			for _, r := range v.Resources {
				plus := ""
				if m.Converted(g.Name, v.Version, r.Resource) {
					plus = "+"
				}
				names = append(names, plus+r.Resource)
			}
			fmt.Fprintf(&b, " %s%s[%s]", stale, v.Version, strings.Join(names, " "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
