package upstream

import (
	"encoding/json"
	"slices"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
)

// View is what is known of all servers at one moment. It is immutable and safe for
// concurrent use.
type View struct {
	// Servers are in the order of the configuration, always all of them.
	Servers []*State

	// Generation grows by one with every change in more than times and latencies.
	Generation uint64
}

// State is what is known of one server at one moment. It is immutable and safe for
// concurrent use; only its methods Inflight and Streams look at the present.
type State struct {
	// Server makes round trips to it.
	Server *Server

	Name, URL string

	// Healthy says that the server's /readyz answered 200 and that nothing has
	// spoken against it since. Reason is why not, in words for an operator, and
	// empty when healthy.
	Healthy bool
	Reason  string

	// Answering says of a server that is not healthy that it answers requests all the
	// same, as far as can be told: it was healthy, and has not been away since.
	Answering bool

	// Synced says that what the server serves is known. Stale says that the last
	// poll failed, so that what is known may be old.
	Synced, Stale bool

	// Problem is why what the server serves could not be read the last time, in
	// words for an operator; empty when it could.
	Problem string

	// GitVersion is as the server reports it (v1.32.13). Major, Minor and Patch are
	// taken from it, zero while unknown.
	GitVersion          string
	Major, Minor, Patch int

	// Emulation is the version that the server behaves as (KEP-4330). It is the
	// binary's where the server reports none.
	Emulation Emulation

	// Groups is what the server itself serves, the core group under the name "".
	// A version whose Freshness is Stale has the resources it was last seen with.
	Groups []apidiscoveryv2.APIGroupDiscovery

	// OpenAPIV3 maps a path of the OpenAPI v3 index ("apis/apps/v1") to its
	// serverRelativeURL. Nil while unknown.
	OpenAPIV3 map[string]string

	// CRDs are the CustomResourceDefinitions by their name ("<plural>.<group>").
	// Nil while unknown: CRDsForbidden says that the server does not let MVP's own
	// credential read them.
	CRDs          map[string]*CRD
	CRDsForbidden bool

	// Unwatched are the resources ("apiservices.apiregistration.k8s.io") that the
	// server does not let MVP's own credential watch, so that only polls, seconds
	// later, show what their changes bring. Nil: none.
	Unwatched []string

	// Since is when the server became healthy, or when it was first found that it is
	// not; zero while neither is known. LastDiscovery is when it was last read what
	// the server serves, zero before the first time.
	Since, LastDiscovery time.Time

	// LastProbe is when /readyz was last looked at, Latency the moving average of
	// the time that took, zero before the first.
	LastProbe time.Time
	Latency   time.Duration

	index index // of Groups
}

// Emulation is the version of Kubernetes a server behaves as.
type Emulation struct{ Major, Minor int }

// Inflight is the number of requests that are now under way to the server, without
// Long ones and upgrades.
func (s *State) Inflight() int { return s.Server.Inflight() }

// Streams is the number of Long requests and upgraded connections that are now
// open to the server.
func (s *State) Streams() int { return s.Server.Streams() }

// CRD is a CustomResourceDefinition, reduced to what conversions ask.
type CRD struct {
	Group, Plural, Kind string
	Versions            map[string]CRDVersion // by name ("v1beta1")

	uid, resourceVersion string // tell whether it changed
	established          bool   // what is served of it is served
}

// CRDVersion is one version of a CRD. It may be one that is no longer served.
type CRDVersion struct {
	Served, Storage bool
	Schema          json.RawMessage // openAPIV3Schema, nil without one
}

// Serves reports whether the server serves the resource. The core group is "".
func (s *State) Serves(group, version, resource string) bool {
	_, ok := s.index[gvr{group, version, resource}]
	return ok
}

// ServesVerb reports whether the server serves the verb (get, list, watch, create,
// update, patch, delete, deletecollection) on the resource, or on its subresource
// where that is not "".
func (s *State) ServesVerb(group, version, resource, subresource, verb string) bool {
	r, ok := s.index[gvr{group, version, resource}]
	if !ok {
		return false
	}
	if subresource == "" {
		return slices.Contains(r.Verbs, verb)
	}
	for i := range r.Subresources {
		if r.Subresources[i].Subresource == subresource {
			return slices.Contains(r.Subresources[i].Verbs, verb)
		}
	}
	return false
}

// Healthy appends the healthy servers to dst.
func (v *View) Healthy(dst []*State) []*State {
	for _, s := range v.Servers {
		if s.Healthy {
			dst = append(dst, s)
		}
	}
	return dst
}

// Usable appends the servers to dst that requests go to: the healthy ones, or, if there
// is none, those that answer all the same. When all fail their probes at once, MVP's
// credential may have expired, or their etcd may be slow, or the last one shuts down and
// serves on for a while.
func (v *View) Usable(dst []*State) []*State {
	healthy := v.Healthy(dst)
	if len(healthy) > len(dst) {
		return healthy
	}
	for _, s := range v.Servers {
		if s.Answering {
			dst = append(dst, s)
		}
	}
	return dst
}

type gvr struct{ group, version, resource string }

type index map[gvr]*apidiscoveryv2.APIResourceDiscovery

// indexGroups makes the look-up table of groups, whose resources it points into.
func indexGroups(groups []apidiscoveryv2.APIGroupDiscovery) index {
	ix := index{}
	for g := range groups {
		for v := range groups[g].Versions {
			version := &groups[g].Versions[v]
			for r := range version.Resources {
				resource := &version.Resources[r]
				ix[gvr{groups[g].Name, version.Version, resource.Resource}] = resource
			}
		}
	}
	return ix
}
