package proxy

import (
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// withoutDeleted takes from what is remembered of the servers that cannot be reached what
// is certainly gone: resources whose CustomResourceDefinition, or its version, no healthy
// server has any more. All servers have the same CRDs, in one etcd, so that what a living
// one says of them holds for one that is down.
func withoutDeleted(view *upstream.View) *upstream.View {
	living, known := livingCRDs(view)
	if !known {
		return view
	}
	pruned := *view
	pruned.Servers = slices.Clone(view.Servers)
	for i, server := range view.Servers {
		if !server.Healthy && len(server.CRDs) > 0 {
			pruned.Servers[i] = forgetDeleted(server, living)
		}
	}
	return &pruned
}

// livingCRDs are the CRDs of the healthy servers. known is false while one of them has
// not told of its own yet, or does not let MVP see them.
func livingCRDs(view *upstream.View) (crds map[string][]*upstream.CRD, known bool) {
	crds = map[string][]*upstream.CRD{}
	for _, server := range view.Servers {
		if !server.Healthy {
			continue
		}
		if server.CRDs == nil || server.CRDsForbidden || !server.Synced || server.Stale {
			return nil, false
		}
		known = true
		for name, crd := range server.CRDs {
			crds[name] = append(crds[name], crd)
		}
	}
	return crds, known
}

// forgetDeleted is the server without the resources of CRDs that are not among living.
func forgetDeleted(server *upstream.State, living map[string][]*upstream.CRD) *upstream.State {
	gone := func(group, version, name string) bool {
		crd, ok := server.CRDs[name+"."+group]
		if !ok || !crd.Versions[version].Served {
			return false // built in, or of an aggregated server
		}
		return !slices.ContainsFunc(living[name+"."+group], func(c *upstream.CRD) bool { return c.Versions[version].Served })
	}
	var emptied []string
	changed := false
	groups := make([]apidiscoveryv2.APIGroupDiscovery, 0, len(server.Groups))
	for _, group := range server.Groups {
		versions := make([]apidiscoveryv2.APIVersionDiscovery, 0, len(group.Versions))
		for _, version := range group.Versions {
			resources := slices.DeleteFunc(slices.Clone(version.Resources), func(r apidiscoveryv2.APIResourceDiscovery) bool {
				return gone(group.Name, version.Version, r.Resource)
			})
			changed = changed || len(resources) < len(version.Resources)
			if len(resources) == 0 && len(version.Resources) > 0 {
				emptied = append(emptied, documentPath(group.Name, version.Version))
				continue
			}
			version.Resources = resources
			versions = append(versions, version)
		}
		group.Versions = versions
		groups = append(groups, group)
	}
	if !changed {
		return server
	}
	next := *server
	next.Groups, next.OpenAPIV3 = groups, withoutPaths(server.OpenAPIV3, emptied)
	return &next
}

func withoutPaths(paths map[string]string, gone []string) map[string]string {
	if len(gone) == 0 {
		return paths
	}
	kept := make(map[string]string, len(paths))
	for path, link := range paths {
		if !slices.Contains(gone, path) {
			kept[path] = link
		}
	}
	return kept
}
