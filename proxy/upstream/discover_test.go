package upstream

import (
	"fmt"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
)

// aggregatedOnly answers the discovery entry points in the one aggregated version
// that the server has, if Accept lists it, and leaves the rest to the unaggregated.
func aggregatedOnly(version string, core, apis string) func(path, accept string) (string, string) {
	return func(path, accept string) (string, string) {
		if !strings.Contains(accept, "v="+version+";as=APIGroupDiscoveryList") {
			return "", ""
		}
		body := map[string]string{"/api": core, "/apis": apis}[path]
		body = strings.Replace(body, "apidiscovery.k8s.io/v2", "apidiscovery.k8s.io/"+version, 1)
		return "application/json;g=apidiscovery.k8s.io;v=" + version + ";as=APIGroupDiscoveryList", body
	}
}

// unaggregated gives a fake the discovery documents of a server before 1.26.
func unaggregated(f *fakeServer) {
	f.set("/api", `{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[]}`)
	f.set("/api/v1", `{"kind":"APIResourceList","groupVersion":"v1","resources":[
		{"name":"bindings","singularName":"binding","namespaced":true,"kind":"Binding","verbs":["create"]},
		{"name":"pods/eviction","singularName":"","namespaced":true,"group":"policy","version":"v1","kind":"Eviction","verbs":["create"]},
		{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get","list","watch"],"shortNames":["po"],"categories":["all"]},
		{"name":"pods/log","singularName":"","namespaced":true,"kind":"Pod","verbs":["get"]},
		{"name":"nodes","singularName":"node","namespaced":false,"kind":"Node","verbs":["get"]}]}`)
	f.set("/apis", `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[
		{"groupVersion":"apps/v1","version":"v1"},{"groupVersion":"apps/v1beta1","version":"v1beta1"}],
		"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`)
	f.set("/apis/apps/v1", `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[
		{"name":"deployments","namespaced":true,"kind":"Deployment","verbs":["get"]},
		{"name":"deployments/scale","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","update"]}]}`)
	f.set("/apis/apps/v1beta1", `{"kind":"APIResourceList","groupVersion":"apps/v1beta1","resources":[
		{"name":"deployments","namespaced":true,"kind":"Deployment","verbs":["get"]}]}`)
}

func TestDiscoveryForms(t *testing.T) {
	core, apis := groupList("", "v1", "pods"), groupList("apps", "v1", "deployments")
	const want = "/v1 pods, apps/v1 deployments"
	for _, version := range []string{"v2", "v2beta1"} {
		t.Run(version, func(t *testing.T) {
			f := newFake(t)
			f.byAccept = aggregatedOnly(version, core, apis)
			if got := resources(runPool(t, nil, f).View().Servers[0]); got != want {
				t.Errorf("serves %q, want %q", got, want)
			}
		})
	}
	t.Run("unaggregated", func(t *testing.T) {
		f := newFake(t)
		unaggregated(f)
		s := runPool(t, nil, f).View().Servers[0]
		if got, want := resources(s), "/v1 bindings, /v1 nodes, /v1 pods, apps/v1 deployments, apps/v1beta1 deployments"; got != want {
			t.Errorf("serves %q, want %q", got, want)
		}
		pods := s.index[gvr{"", "v1", "pods"}]
		const wantPods = `{"resource":"pods","responseKind":{"group":"","version":"v1","kind":"Pod"},"scope":"Namespaced","singularResource":"pod",` +
			`"verbs":["get","list","watch"],"shortNames":["po"],"categories":["all"],"subresources":[` +
			`{"subresource":"eviction","responseKind":{"group":"policy","version":"v1","kind":"Eviction"},"verbs":["create"]},` +
			`{"subresource":"log","responseKind":{"group":"","version":"v1","kind":"Pod"},"verbs":["get"]}]}`
		if got := mustJSON(t, pods); got != wantPods {
			t.Errorf("pods are\n%s\nwant\n%s", got, wantPods)
		}
		if nodes := s.index[gvr{"", "v1", "nodes"}]; nodes.Scope != apidiscoveryv2.ScopeCluster {
			t.Errorf("nodes are %v", nodes.Scope)
		}
		if !s.ServesVerb("apps", "v1", "deployments", "scale", "update") {
			t.Error("no deployments/scale")
		}
		if s.Groups[0].Name != "" || s.Groups[1].Name != "apps" || s.Groups[1].Versions[0].Version != "v1" {
			t.Errorf("order of groups and versions is lost: %+v", s.Groups)
		}
	})
}

