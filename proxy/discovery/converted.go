package discovery

import (
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// addConversions lists what the proxy serves by conversion. Resources that a
// server serves itself stay as that server has them. A converted version comes
// behind all others of its group, so that it is preferred only where it is alone,
// and a chart that asks what there is still finds the better one.
func (u *union) addConversions(conversions []Conversion) {
	for _, c := range u.possible(conversions) {
		target := u.version(c.ToGroup, c.ToVersion)
		live := target.serving[c.ToResource]
		v := u.version(c.FromGroup, c.FromVersion)
		if v != nil && v.resource(c.fromResource()) != nil {
			// A server had it and is away: converting serves it meanwhile, and
			// clients must not skip the version for being stale.
			v.live = v.live || live
			continue
		}
		if v == nil {
			v = newVersion(c.FromVersion)
			g := u.group(c.FromGroup)
			g.versions = append(g.versions, v)
		}
		v.live = v.live || live
		v.added[c.fromResource()] = true
		v.resources = append(v.resources, convertedResource(target.resource(c.ToResource), c))
	}
}

// possible returns, sorted, the conversions whose target a server serves, at most
// one for a resource, those with a target that is served now first. The target of
// a conversion is never itself a converted resource: a chain of conversions is one.
func (u *union) possible(conversions []Conversion) []Conversion {
	var now, stale []Conversion
	for _, c := range sortedConversions(conversions) {
		target := u.version(c.ToGroup, c.ToVersion)
		switch {
		case target == nil || target.resource(c.ToResource) == nil:
		case c.FromGroup == c.ToGroup && c.FromVersion == c.ToVersion && c.fromResource() == c.ToResource:
		case target.serving[c.ToResource]:
			now = append(now, c)
		default:
			stale = append(stale, c)
		}
	}
	type key struct{ group, version, resource string }
	seen := map[key]bool{}
	out := slices.DeleteFunc(append(now, stale...), func(c Conversion) bool {
		k := key{c.FromGroup, c.FromVersion, c.fromResource()}
		defer func() { seen[k] = true }()
		return seen[k]
	})
	return sortedConversions(out)
}

// convertedResource returns the entry of a resource that is converted to target:
// the target's in all but the names that the conversion changes.
func convertedResource(target *apidiscoveryv2.APIResourceDiscovery, c Conversion) apidiscoveryv2.APIResourceDiscovery {
	out := *target.DeepCopy()
	out.Resource = c.fromResource()
	if out.ResponseKind == nil {
		return out
	}
	old := *out.ResponseKind
	if c.FromKind != "" && c.FromKind != old.Kind {
		out.SingularResource = strings.ToLower(c.FromKind)
	}
	*out.ResponseKind = c.convertedKind(old, old.Kind)
	for i := range out.Subresources {
		s := &out.Subresources[i]
		if s.ResponseKind != nil {
			*s.ResponseKind = c.convertedKind(*s.ResponseKind, old.Kind)
		}
		for j := range s.AcceptedTypes {
			s.AcceptedTypes[j] = c.convertedKind(s.AcceptedTypes[j], old.Kind)
		}
	}
	return out
}

// convertedKind returns k as clients see it: the target's own kind (as /status
// answers) under the client's group version, any other (Scale, Eviction) as it is.
// Built-in resources leave group and version empty, which means those of the
// document they stand in: the client's for the converted kind, so they stay empty,
// but no longer those of another kind.
func (c Conversion) convertedKind(k metav1.GroupVersionKind, targetKind string) metav1.GroupVersionKind {
	implicit := k.Group == "" && k.Version == ""
	own := implicit || k.Group == c.ToGroup && k.Version == c.ToVersion
	if k.Kind != targetKind || !own {
		if implicit && k.Kind != "" {
			k.Group, k.Version = c.ToGroup, c.ToVersion
		}
		return k
	}
	if !implicit {
		k.Group, k.Version = c.FromGroup, c.FromVersion
	}
	if c.FromKind != "" {
		k.Kind = c.FromKind
	}
	return k
}
