package discovery

import (
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiversion "k8s.io/apimachinery/pkg/version"
)

// Merge returns what clients see: the union of what the sources serve, with the
// versions that conversions add to it. The same input gives the same documents
// byte for byte, in whatever order the sources and conversions come.
//
// A group version stays while any source has it, so it goes only when every
// reachable server says that it is gone and no unreachable one is left that had
// it. It is marked stale when only unreachable servers have it and nothing of it
// is converted.
//
// previous, which may be nil, is the result of the merge before. It keeps the
// preferred versions stable while the servers disagree about them, and what a
// source had said that now says nothing. Documents that stay as they were are
// shared with it, and it is itself the result where nothing changed: a server that
// comes and goes costs little.
func Merge(sources []Source, conversions []Conversion, previous *Merged) *Merged {
	known := knownSources(sources, previous)
	conversions = sortedConversions(conversions)
	if previous.madeOf(known, conversions) {
		return previous
	}
	u := newUnion(known)
	for _, g := range u.groups {
		g.prefer(choosePreferred(g, known, previous))
	}
	u.addConversions(conversions)
	return newMerged(known, conversions, u.groups, previous)
}

// A union is the groups of all sources while they are put together.
type union struct {
	groups []*mergedGroup // in the order in which clients see them
	byName map[string]*mergedGroup
}

type mergedGroup struct {
	name     string
	versions []*mergedVersion // the preferred first, converted ones last
}

type mergedVersion struct {
	name      string
	resources []apidiscoveryv2.APIResourceDiscovery
	live      bool            // a reachable server serves it, or we convert some of it
	serving   map[string]bool // resources that a reachable server serves
	added     map[string]bool // resources that only a conversion serves
}

// newUnion adds the sources one after the other: the first, newest server gives
// the order, the others what it does not have.
func newUnion(sources []Source) *union {
	u := &union{byName: map[string]*mergedGroup{}}
	for _, s := range sources {
		for i := range s.Groups {
			u.group(s.Groups[i].Name).add(&s.Groups[i], s.Reachable)
		}
	}
	// A group without a version cannot be asked for anything.
	u.groups = slices.DeleteFunc(u.groups, func(g *mergedGroup) bool {
		if len(g.versions) > 0 {
			return false
		}
		delete(u.byName, g.name)
		return true
	})
	return u
}

// group returns the group of that name, adding it behind the others.
func (u *union) group(name string) *mergedGroup {
	if g, ok := u.byName[name]; ok {
		return g
	}
	g := &mergedGroup{name: name}
	u.byName[name] = g
	u.groups = append(u.groups, g)
	return g
}

// version returns nil where group or version are not listed.
func (u *union) version(group, version string) *mergedVersion {
	if g, ok := u.byName[group]; ok {
		return g.version(version)
	}
	return nil
}

func (g *mergedGroup) version(name string) *mergedVersion {
	for _, v := range g.versions {
		if v.name == name {
			return v
		}
	}
	return nil
}

// add merges one server's view of the group.
func (g *mergedGroup) add(in *apidiscoveryv2.APIGroupDiscovery, reachable bool) {
	first := len(g.versions) == 0
	for i := range in.Versions {
		v := g.version(in.Versions[i].Version)
		if v == nil {
			v = newVersion(in.Versions[i].Version)
			g.insert(v, first)
		}
		v.add(&in.Versions[i], reachable && in.Versions[i].Freshness != apidiscoveryv2.DiscoveryFreshnessStale)
	}
}

// insert puts v at the end of the order of the server that gives it, else before
// the first version that Kubernetes takes for less mature.
func (g *mergedGroup) insert(v *mergedVersion, atEnd bool) {
	i := len(g.versions)
	if !atEnd {
		if j := slices.IndexFunc(g.versions, func(w *mergedVersion) bool {
			return apiversion.CompareKubeAwareVersionStrings(v.name, w.name) > 0
		}); j >= 0 {
			i = j
		}
	}
	g.versions = slices.Insert(g.versions, i, v)
}

// prefer moves the version of that name to the front, which is what makes it the
// preferred one.
func (g *mergedGroup) prefer(name string) {
	i := slices.IndexFunc(g.versions, func(v *mergedVersion) bool { return v.name == name })
	if i > 0 {
		v := g.versions[i]
		g.versions = slices.Insert(slices.Delete(g.versions, i, i+1), 0, v)
	}
}

// discovery returns the group as an entry of the aggregated document.
func (g *mergedGroup) discovery() apidiscoveryv2.APIGroupDiscovery {
	out := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
	for _, v := range g.versions {
		freshness := apidiscoveryv2.DiscoveryFreshnessStale
		if v.live {
			freshness = apidiscoveryv2.DiscoveryFreshnessCurrent
		}
		out.Versions = append(out.Versions, apidiscoveryv2.APIVersionDiscovery{
			Version: v.name, Resources: v.resources, Freshness: freshness,
		})
	}
	return out
}
