package dryrun

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mixed-version-proxy/mvp/engine"
)

// Server is a kube-apiserver as policies see it.
type Server struct {
	Name string

	// Version is its own version, Emulation the one that it emulates; zero: not
	// known, none.
	Version, Emulation engine.Version

	// Down says that it is not healthy: it is asked nothing.
	Down bool

	// Serves reports whether it serves a resource. Nil: everything but what policies
	// convert.
	Serves func(group, version, resource string) bool
}

// Ranked is a server that may answer a request.
type Ranked struct {
	Name string `json:"name"`

	// Score is what the policies say: the servers with the highest one are asked.
	Score float64 `json:"score"`
}

// Best are the names of the servers that policies like best; it is among them that
// a proxy chooses by other things.
func (r *Result) Best() []string {
	var names []string
	for _, u := range r.Upstreams {
		if u.Score == r.Upstreams[0].Score {
			names = append(names, u.Name)
		}
	}
	return names
}

// serversOf fills in what servers leave out.
func serversOf(set *engine.Set, servers []Server) []Server {
	if len(servers) == 0 {
		servers = []Server{{Name: "server"}}
	}
	filled := slices.Clone(servers)
	for i := range filled {
		if filled[i].Serves == nil {
			filled[i].Serves = Unconverted(set)
		}
	}
	return filled
}

// Unconverted takes every resource for served that no policy converts from.
func Unconverted(set *engine.Set) func(group, version, resource string) bool {
	from := map[schema.GroupVersionResource]bool{}
	for _, c := range set.Conversions() {
		from[schema.GroupVersionResource{Group: c.From.Group, Version: c.From.Version, Resource: c.From.Resource}] = true
	}
	return func(group, version, resource string) bool {
		return !from[schema.GroupVersionResource{Group: group, Version: version, Resource: resource}]
	}
}

func served(servers []Server, group, version, resource string) bool {
	return slices.ContainsFunc(servers, func(s Server) bool { return !s.Down && s.Serves(group, version, resource) })
}

// known reports whether one of servers has the resource, healthy or not.
func known(servers []Server, group, version, resource string) bool {
	return slices.ContainsFunc(servers, func(s Server) bool { return s.Serves(group, version, resource) })
}

// clusterOf is what the servers that take requests are together.
func clusterOf(servers []Server) engine.Cluster {
	var versions []engine.Version
	for _, s := range servers {
		if !s.Down && !s.Version.IsZero() {
			versions = append(versions, s.Version)
		}
	}
	if len(versions) == 0 {
		return engine.Cluster{}
	}
	c := engine.Cluster{
		Min: slices.MinFunc(versions, engine.Version.Compare),
		Max: slices.MaxFunc(versions, engine.Version.Compare),
	}
	c.Mixed = c.Min.Major != c.Max.Major || c.Min.Minor != c.Max.Minor
	return c
}

// unavailableError is a request that no server may be asked.
type unavailableError struct{ error }

func (unavailableError) code() int { return http.StatusServiceUnavailable }

// choose ranks the servers that may answer. Where none serves what is wanted, any
// of them says so.
func (r *run) choose() error {
	up := slices.DeleteFunc(slices.Clone(r.servers), func(s Server) bool { return s.Down })
	if len(up) == 0 {
		return unavailableError{errors.New("no kube-apiserver is healthy")}
	}
	capable := slices.DeleteFunc(slices.Clone(up), func(s Server) bool { return !r.wants(&s) })
	if len(capable) == 0 {
		capable = up
	}
	for i := range capable {
		score, ok, err := r.decision.Score(viewOf(&capable[i]))
		if err != nil {
			return err
		}
		if ok {
			r.Upstreams = append(r.Upstreams, Ranked{capable[i].Name, score})
		}
	}
	if len(r.Upstreams) == 0 {
		return unavailableError{fmt.Errorf("the policies %s allow none of the %d kube-apiservers that could answer %s",
			strings.Join(r.Policies, ", "), len(capable), r.Request.String())}
	}
	slices.SortStableFunc(r.Upstreams, func(a, b Ranked) int { return cmp.Compare(b.Score, a.Score) })
	return nil
}

// wants reports whether s serves what the request asks for, or is converted to.
func (r *run) wants(s *Server) bool {
	switch {
	case !r.Request.IsResource:
		return true
	case r.Conversion != nil:
		return s.Serves(r.Conversion.To.Group, r.Conversion.To.Version, r.Conversion.To.Resource)
	}
	return s.Serves(r.Request.Group, r.Request.Version, r.Request.Resource)
}

// views are what routes see of the servers that are up.
func (r *run) views() []*engine.Upstream {
	var views []*engine.Upstream
	for i := range r.servers {
		if !r.servers[i].Down {
			views = append(views, viewOf(&r.servers[i]))
		}
	}
	return views
}

// viewOf is what a route sees of s.
func viewOf(s *Server) *engine.Upstream {
	return &engine.Upstream{
		Name: s.Name, Version: s.Version, Emulation: s.Emulation, Healthy: !s.Down,
		Serves: func(groupVersion, resource string) bool {
			gv, err := schema.ParseGroupVersion(groupVersion)
			return err == nil && s.Serves(gv.Group, gv.Version, resource)
		},
	}
}
