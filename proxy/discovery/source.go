package discovery

import (
	"cmp"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
)

// A Source is what one kube-apiserver says that it serves.
type Source struct {
	// Server names the server. It only orders servers of the same version and
	// finds a server again in the previous merge.
	Server string

	// Version is the server's version as /version reports it ("v1.32.4"). The
	// newest server's order of groups and versions leads. Empty: older than any.
	Version string

	// Reachable is false for a server whose Groups are the last known ones. They
	// stay listed; what no reachable server serves too is marked stale.
	Reachable bool

	// Groups are the server's groups in its own order, each with its preferred
	// version first; the core group has the name "". A server without any is one
	// that has not said anything yet. Merge keeps references to them: they must
	// not change afterwards.
	Groups []apidiscoveryv2.APIGroupDiscovery
}

// same reports whether both say the same. Groups that are not the same slice count
// as others: what a server serves is a new slice only when it changed.
func (s Source) same(o Source) bool {
	sameGroups := len(s.Groups) == len(o.Groups) && (len(s.Groups) == 0 || &s.Groups[0] == &o.Groups[0])
	return s.Server == o.Server && s.Version == o.Version && s.Reachable == o.Reachable && sameGroups
}

// A Conversion is a resource of one group version that the proxy serves by
// converting to that of another.
type Conversion struct {
	FromGroup, FromVersion string // what clients ask for
	FromResource           string // "": the name of ToResource
	FromKind               string // "": the target's kind

	ToGroup, ToVersion, ToResource string // what servers serve
	ToKind                         string // "": the target's kind, as discovery has it
}

func (c Conversion) fromResource() string { return cmp.Or(c.FromResource, c.ToResource) }

// sortedConversions orders conversions so that Merge does not depend on the
// order given: by what they serve, then by the newest target.
func sortedConversions(in []Conversion) []Conversion {
	out := slices.Clone(in)
	slices.SortStableFunc(out, func(a, b Conversion) int {
		return cmp.Or(
			strings.Compare(a.FromGroup, b.FromGroup),
			apiversion.CompareKubeAwareVersionStrings(b.FromVersion, a.FromVersion),
			strings.Compare(a.fromResource(), b.fromResource()),
			strings.Compare(a.ToGroup, b.ToGroup),
			apiversion.CompareKubeAwareVersionStrings(b.ToVersion, a.ToVersion),
			strings.Compare(a.ToResource, b.ToResource),
			strings.Compare(a.FromKind, b.FromKind),
			strings.Compare(a.ToKind, b.ToKind),
		)
	})
	return out
}

// knownSources returns the sources that say something, newest server first. A
// server that says nothing is one that we have just lost sight of, so it keeps,
// as an unreachable one, what it said before: a group version goes only when
// every server positively says so.
func knownSources(in []Source, previous *Merged) []Source {
	out := make([]Source, 0, len(in))
	for _, s := range in {
		if len(s.Groups) == 0 && previous != nil {
			i := slices.IndexFunc(previous.sources, func(p Source) bool { return p.Server == s.Server })
			if i >= 0 {
				s.Groups, s.Reachable = previous.sources[i].Groups, false
			}
		}
		if len(s.Groups) > 0 {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b Source) int { return compareServers(a.Version, a.Server, b.Version, b.Server) })
	return out
}

// compareServers orders servers by version, the newest first, then by name.
func compareServers(aVersion, aName, bVersion, bName string) int {
	return cmp.Or(compareVersions(bVersion, aVersion), strings.Compare(aName, bName))
}

// compareVersions compares server versions; one that cannot be read is older
// than any that can.
func compareVersions(a, b string) int {
	va, errA := utilversion.ParseGeneric(a)
	vb, errB := utilversion.ParseGeneric(b)
	switch {
	case errA != nil && errB != nil:
		return strings.Compare(a, b)
	case errA != nil:
		return -1
	case errB != nil:
		return 1
	case va.LessThan(vb):
		return -1
	case vb.LessThan(va):
		return 1
	}
	return 0
}
