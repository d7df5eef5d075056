package discovery

import (
	"reflect"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// newDocuments returns all documents of groups but the unaggregated /api, which
// names the address that the client used. Those of groups that previous has too are
// taken from there, with what was written of them.
func newDocuments(groups []apidiscoveryv2.APIGroupDiscovery, previous *Merged) map[documentKey]*document {
	docs := map[documentKey]*document{}
	isCore := func(g apidiscoveryv2.APIGroupDiscovery) bool { return g.Name == "" }
	before := map[string]*apidiscoveryv2.APIGroupDiscovery{}
	if previous != nil {
		for i := range previous.groups {
			before[previous.groups[i].Name] = &previous.groups[i]
		}
	}
	for _, g := range groups {
		if old := before[g.Name]; old != nil && reflect.DeepEqual(*old, g) {
			keepGroup(docs, g, previous)
		} else {
			addGroup(docs, g)
		}
	}
	core, named := partition(groups, isCore)
	var oldCore, oldNamed []apidiscoveryv2.APIGroupDiscovery
	if previous != nil {
		oldCore, oldNamed = partition(previous.groups, isCore)
	}
	if previous != nil && reflect.DeepEqual(core, oldCore) {
		keep(docs, previous, "/api", aggregatedV2, aggregatedV2beta1)
	} else {
		addAggregated(docs, "/api", core)
	}
	if previous != nil && reflect.DeepEqual(named, oldNamed) {
		keep(docs, previous, "/apis", aggregatedV2, aggregatedV2beta1, unaggregated)
	} else {
		addAggregated(docs, "/apis", named)
		docs[documentKey{"/apis", unaggregated}] = &document{object: apiGroupList(named)}
	}
	return docs
}

func partition(groups []apidiscoveryv2.APIGroupDiscovery, first func(apidiscoveryv2.APIGroupDiscovery) bool) (a, b []apidiscoveryv2.APIGroupDiscovery) {
	for _, g := range groups {
		if first(g) {
			a = append(a, g)
		} else {
			b = append(b, g)
		}
	}
	return a, b
}

// keepGroup takes over the documents of a group that is as it was.
func keepGroup(docs map[documentKey]*document, g apidiscoveryv2.APIGroupDiscovery, previous *Merged) {
	if g.Name != "" {
		keep(docs, previous, "/apis/"+g.Name, unaggregated)
	}
	for _, v := range g.Versions {
		keep(docs, previous, versionPath(g.Name, v.Version), unaggregated)
	}
}

func keep(docs map[documentKey]*document, previous *Merged, path string, forms ...form) {
	for _, f := range forms {
		if doc, ok := previous.documents[documentKey{path, f}]; ok {
			docs[documentKey{path, f}] = doc
		}
	}
}

func addGroup(docs map[documentKey]*document, g apidiscoveryv2.APIGroupDiscovery) {
	if g.Name != "" {
		docs[documentKey{"/apis/" + g.Name, unaggregated}] = &document{object: apiGroup(g)}
	}
	for _, v := range g.Versions {
		// Of an extension apiserver that has never been reached nothing but the
		// version is known. The server in front of it says so better than an
		// empty list would.
		if len(v.Resources) == 0 && v.Freshness == apidiscoveryv2.DiscoveryFreshnessStale {
			continue
		}
		docs[documentKey{versionPath(g.Name, v.Version), unaggregated}] = &document{object: apiResourceList(g.Name, v)}
	}
}

func versionPath(group, version string) string {
	if group == "" {
		return "/api/" + version
	}
	return "/apis/" + group + "/" + version
}

func addAggregated(docs map[documentKey]*document, path string, groups []apidiscoveryv2.APIGroupDiscovery) {
	if groups == nil {
		groups = []apidiscoveryv2.APIGroupDiscovery{} // "items": [], not null
	}
	list := &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: apidiscoveryv2.SchemeGroupVersion.String()},
		Items:    groups,
	}
	docs[documentKey{path, aggregatedV2}] = &document{object: list}
	docs[documentKey{path, aggregatedV2beta1}] = &document{object: list, v2beta1: true}
}

