package discovery

import (
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
)

// choosePreferred returns the version of g that clients are told to prefer:
//
//  1. what all servers prefer, reachable or not: a control plane that is not in
//     the middle of an upgrade looks as it is;
//  2. while they disagree, what clients were told before;
//  3. with nothing before, the newest server's choice among the versions that
//     all reachable servers serve, so that the answer holds until the upgrade is
//     done.
//
// A version that nobody serves at the moment is taken only if all are such.
func choosePreferred(g *mergedGroup, sources []Source, previous *Merged) string {
	views := viewsOf(g.name, sources)
	if v := g.version(agreed(views)); v != nil && v.live {
		return v.name
	}
	if name, ok := previous.PreferredVersion(g.name); ok {
		if v := g.version(name); v != nil && (v.live || !g.live()) {
			return name
		}
	}
	return firstPreferred(g, views)
}

func (g *mergedGroup) live() bool {
	return slices.ContainsFunc(g.versions, func(v *mergedVersion) bool { return v.live })
}

// A groupView is one server's view of one group.
type groupView struct {
	reachable bool
	preferred string
	versions  []string // those that are not stale
}

// viewsOf returns the views of the servers that have the group.
func viewsOf(group string, sources []Source) []groupView {
	var views []groupView
	for _, s := range sources {
		for i := range s.Groups {
			if s.Groups[i].Name == group && len(s.Groups[i].Versions) > 0 {
				views = append(views, newView(&s.Groups[i], s.Reachable))
				break
			}
		}
	}
	return views
}

func newView(g *apidiscoveryv2.APIGroupDiscovery, reachable bool) groupView {
	view := groupView{reachable: reachable, preferred: g.Versions[0].Version}
	for _, v := range g.Versions {
		if v.Freshness != apidiscoveryv2.DiscoveryFreshnessStale {
			view.versions = append(view.versions, v.Version)
		}
	}
	if len(view.versions) > 0 {
		view.preferred = view.versions[0] // as client-go reads an aggregated document
	}
	return view
}

// agreed returns the version that all views prefer, "" if they differ.
func agreed(views []groupView) string {
	for _, v := range views {
		if v.preferred != views[0].preferred {
			return ""
		}
	}
	if len(views) == 0 {
		return ""
	}
	return views[0].preferred
}

// firstPreferred chooses without a past: by the merged order, first among what
// some reachable server prefers and all serve, then among what all serve, then
// among what one serves.
func firstPreferred(g *mergedGroup, views []groupView) string {
	views = slices.DeleteFunc(slices.Clone(views), func(v groupView) bool { return !v.reachable })
	var byAll, byOne string
	for _, v := range g.versions {
		if !v.live {
			continue
		}
		if byOne == "" {
			byOne = v.name
		}
		if !slices.ContainsFunc(views, func(w groupView) bool { return !slices.Contains(w.versions, v.name) }) {
			if slices.ContainsFunc(views, func(w groupView) bool { return w.preferred == v.name }) {
				return v.name
			}
			if byAll == "" {
				byAll = v.name
			}
		}
	}
	switch {
	case byAll != "":
		return byAll
	case byOne != "":
		return byOne
	}
	return g.versions[0].name
}