// A server that lists its peers' kinds as its own unless asked not to (1.36 and later)
// is asked not to.
func Test3_19_DiscoveryIsOfTheServerItself(t *testing.T) {
	f := newFake(t)
	f.byAccept = func(path, accept string) (string, string) {
		first, _, _ := strings.Cut(accept, ",")
		if path != "/apis" || strings.Contains(first, "profile=nopeer") {
			return "", ""
		}
		return "application/json", groupList("apps", "v1", "deployments", "of-a-peer")
	}
	s := runPool(t, nil, f).View().Servers[0]
	if !s.Serves("apps", "v1", "deployments") || s.Serves("apps", "v1", "of-a-peer") {
		t.Errorf("serves %q", resources(s))
	}
}

func TestDiscoveryPollsByETag(t *testing.T) {
	f := newFake(t)
	p := runPool(t, nil, f)
	eventually(t, "polls are answered with 304", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.handled > 10
	})
	f.set("/apis", groupList("apps", "v1", "statefulsets"))
	eventually(t, "a change is seen", func() bool { return p.View().Servers[0].Serves("apps", "v1", "statefulsets") })
	if p.View().Servers[0].Serves("apps", "v1", "deployments") {
		t.Error("what the server positively no longer serves is still there")
	}
}

// A failed poll keeps what is known.
func TestDiscoveryFails(t *testing.T) {
	for path, answer := range map[string]string{
		"/apis":    `503 {"kind":"Status"}`,
		"/api":     `{"kind":"Pod"}`,
		"/version": `{"gitVersion":"none"}`,
	} {
		t.Run(fmt.Sprint(path, answer), func(t *testing.T) {
			f := newFake(t)
			p := runPool(t, nil, f)
			f.set(path, answer)
			state := func() *State { return p.View().Servers[0] }
			eventually(t, "stale", func() bool { return state().Stale })
			if s := state(); !s.Healthy || !s.Synced || !s.Serves("apps", "v1", "deployments") || !s.Serves("", "v1", "pods") {
				t.Errorf("state is %+v", s)
			}
			good := newFake(t).answers[path]
			f.set(path, good)
			eventually(t, "fresh again", func() bool { return !state().Stale })
		})
	}
}

// A group version that the server itself calls stale keeps its resources.
func TestStaleGroupVersionKeepsResources(t *testing.T) {
	stale := strings.Replace(groupList("metrics.k8s.io", "v1beta1"), "Current", "Stale", 1)
	f := newFake(t)
	f.set("/apis", groupList("metrics.k8s.io", "v1beta1", "nodes"))
	p := runPool(t, nil, f)
	f.set("/apis", stale)
	eventually(t, "the mark is seen", func() bool {
		g := p.View().Servers[0].Groups
		return g[len(g)-1].Versions[0].Freshness == apidiscoveryv2.DiscoveryFreshnessStale
	})
	if s := p.View().Servers[0]; !s.Serves("metrics.k8s.io", "v1beta1", "nodes") {
		t.Errorf("serves %q", resources(s))
	}
}

// The same for unaggregated discovery, where a group version cannot be read.
func TestUnreadableGroupVersionKeepsResources(t *testing.T) {
	f := newFake(t)
	unaggregated(f)
	p := runPool(t, nil, f)
	f.set("/apis/apps/v1", "503 down")
	state := func() *State { return p.View().Servers[0] }
	freshness := func() apidiscoveryv2.DiscoveryFreshness { return state().Groups[1].Versions[0].Freshness }
	eventually(t, "stale", func() bool { return freshness() == apidiscoveryv2.DiscoveryFreshnessStale })
	if s := state(); !s.Serves("apps", "v1", "deployments") || s.Stale {
		t.Errorf("serves %q, stale %v", resources(s), s.Stale)
	}
	unaggregated(f)
	eventually(t, "current", func() bool { return freshness() == apidiscoveryv2.DiscoveryFreshnessCurrent })
}

