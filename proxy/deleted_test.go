package proxy

import (
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// What a server that is away served of a CustomResourceDefinition goes when the living
// ones have it no more; what is built in, or not known for certain, stays.
func TestDeletedWhileAServerIsAway(t *testing.T) {
	groups := func() []apidiscoveryv2.APIGroupDiscovery {
		version := func(v string, names ...string) apidiscoveryv2.APIVersionDiscovery {
			out := apidiscoveryv2.APIVersionDiscovery{Version: v}
			for _, name := range names {
				out.Resources = append(out.Resources, apidiscoveryv2.APIResourceDiscovery{Resource: name})
			}
			return out
		}
		return []apidiscoveryv2.APIGroupDiscovery{
			{ObjectMeta: metav1.ObjectMeta{Name: "g.io"}, Versions: []apidiscoveryv2.APIVersionDiscovery{version("v1", "gadgets", "widgets"), version("v2", "widgets")}},
			{ObjectMeta: metav1.ObjectMeta{Name: "old.io"}, Versions: []apidiscoveryv2.APIVersionDiscovery{version("v1", "things")}},
		}
	}
	crd := func(served map[string]bool) *upstream.CRD {
		c := &upstream.CRD{Versions: map[string]upstream.CRDVersion{}}
		for name, on := range served {
			c.Versions[name] = upstream.CRDVersion{Served: on}
		}
		return c
	}
	away := &upstream.State{
		Name: "away", Synced: true, Stale: true, Groups: groups(),
		OpenAPIV3: map[string]string{"apis/g.io/v1": "1", "apis/g.io/v2": "2", "apis/old.io/v1": "3"},
		CRDs: map[string]*upstream.CRD{
			"gadgets.g.io": crd(map[string]bool{"v1": true}),
			"widgets.g.io": crd(map[string]bool{"v1": true, "v2": true}),
		},
	}
	living := func(crds map[string]*upstream.CRD) *upstream.State {
		return &upstream.State{Name: "living", Healthy: true, Synced: true, CRDs: crds}
	}
	kept := func(others ...*upstream.State) (list []string) {
		view := withoutDeleted(&upstream.View{Servers: append(others, away)})
		s := view.Servers[len(others)]
		for _, g := range s.Groups {
			for _, v := range g.Versions {
				for _, r := range v.Resources {
					list = append(list, g.Name+"/"+v.Version+" "+r.Resource)
				}
				if s.OpenAPIV3[documentPath(g.Name, v.Version)] == "" {
					t.Errorf("%s/%s has lost its OpenAPI document", g.Name, v.Version)
				}
			}
		}
		for path := range s.OpenAPIV3 {
			list = append(list, path)
		}
		return list
	}
	f := func(what string, want int, others ...*upstream.State) {
		t.Helper()
		if got := kept(others...); len(got) != want {
			t.Errorf("%s: kept %v, want %d", what, got, want)
		}
	}
	unserved := map[string]*upstream.CRD{"widgets.g.io": crd(map[string]bool{"v1": true, "v2": false})}
	f("nobody lives", 7)
	f("the same CRDs", 7, living(away.CRDs))
	f("one deleted, a version of the other unserved", 4, living(unserved)) // v1 widgets, old.io, their documents
	f("all deleted", 2, living(map[string]*upstream.CRD{}))
	f("another living server has them", 7, living(unserved), living(away.CRDs))
	f("not known", 7, living(nil))
	f("forbidden", 7, &upstream.State{Name: "living", Healthy: true, Synced: true, CRDs: map[string]*upstream.CRD{}, CRDsForbidden: true})
	f("known of one of two", 7, living(map[string]*upstream.CRD{}), living(nil))
	if len(away.Groups[0].Versions[0].Resources) != 2 || len(away.OpenAPIV3) != 3 {
		t.Error("what is remembered was changed itself")
	}
}
