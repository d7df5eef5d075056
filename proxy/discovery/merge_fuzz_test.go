package discovery

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// script reads what servers say from the bytes of a fuzz input, zeros at its end.
type script []byte

func (s *script) below(n int) int {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return int(b) % n
}

func (s *script) pick(from ...string) string { return from[s.below(len(from))] }

func (s *script) some(from ...string) []string {
	mask := s.below(1 << len(from))
	var out []string
	for i, name := range from {
		if mask&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return out
}

func (s *script) source(server string) Source {
	out := Source{Server: server, Version: s.pick("v1.31.14", "v1.32.13", "", "v1.32.0-alpha.1+x"), Reachable: s.below(2) == 0}
	for range s.below(4) {
		g := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: s.pick("", "apps", "acme.io")}}
		for range s.below(4) {
			v := apidiscoveryv2.APIVersionDiscovery{Version: s.pick("v1", "v2", "v1beta1", "odd"), Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
			if s.below(8) == 1 {
				v.Freshness = apidiscoveryv2.DiscoveryFreshnessStale
			}
			for range s.below(4) {
				v.Resources = append(v.Resources, s.resource())
			}
			g.Versions = append(g.Versions, v)
		}
		out.Groups = append(out.Groups, g)
	}
	return out
}

func (s *script) resource() apidiscoveryv2.APIResourceDiscovery {
	r := apidiscoveryv2.APIResourceDiscovery{
		Resource: s.pick("things", "others"), Scope: apidiscoveryv2.ScopeCluster,
		Verbs: s.some("get", "list", "watch"), ShortNames: s.some("t", "th"), Categories: s.some("all"),
	}
	if s.below(4) > 0 {
		r.ResponseKind = &metav1.GroupVersionKind{Kind: s.pick("Thing", "Other", "")}
	}
	for _, name := range s.some("status", "scale") {
		sub := apidiscoveryv2.APISubresourceDiscovery{Subresource: name, Verbs: s.some("get", "update")}
		if s.below(2) == 0 {
			sub.ResponseKind = &metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
		}
		r.Subresources = append(r.Subresources, sub)
	}
	return r
}

// FuzzMerge merges what any servers may say, twice, and checks what must hold.
func FuzzMerge(f *testing.F) {
	f.Add([]byte{1, 0, 2, 1, 1, 0, 0, 1, 0, 7, 1, 1, 1, 0, 3, 1, 1, 2, 1, 2, 0, 1, 0, 1, 7}, uint64(1))
	f.Add([]byte{0, 1, 3, 2, 3, 2, 0, 1, 1, 7, 3, 1, 2, 2, 3, 3, 1, 1, 2, 2, 2, 0, 0, 3, 7, 1, 0, 2, 1, 1, 1, 1, 1, 1, 1}, uint64(2))
	f.Add([]byte("servers say many things, and some of them more than once"), uint64(3))
	convert := conversions(f, "acme.io/v1beta1 things -> acme.io/v1 things\nacme.io/v0 olds Old -> acme.io/v2 things Thing\napps/v1 things -> apps/v1 things\nv0 pods -> v1 things")
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		s := script(text)
		var previous *Merged
		for range 2 {
			sources := []Source{s.source("a"), s.source("b"), s.source("c")}
			m := Merge(sources, convert, previous)
			checkMerged(t, m, sources, convert, previous, rand.New(rand.NewPCG(seed, 0)))
			previous = m
		}
	})
}

func checkMerged(t *testing.T, m *Merged, sources []Source, convert []Conversion, previous *Merged, r *rand.Rand) {
	t.Helper()
	shuffled, other := recut(sources), slices.Clone(convert)
	r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	r.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
	sameDocuments(t, "in another order", m, Merge(shuffled, other, previous))
	sameDocuments(t, "merged again", m, Merge(recut(sources), convert, m))
	sameDocuments(t, "made from nothing", m, &Merged{documents: newDocuments(m.groups, nil)})
	checkWritten(t, m)

	said, told := claims(nil), claims(nil)
	for _, s := range knownSources(sources, previous) {
		said.add(s.Groups)
	}
	told.add(m.groups)
	for claim := range said {
		if !told[claim] {
			t.Errorf("lost: %s", claim)
		}
	}
	for claim := range told {
		if !said[claim] && !convertedClaim(m, claim) {
			t.Errorf("nobody says %s", claim)
		}
	}
}

// checkWritten checks that every listed group version is answered, the preferred one
// is listed, and every document is JSON under a tag of its own text.
func checkWritten(t *testing.T, m *Merged) {
	t.Helper()
	for _, g := range m.groups {
		preferred, _ := m.PreferredVersion(g.Name)
		if !slices.ContainsFunc(g.Versions, func(v apidiscoveryv2.APIVersionDiscovery) bool { return v.Version == preferred }) {
			t.Errorf("%q prefers %q, which is not listed", g.Name, preferred)
		}
		for _, v := range g.Versions {
			unknown := len(v.Resources) == 0 && v.Freshness == apidiscoveryv2.DiscoveryFreshnessStale
			if _, ok := m.Answer(Request{Path: versionPath(g.Name, v.Version)}); !ok && !unknown {
				t.Errorf("%s/%s is listed but not answered", g.Name, v.Version)
			}
		}
	}
	for key, doc := range m.documents {
		body, err := doc.body(encodeJSON)
		tag, tagErr := doc.etag()
		if err != nil || tagErr != nil || !json.Valid(body) || tag != quotedHash(body) {
			t.Errorf("%v is written as %s under %s: %v, %v", key, body, tag, err, tagErr)
		}
	}
}

// A claimSet is what discovery says, one claim for each thing that can be served.
type claimSet map[string]bool

func claims(groups []apidiscoveryv2.APIGroupDiscovery) claimSet {
	c := claimSet{}
	c.add(groups)
	return c
}

func (c claimSet) add(groups []apidiscoveryv2.APIGroupDiscovery) {
	for _, g := range groups {
		for _, v := range g.Versions {
			c[g.Name+"/"+v.Version] = true
			for _, r := range v.Resources {
				at := fmt.Sprintf("%s/%s %s", g.Name, v.Version, r.Resource)
				c[at] = true
				for _, words := range [][]string{r.Verbs, r.ShortNames, r.Categories} {
					for _, word := range words {
						c[at+" "+word] = true
					}
				}
				for _, s := range r.Subresources {
					c[at+"/"+s.Subresource] = true
					for _, verb := range s.Verbs {
						c[at+"/"+s.Subresource+" "+verb] = true
					}
				}
			}
		}
	}
}

// convertedClaim reports whether a claim is of a resource that is converted, or of
// the version of one.
func convertedClaim(m *Merged, claim string) bool {
	for gvr := range m.converted {
		version := gvr.Group + "/" + gvr.Version
		at := version + " " + gvr.Resource
		if claim == version || claim == at || len(claim) > len(at) && claim[:len(at)] == at && (claim[len(at)] == ' ' || claim[len(at)] == '/') {
			return true
		}
	}
	return false
}