// A new resource within a known group version shows though the list of groups, the
// only document that is read each time, stays the same.
func TestUnaggregatedDiscoveryIsReadAgain(t *testing.T) {
	f := newFake(t)
	unaggregated(f)
	p := runPool(t, nil, f)
	f.set("/apis/apps/v1", `{"kind":"APIResourceList","resources":[{"name":"daemonsets","kind":"DaemonSet","verbs":["get"]}]}`)
	eventually(t, "the resource shows", func() bool { return p.View().Servers[0].Serves("apps", "v1", "daemonsets") })
}

func TestServerWithoutCoreGroup(t *testing.T) {
	f := newFake(t)
	f.set("/api", "")
	s := runPool(t, nil, f).View().Servers[0]
	if got, want := resources(s), "apps/v1 deployments"; got != want || !s.Synced {
		t.Errorf("serves %q, synced %v, want %q", got, s.Synced, want)
	}
}

func TestParseVersion(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		v, err := parseVersion([]byte(body))
		got := fmt.Sprintf("%d.%d.%d as %d.%d", v.major, v.minor, v.patch, v.emulation.Major, v.emulation.Minor)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("parseVersion(%s) = %s, want %s", body, got, want)
		}
	}

	f(`{"gitVersion":"v1.32.13"}`, "1.32.13 as 1.32")
	f(`{"gitVersion":"v1.31.5-eks-1a2b"}`, "1.31.5 as 1.31")
	f(`{"gitVersion":"v1.30.1+k3s1"}`, "1.30.1 as 1.30")
	f(`{"gitVersion":"v1.34.0-alpha.3.57+abc"}`, "1.34.0 as 1.34")
	f(`{"gitVersion":"unknown","major":"1","minor":"31+"}`, "1.31.0 as 1.31")
	f(`{"gitVersion":"v1.34.2","emulationMajor":"1","emulationMinor":"33"}`, "1.34.2 as 1.33")
	f(`{"gitVersion":"master"}`, `cannot use the answer to GET /version: no version in "master"`)
	f(`[]`, "cannot parse the answer to GET /version: json: cannot unmarshal array into Go value of type version.Info")
}

// An event has unaggregated documents read at once that a usual poll leaves out.
func TestEventsReadUnaggregatedDiscovery(t *testing.T) {
	w := newWatched(t)
	unaggregated(w.fakeServer)
	w.set("/apis", `{"kind":"APIGroupList","apiVersion":"v1","groups":[
		{"name":"apiextensions.k8s.io","versions":[{"groupVersion":"apiextensions.k8s.io/v1","version":"v1"}]},
		{"name":"apiregistration.k8s.io","versions":[{"groupVersion":"apiregistration.k8s.io/v1","version":"v1"}]},
		{"name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"}]}]}`)
	list := func(resource string) string {
		return `{"kind":"APIResourceList","resources":[{"name":"` + resource + `","kind":"X","verbs":["list","watch"]}]}`
	}
	w.set("/apis/apiextensions.k8s.io/v1", list("customresourcedefinitions"))
	w.set("/apis/apiregistration.k8s.io/v1", list("apiservices"))
	w.set("/apis/example.com/v1", list("gadgets"))
	p := runWatched(t, nil, w)
	w.set("/apis/example.com/v1", list("widgets"))
	w.set(widgetsTarget, widgetCRD("11", true, false, `{}`))
	w.next(t, crdsTarget, 0).events <- watchEvent("ADDED", meta(widgets, "11", 1, ""))
	eventually(t, "the resource shows", func() bool { return p.View().Servers[0].Serves("example.com", "v1", "widgets") })
}
