package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// readLegacy reads unaggregated discovery, one document for each group version, into
// next. A group version that cannot be read keeps its old resources, as stale.
func (d *discovery) readLegacy(ctx context.Context, r *root, next *source, old []apidiscoveryv2.APIGroupDiscovery) error {
	groups := r.Groups
	if r.Kind == "APIVersions" {
		groups = []metav1.APIGroup{coreGroup(r.Versions)}
	}
	read := 0
	for _, group := range groups {
		out := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group.Name}}
		for _, gv := range group.Versions {
			if read++; read > maxLegacyVersions {
				return fmt.Errorf("the server lists more than %d group versions", maxLegacyVersions)
			}
			version, err := d.readVersion(ctx, group.Name, gv.Version)
			if err != nil {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				next.partial = true
				version = staleVersion(old, group.Name, gv.Version)
			}
			out.Versions = append(out.Versions, version)
		}
		next.groups = append(next.groups, out)
	}
	return nil
}

func coreGroup(versions []string) metav1.APIGroup {
	var group metav1.APIGroup
	for _, v := range versions {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{Version: v})
	}
	return group
}

func staleVersion(old []apidiscoveryv2.APIGroupDiscovery, group, version string) apidiscoveryv2.APIVersionDiscovery {
	out := apidiscoveryv2.APIVersionDiscovery{Version: version, Freshness: apidiscoveryv2.DiscoveryFreshnessStale}
	if known := findVersion(old, group, version); known != nil {
		out.Resources = known.Resources
	}
	return out
}

// readVersion reads one group version's APIResourceList.
func (d *discovery) readVersion(ctx context.Context, group, version string) (apidiscoveryv2.APIVersionDiscovery, error) {
	target := "/apis/" + group + "/" + version
	if group == "" {
		target = "/api/" + version
	}
	doc, err := d.document(ctx, target, wire.Header{{Name: "Accept", Value: "application/json"}})
	if err != nil {
		return apidiscoveryv2.APIVersionDiscovery{}, err
	}
	if doc.Status != 200 {
		return apidiscoveryv2.APIVersionDiscovery{}, fmt.Errorf("GET %s answered %d", target, doc.Status)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(doc.Body, &list); err != nil {
		return apidiscoveryv2.APIVersionDiscovery{}, fmt.Errorf("cannot parse the answer to GET %s: %w", target, err)
	}
	return apidiscoveryv2.APIVersionDiscovery{
		Version:   version,
		Resources: aggregate(group, version, list.APIResources),
		Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
	}, nil
}

// aggregate gathers the flat list of an APIResourceList into resources with their
// subresources. A subresource may come without its resource.
func aggregate(group, version string, flat []metav1.APIResource) []apidiscoveryv2.APIResourceDiscovery {
	var out []apidiscoveryv2.APIResourceDiscovery
	at := map[string]int{} // place in out
	of := func(name string, r *metav1.APIResource) *apidiscoveryv2.APIResourceDiscovery {
		i, ok := at[name]
		if !ok {
			i = len(out)
			at[name] = i
			out = append(out, apidiscoveryv2.APIResourceDiscovery{Resource: name, Scope: scope(r)})
		}
		return &out[i]
	}
	for i := range flat {
		r := &flat[i]
		kind := &metav1.GroupVersionKind{Group: group, Version: version, Kind: r.Kind}
		if r.Version != "" {
			kind.Group, kind.Version = r.Group, r.Version
		}
		name, sub, isSub := strings.Cut(r.Name, "/")
		resource := of(name, r)
		if isSub {
			resource.Subresources = append(resource.Subresources, apidiscoveryv2.APISubresourceDiscovery{
				Subresource: sub, ResponseKind: kind, Verbs: r.Verbs,
			})
			continue
		}
		resource.Scope, resource.ResponseKind, resource.SingularResource = scope(r), kind, r.SingularName
		resource.Verbs, resource.ShortNames, resource.Categories = r.Verbs, r.ShortNames, r.Categories
	}
	return out
}

func scope(r *metav1.APIResource) apidiscoveryv2.ResourceScope {
	if r.Namespaced {
		return apidiscoveryv2.ScopeNamespace
	}
	return apidiscoveryv2.ScopeCluster
}
