package proxy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// capability is a resource, or a subresource of it, that a server may have.
type capability struct {
	resource
	sub string // "" is the resource itself
}

func (c capability) String() string {
	if c.sub == "" {
		return gvr(c.resource)
	}
	return gvr(c.resource) + "/" + c.sub
}

func (c capability) compare(o capability) int {
	return cmp.Or(strings.Compare(c.group, o.group), strings.Compare(c.version, o.version),
		strings.Compare(c.name, o.name), strings.Compare(c.sub, o.sub))
}

// part is something that some of the servers serve and others do not: verbs of a
// resource or of a subresource.
type part struct {
	capability
	verbs            []string // sorted
	servers, missing []string // names, in the order of the view

	// whole says that this is all that any server has of the capability, so that a
	// server either has it or lacks it.
	whole bool
}

// String is the resource, with the verbs where other servers have others of it.
func (p *part) String() string {
	if p.whole {
		return p.capability.String()
	}
	return p.capability.String() + " (" + strings.Join(p.verbs, ", ") + ")"
}

// spread is what the servers serve unevenly. It is immutable. A server that has
// not said yet what it serves is left out: nothing is known of what it lacks.
type spread struct {
	sources []spreadSource // what it was made from
	parts   []*part        // sorted
}

// spreadSource is one server's share. The groups of a state are never changed, only
// replaced, so that their address tells whether they are the same.
type spreadSource struct {
	name   string
	groups *apidiscoveryv2.APIGroupDiscovery
}

// spreadOf compares what the servers of the view serve. It returns old when nothing
// changed of that.
func spreadOf(view *upstream.View, old *spread) *spread {
	next := &spread{}
	var known []*upstream.State
	for _, server := range view.Servers {
		if server.Synced && len(server.Groups) > 0 {
			known = append(known, server)
			next.sources = append(next.sources, spreadSource{server.Name, &server.Groups[0]})
		}
	}
	if old != nil && slices.Equal(old.sources, next.sources) {
		return old
	}
	if len(known) > 1 {
		next.parts = partsOf(known)
	}
	return next
}

// holding is the verbs that one server, by its place, has of a capability.
type holding struct {
	server int
	verbs  []string
}

func partsOf(servers []*upstream.State) []*part {
	holdings := map[capability][]holding{}
	for i, server := range servers {
		collect(server.Groups, func(c capability, verbs []string) {
			holdings[c] = append(holdings[c], holding{i, verbs})
		})
	}
	var parts []*part
	for c, held := range holdings {
		if even(held, len(servers)) {
			continue
		}
		for _, p := range split(c, held, servers) {
			if !impliedBy(p, holdings[capability{resource: c.resource}], servers) {
				parts = append(parts, p)
			}
		}
	}
	slices.SortFunc(parts, func(a, b *part) int {
		return cmp.Or(a.compare(b.capability), slices.Compare(a.verbs, b.verbs))
	})
	return parts
}

// collect calls f for each resource and subresource of groups.
func collect(groups []apidiscoveryv2.APIGroupDiscovery, f func(capability, []string)) {
	for i := range groups {
		for j := range groups[i].Versions {
			version := &groups[i].Versions[j]
			for k := range version.Resources {
				r := &version.Resources[k]
				key := resource{groups[i].Name, version.Version, r.Resource}
				f(capability{resource: key}, r.Verbs)
				for l := range r.Subresources {
					f(capability{key, r.Subresources[l].Subresource}, r.Subresources[l].Verbs)
				}
			}
		}
	}
}

// even reports whether all of n servers have a capability with the same verbs, as
// nearly all of them have.
func even(held []holding, n int) bool {
	if len(held) != n {
		return false
	}
	for _, h := range held[1:] {
		if !slices.Equal(h.verbs, held[0].verbs) {
			return false
		}
	}
	return true
}

// split gives the verbs of one capability that not all servers have, together those
// that the same servers have.
func split(c capability, held []holding, servers []*upstream.State) []*part {
	have := map[string][]bool{} // by verb, which servers
	for _, h := range held {
		for _, verb := range h.verbs {
			if have[verb] == nil {
				have[verb] = make([]bool, len(servers))
			}
			have[verb][h.server] = true
		}
	}
	var parts []*part
	for _, verb := range slices.Sorted(maps.Keys(have)) {
		p := newPart(c, have[verb], servers)
		if len(p.missing) == 0 {
			continue
		}
		i := slices.IndexFunc(parts, func(o *part) bool { return slices.Equal(o.servers, p.servers) })
		if i < 0 {
			i, parts = len(parts), append(parts, p)
		}
		parts[i].verbs = append(parts[i].verbs, verb)
	}
	if len(parts) == 1 {
		parts[0].whole = len(parts[0].verbs) == len(have)
	}
	return parts
}

func newPart(c capability, has []bool, servers []*upstream.State) *part {
	p := &part{capability: c}
	for i, server := range servers {
		if has[i] {
			p.servers = append(p.servers, server.Name)
		} else {
			p.missing = append(p.missing, server.Name)
		}
	}
	return p
}

// impliedBy reports whether a subresource is missing exactly where its resource,
// which is held so, is missing: whoever reads that the resource is missing knows.
func impliedBy(p *part, held []holding, servers []*upstream.State) bool {
	if p.sub == "" || !p.whole {
		return false
	}
	has := make([]bool, len(servers))
	for _, h := range held {
		has[h.server] = true
	}
	return slices.Equal(newPart(p.capability, has, servers).servers, p.servers)
}

// list is all that is served unevenly; the nil spread has nothing.
func (s *spread) list() []*part {
	if s == nil {
		return nil
	}
	return s.parts
}

// only lists what no other server serves than that of the name, lacks what it does
// not serve and another does.
func (s *spread) only(server string) (only, lacks []string) {
	for _, p := range s.list() {
		switch {
		case slices.Contains(p.missing, server):
			lacks = append(lacks, p.String())
		case len(p.servers) == 1 && p.servers[0] == server:
			only = append(only, p.String())
		}
	}
	return only, lacks
}