// apiVersions is the unaggregated /api. It carries no apiVersion, as ever since
// Kubernetes 1.1.
func apiVersions(groups []apidiscoveryv2.APIGroupDiscovery, host string) *metav1.APIVersions {
	out := &metav1.APIVersions{
		TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
		Versions:                   []string{},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	}
	for _, g := range groups {
		if g.Name == "" {
			for _, v := range g.Versions {
				out.Versions = append(out.Versions, v.Version)
			}
		}
	}
	if host != "" {
		out.ServerAddressByClientCIDRs = append(out.ServerAddressByClientCIDRs,
			metav1.ServerAddressByClientCIDR{ClientCIDR: "0.0.0.0/0", ServerAddress: host})
	}
	return out
}

func apiGroupList(groups []apidiscoveryv2.APIGroupDiscovery) *metav1.APIGroupList {
	out := &metav1.APIGroupList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups:   []metav1.APIGroup{},
	}
	for _, g := range groups {
		entry := *apiGroup(g)
		entry.TypeMeta = metav1.TypeMeta{}
		out.Groups = append(out.Groups, entry)
	}
	return out
}

// apiGroup lists stale versions too: the unaggregated form has no mark for them,
// and a version that blinks out makes controllers drop its objects.
func apiGroup(g apidiscoveryv2.APIGroupDiscovery) *metav1.APIGroup {
	out := &metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: g.Name}
	for _, v := range g.Versions {
		gv := schema.GroupVersion{Group: g.Name, Version: v.Version}
		out.Versions = append(out.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: v.Version})
	}
	out.PreferredVersion = out.Versions[0]
	return out
}

func apiResourceList(group string, v apidiscoveryv2.APIVersionDiscovery) *metav1.APIResourceList {
	gv := schema.GroupVersion{Group: group, Version: v.Version}
	out := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList"},
		GroupVersion: gv.String(),
		APIResources: []metav1.APIResource{},
	}
	if group != "" { // the core group's has none, as ever since Kubernetes 1.1
		out.APIVersion = "v1"
	}
	for i := range v.Resources {
		out.APIResources = appendResource(out.APIResources, gv, &v.Resources[i])
	}
	return out
}

// appendResource appends a resource and its subresources, each an entry of its
// own. An entry without a kind says that there is nothing to be had there.
func appendResource(out []metav1.APIResource, gv schema.GroupVersion, r *apidiscoveryv2.APIResourceDiscovery) []metav1.APIResource {
	namespaced := r.Scope == apidiscoveryv2.ScopeNamespace
	if hasKind(r.ResponseKind) {
		entry := metav1.APIResource{
			Name: r.Resource, SingularName: r.SingularResource, Namespaced: namespaced,
			Kind: r.ResponseKind.Kind, Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		}
		entry.Group, entry.Version = foreignGroupVersion(gv, r.ResponseKind)
		out = append(out, entry)
	}
	for i := range r.Subresources {
		s := &r.Subresources[i]
		if !hasKind(s.ResponseKind) {
			continue
		}
		entry := metav1.APIResource{
			Name: r.Resource + "/" + s.Subresource, Namespaced: namespaced,
			Kind: s.ResponseKind.Kind, Verbs: s.Verbs,
		}
		entry.Group, entry.Version = foreignGroupVersion(gv, s.ResponseKind)
		out = append(out, entry)
	}
	return out
}

func hasKind(k *metav1.GroupVersionKind) bool { return k != nil && k.Kind != "" }

// foreignGroupVersion returns the group and version of k where they are not those
// of the document it stands in; only then the unaggregated form names them (Scale
// is autoscaling/v1 everywhere).
func foreignGroupVersion(gv schema.GroupVersion, k *metav1.GroupVersionKind) (group, version string) {
	if k.Group == gv.Group && k.Version == gv.Version {
		return "", ""
	}
	return k.Group, k.Version
}
