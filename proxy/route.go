package proxy

import (
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// wanted is the resource that the server must serve: the client's own, or the
// one its request is converted to.
func (x *exchange) wanted() resource {
	if x.conv != nil {
		return resource{x.conv.To.Group, x.conv.To.Version, x.conv.To.Resource}
	}
	return resource{x.req.Group, x.req.Version, x.req.Resource}
}

// choose picks the server that answers.
func (x *exchange) choose() error {
	servers, err := x.capable()
	if err != nil {
		return err
	}
	var scores []float64
	if x.decision.Routes() {
		if scores, err = x.decision.Scores(routeViews(servers)); err != nil {
			return err
		}
	}
	var room [usualServers]rankedServer
	ranked := x.rank(room[:0], servers, scores)
	if len(ranked) == 0 {
		return unavailable("the policies %s allow none of the %d kube-apiservers that could answer %s",
			strings.Join(x.decision.Policies, ", "), len(servers), x.req.String())
	}
	x.server = x.pick(ranked)
	x.noteSkew(servers)
	x.hearRoutes(servers)
	return nil
}

// usualServers is how many servers are ranked without an allocation.
const usualServers = 8

// rankedServer is a server that may answer. What a policy prefers goes before what
// the guard does.
type rankedServer struct {
	state *upstream.State
	score float64 // by policies
	guard int     // by schema
	doubt int     // 1: it may have been killed a moment ago
	load  int     // requests under way
}

// rank appends the servers that the policies allow. No scores are those of policies
// that have no say.
func (x *exchange) rank(dst []rankedServer, servers []*upstream.State, scores []float64) []rankedServer {
	guarded := x.guarded()
	for i, server := range servers {
		r := rankedServer{state: server, load: server.Inflight()}
		if scores != nil {
			if scores[i] == engine.Never {
				continue
			}
			r.score = scores[i]
		}
		if server.Server.Doubtful() {
			r.doubt = 1
		}
		if guarded {
			r.guard = minorRank(effectiveVersion(server))
		}
		dst = append(dst, r)
	}
	return dst
}

// served reports whether a server that this request can reach serves the
// resource.
func (x *exchange) served(group, version, name string) bool {
	return len(x.reachable(x.st.healthy[resource{group, version, name}])) > 0
}

// known reports whether a server serves the resource, healthy or not.
func (x *exchange) known(group, version, name string) bool {
	return len(x.st.known[resource{group, version, name}]) > 0
}

// reachable leaves out of servers those that this request could not reach, and those that
// have gone down since the state was made, as long as there are others: to make another
// state takes its time, in which a server that drains is gone.
func (x *exchange) reachable(servers []*upstream.State) []*upstream.State {
	down := func(s *upstream.State) bool { return s.Healthy && s.Server.Down() }
	if len(x.failed) == 0 && !slices.ContainsFunc(servers, down) {
		return servers
	}
	reached := slices.DeleteFunc(slices.Clone(servers), func(s *upstream.State) bool {
		return slices.ContainsFunc(x.failed, func(f *upstream.State) bool { return f.Name == s.Name })
	})
	if !slices.ContainsFunc(reached, func(s *upstream.State) bool { return !down(s) }) {
		return reached
	}
	return slices.DeleteFunc(reached, down)
}

// errNoServer is the answer when there is nobody to ask.
var errNoServer = unavailable("no kube-apiserver behind the proxy is healthy; see /upstreams of its admin listener for the reasons")

// capable gives the servers that take requests now and serve what is asked. When
// none ever served it, any server answers, with its own 404.
func (x *exchange) capable() ([]*upstream.State, error) {
	healthy := x.reachable(x.st.up)
	if len(healthy) == 0 {
		return nil, errNoServer
	}
	if !x.req.IsResource {
		return x.capableOfPath(healthy)
	}
	want := x.wanted()
	if servers := x.reachable(x.st.healthy[want]); len(servers) > 0 {
		return x.capableOfVerb(servers, want)
	}
	if x.st.merged == nil || x.st.merged.Empty() {
		return nil, unavailable("no kube-apiserver has said yet what it serves")
	}
	if servers := x.st.known[want]; len(servers) > 0 {
		return nil, unavailable("%s is served by %s, which cannot be reached now", gvr(want), servers[0].Name)
	}
	for _, server := range x.st.view.Servers {
		if !server.Synced {
			return nil, unavailable("%s may be served by %s, which has not said yet what it serves; if that server is gone for good, take it out of the configuration",
				gvr(want), server.Name)
		}
	}
	return healthy, nil
}

// capableOfVerb narrows the servers of a resource to those that have the
// subresource and the verb, too: a newer one may have pods/resize when an older
// one has pods only. When none ever had it, any says so in its own words.
func (x *exchange) capableOfVerb(servers []*upstream.State, want resource) ([]*upstream.State, error) {
	capable := func(s *upstream.State) bool {
		return s.ServesVerb(want.group, want.version, want.name, x.req.Subresource, x.req.Verb)
	}
	switch {
	case !slices.ContainsFunc(servers, func(s *upstream.State) bool { return !capable(s) }):
		return servers, nil
	case slices.ContainsFunc(servers, capable):
		return slices.DeleteFunc(slices.Clone(servers), func(s *upstream.State) bool { return !capable(s) }), nil
	}
	if i := slices.IndexFunc(x.st.known[want], capable); i >= 0 {
		return nil, unavailable("%s of %s is served by %s, which cannot be reached now",
			x.req.Verb, strings.TrimSuffix(gvr(want)+"/"+x.req.Subresource, "/"), x.st.known[want][i].Name)
	}
	return servers, nil
}

// capableOfPath chooses for what is not a resource. /version comes from the
// lowest version, so that a client picks what every server can do; an OpenAPI
// document from a server that has it.
func (x *exchange) capableOfPath(healthy []*upstream.State) ([]*upstream.State, error) {
	switch x.req.Path {
	case "/version", "/version/":
		return slices.SortedStableFunc(slices.Values(healthy), func(a, b *upstream.State) int {
			return versionOf(a).Compare(versionOf(b))
		})[:1], nil
	case "/openapi/v2":
		return slices.SortedStableFunc(slices.Values(healthy), func(a, b *upstream.State) int {
			return versionOf(b).Compare(versionOf(a))
		})[:1], nil
	}
	if path, ok := openAPIPath(x.req.Path); ok {
		servers, listed := x.st.openapi.serversOf(healthy, path, x.req.Query)
		if listed && len(servers) == 0 {
			return nil, unavailable("no kube-apiserver that has the OpenAPI document of %s can be reached now", path)
		}
		if listed {
			return servers, nil
		}
	}
	return healthy, nil
}

func routeViews(servers []*upstream.State) []*engine.Upstream {
	views := make([]*engine.Upstream, len(servers))
	for i, server := range servers {
		views[i] = routeView(server)
	}
	return views
}

// routeView is what route expressions see of a server.
func routeView(server *upstream.State) *engine.Upstream {
	return &engine.Upstream{
		Name:      server.Name,
		Version:   versionOf(server),
		Emulation: effectiveVersion(server),
		Healthy:   server.Healthy,
		Inflight:  server.Inflight(),
		Latency:   server.Latency,
		Serves: func(gv, name string) bool {
			group, version, ok := strings.Cut(gv, "/")
			if !ok { // the core group: "v1"
				group, version = "", gv
			}
			return server.Serves(group, version, name)
		},
	}
}

func groupVersion(r resource) string {
	if r.group == "" {
		return r.version
	}
	return r.group + "/" + r.version
}

// gvr writes a resource as messages name it.
func gvr(r resource) string { return groupVersion(r) + " " + r.name }
