package discovery

import (
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
)

func newVersion(name string) *mergedVersion {
	return &mergedVersion{name: name, serving: map[string]bool{}, added: map[string]bool{}}
}

// add merges one server's view of the version. live: it is what the server
// serves now.
func (v *mergedVersion) add(in *apidiscoveryv2.APIVersionDiscovery, live bool) {
	v.live = v.live || live
	for i := range in.Resources {
		r := &in.Resources[i]
		if live {
			v.serving[r.Resource] = true
		}
		if have := v.resource(r.Resource); have != nil {
			mergeResource(have, r)
		} else {
			v.resources = append(v.resources, *r.DeepCopy())
		}
	}
}

func (v *mergedVersion) resource(name string) *apidiscoveryv2.APIResourceDiscovery {
	for i := range v.resources {
		if v.resources[i].Resource == name {
			return &v.resources[i]
		}
	}
	return nil
}

// mergeResource adds to have what only in has. Where both say something else,
// have stays: it comes from the newer server.
func mergeResource(have, in *apidiscoveryv2.APIResourceDiscovery) {
	if have.ResponseKind == nil && in.ResponseKind != nil {
		have.ResponseKind = in.ResponseKind.DeepCopy()
	}
	have.Verbs = addStrings(have.Verbs, in.Verbs)
	have.ShortNames = addStrings(have.ShortNames, in.ShortNames)
	have.Categories = addStrings(have.Categories, in.Categories)
	for i := range in.Subresources {
		s := &in.Subresources[i]
		j := slices.IndexFunc(have.Subresources, func(h apidiscoveryv2.APISubresourceDiscovery) bool {
			return h.Subresource == s.Subresource
		})
		if j < 0 {
			have.Subresources = append(have.Subresources, *s.DeepCopy())
			continue
		}
		mergeSubresource(&have.Subresources[j], s)
	}
}

func mergeSubresource(have, in *apidiscoveryv2.APISubresourceDiscovery) {
	if have.ResponseKind == nil && in.ResponseKind != nil {
		have.ResponseKind = in.ResponseKind.DeepCopy()
	}
	have.Verbs = addStrings(have.Verbs, in.Verbs)
	for _, k := range in.AcceptedTypes {
		if !slices.Contains(have.AcceptedTypes, k) {
			have.AcceptedTypes = append(have.AcceptedTypes, k)
		}
	}
}

// addStrings appends to have what only in has; have keeps its order.
func addStrings(have, in []string) []string {
	for _, s := range in {
		if !slices.Contains(have, s) {
			have = append(have, s)
		}
	}
	return have
}
