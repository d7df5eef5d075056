package proxy

import (
	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/engine/source"
	"github.com/mixed-version-proxy/mvp/proxy/discovery"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// resource names a resource of one version, as a map key.
type resource struct{ group, version, name string }

// state is everything that a request looks up and that can change while
// requests run. It is immutable once stored.
type state struct {
	set    *engine.Set
	view   *upstream.View
	merged *discovery.Merged

	replaced chan struct{} // closed when there is a newer state

	// up are the servers that take requests now; healthy those of them that serve a
	// resource; known those that serve it as far as anyone remembers.
	up             []*upstream.State
	healthy, known map[resource][]*upstream.State

	// skewed says that the servers that take requests behave as several versions.
	skewed bool

	// alive has for each healthy server what ends with its health.
	alive map[string]lifetimes

	cluster engine.Cluster

	openapi openAPI

	// fields are the fields of the versions that conversions are between, where known.
	fields map[convert.Version]fieldNames

	// missing are the paths of rules that mean no field.
	missing source.Errors

	// spread is what the servers serve unevenly, tally where requests are counted.
	spread *spread
	tally  *tally
}

// index fills the maps from the view, so that a request pays one look-up.
func (st *state) index() {
	st.healthy = map[resource][]*upstream.State{}
	st.known = map[resource][]*upstream.State{}
	st.up = st.view.Usable(nil)
	usable := map[*upstream.State]bool{}
	for _, server := range st.up {
		usable[server] = true
		st.skewed = st.skewed || minorRank(effectiveVersion(server)) != minorRank(effectiveVersion(st.up[0]))
	}
	for _, server := range st.view.Servers {
		for i := range server.Groups {
			group := &server.Groups[i]
			for j := range group.Versions {
				version := &group.Versions[j]
				for k := range version.Resources {
					key := resource{group.Name, version.Version, version.Resources[k].Resource}
					st.known[key] = append(st.known[key], server)
					if usable[server] {
						st.healthy[key] = append(st.healthy[key], server)
					}
				}
			}
		}
	}
}

// clusterOf says what the healthy servers' versions are; all servers' when none
// is healthy.
func clusterOf(view *upstream.View) engine.Cluster {
	var c engine.Cluster
	for _, pass := range []bool{true, false} {
		first := true
		for _, server := range view.Servers {
			if server.GitVersion == "" || (pass && !server.Healthy) {
				continue
			}
			v := versionOf(server)
			if first {
				c.Min, c.Max, first = v, v, false
				continue
			}
			if v.Compare(c.Min) < 0 {
				c.Min = v
			}
			if v.Compare(c.Max) > 0 {
				c.Max = v
			}
		}
		if !first {
			break
		}
	}
	c.Mixed = c.Min.Major != c.Max.Major || c.Min.Minor != c.Max.Minor
	return c
}

// versionOf is the binary's version of a server.
func versionOf(server *upstream.State) engine.Version {
	return engine.Version{Major: server.Major, Minor: server.Minor, Patch: server.Patch}
}

// effectiveVersion is the version a server behaves as: the emulated one where it
// reports one (KEP-4330), else the binary's.
func effectiveVersion(server *upstream.State) engine.Version {
	if e := server.Emulation; e.Minor != 0 {
		return engine.Version{Major: e.Major, Minor: e.Minor}
	}
	return versionOf(server)
}
