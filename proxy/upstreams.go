package proxy

import (
	"fmt"
	"slices"
	"time"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// UpstreamsReport is what /upstreams answers: the kube-apiservers, and which requests
// not all of them can answer.
type UpstreamsReport struct {
	Time time.Time `json:"time"`
	// Generation counts the changes in what is known of the servers.
	Generation uint64            `json:"generation"`
	Servers    []ServerReport    `json:"servers"`
	Partial    []PartialReport   `json:"partial"`
	Converted  []ConvertedReport `json:"converted"`
}

// ServerReport is what is known of one kube-apiserver.
type ServerReport struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	Version string `json:"version,omitempty"`
	// Emulation is the version that the server behaves as, where it says so.
	Emulation string `json:"emulationVersion,omitempty"`

	Healthy bool `json:"healthy"`
	// Reason is why the server is not healthy, in words.
	Reason string `json:"reason,omitempty"`
	// Since is when it became healthy, or was first found not to be.
	Since     time.Time `json:"since,omitzero"`
	LastProbe time.Time `json:"lastProbe,omitzero"`

	// Synced says that it is known what the server serves, as of LastDiscovery, Stale
	// that this may be out of date.
	Synced        bool      `json:"synced"`
	Stale         bool      `json:"stale,omitempty"`
	LastDiscovery time.Time `json:"lastDiscovery,omitzero"`
	// Problem is why what the server serves could not be read the last time.
	Problem string `json:"problem,omitempty"`
	// CRDsForbidden says that MVP's own credential may not read the
	// CustomResourceDefinitions, so that the types of their fields are not known.
	CRDsForbidden bool `json:"crdsForbidden,omitempty"`
	// Unwatched are the resources that MVP's own credential may not watch, so that what
	// their changes bring is seen seconds later.
	Unwatched []string `json:"unwatched,omitempty"`

	// Resources counts what the server serves, over all versions, without
	// subresources. Only lists what no other server serves, Lacks what it does not
	// serve and another does: "v1 pods/resize", with verbs where servers differ in
	// those alone: "apps/v1 deployments (watch)".
	Resources int      `json:"resources"`
	Only      []string `json:"only,omitempty"`
	Lacks     []string `json:"lacks,omitempty"`

	// Inflight and Streams are the requests, and the watches and upgraded connections,
	// that are open now.
	Inflight int `json:"inflight"`
	Streams  int `json:"streams"`
	// Answers are the answers to clients' requests so far.
	Answers Answers `json:"answers"`
	// LatencyMillis is the moving average of the time until the head of an answer to a
	// client, ProbeMillis that of /readyz.
	LatencyMillis float64 `json:"latencyMillis,omitempty"`
	ProbeMillis   float64 `json:"probeMillis,omitempty"`
}

// Answers counts what became of clients' requests at one server.
type Answers struct {
	Total uint64 `json:"total"` // of the following
	// Classes counts by the class of the status: "2xx". What did not occur is left out.
	Classes map[string]uint64 `json:"classes,omitempty"`
	// Failures counts requests without an answer, or with one that broke off.
	Failures uint64 `json:"failures"`
}

// Demand is how often clients asked for something.
type Demand struct {
	Requests uint64 `json:"requests"`       // while it was as it is
	Recent   uint64 `json:"recentRequests"` // in the last ten minutes
}

// PartialReport is something that only some of the servers serve.
type PartialReport struct {
	Resource string   `json:"resource"` // "v1 pods/resize"
	Verbs    []string `json:"verbs"`
	// Whole says that no server has other verbs of it.
	Whole   bool     `json:"whole"`
	Servers []string `json:"servers"` // that serve it
	Missing []string `json:"missing"` // that do not
	// Unavailable says that none of Servers is healthy.
	Unavailable bool `json:"unavailable,omitempty"`
	// ConvertedTo is the version that requests are converted to when no healthy server
	// serves theirs, Policy the policy that does so.
	ConvertedTo string `json:"convertedTo,omitempty"`
	Policy      string `json:"policy,omitempty"`
	Demand
}

// ConvertedReport is a version of a resource that is served by conversion.
type ConvertedReport struct {
	Resource string   `json:"resource"` // "policy/v1beta1 poddisruptionbudgets"
	To       string   `json:"to"`
	Policy   string   `json:"policy"`
	Servers  []string `json:"servers"` // that serve To
	// Unavailable says that none of Servers is healthy.
	Unavailable bool `json:"unavailable,omitempty"`
	Demand
}

// Upstreams describes the kube-apiservers as they are seen now.
func (s *Server) Upstreams() UpstreamsReport {
	st, view, now := s.state.Load(), s.cfg.Upstreams.View(), time.Now()
	report := UpstreamsReport{
		Time: now.UTC().Truncate(time.Millisecond), Generation: view.Generation,
		Servers: []ServerReport{}, Partial: []PartialReport{}, Converted: []ConvertedReport{},
	}
	for _, server := range view.Servers {
		report.Servers = append(report.Servers, st.report(server))
	}
	demands := st.demands(now)
	for _, p := range st.spread.list() {
		report.Partial = append(report.Partial, st.partial(view, p, demands[p.key()]))
	}
	for _, c := range st.conversions() {
		servers := names(st.known[resourceOf(c.To)])
		report.Converted = append(report.Converted, ConvertedReport{
			Resource: gvr(resourceOf(c.From)), To: gvr(resourceOf(c.To)), Policy: c.Policy, Servers: servers,
			Unavailable: !anyHealthy(view, servers), Demand: demands[demandKey{capability: capability{resource: resourceOf(c.From)}}],
		})
	}
	return report
}

func (st *state) report(server *upstream.State) ServerReport {
	r := ServerReport{
		Name: server.Name, URL: server.URL, Version: server.GitVersion, Emulation: emulation(server),
		Healthy: server.Healthy, Reason: server.Reason, Since: utc(server.Since), LastProbe: utc(server.LastProbe),
		Synced: server.Synced, Stale: server.Stale, LastDiscovery: utc(server.LastDiscovery), Problem: server.Problem,
		CRDsForbidden: server.CRDsForbidden, Unwatched: server.Unwatched,
		Inflight: server.Inflight(), Streams: server.Streams(), ProbeMillis: millis(server.Latency),
	}
	for i := range server.Groups {
		for j := range server.Groups[i].Versions {
			r.Resources += len(server.Groups[i].Versions[j].Resources)
		}
	}
	r.Only, r.Lacks = st.spread.only(server.Name)
	if t := st.tally.of(server.Name); t != nil {
		r.Answers, r.LatencyMillis = t.report(), millis(time.Duration(t.latency.Load()))
	}
	return r
}

func (s *serverTally) report() Answers {
	a := Answers{Failures: s.failures.Load()}
	a.Total = a.Failures
	for class := range s.answers {
		if n := s.answers[class].Load(); n > 0 {
			if a.Classes == nil {
				a.Classes = map[string]uint64{}
			}
			a.Classes[classNames[class]], a.Total = n, a.Total+n
		}
	}
	return a
}

func (st *state) partial(view *upstream.View, p *part, demand Demand) PartialReport {
	r := PartialReport{
		Resource: p.capability.String(), Verbs: p.verbs, Whole: p.whole, Servers: p.servers, Missing: p.missing,
		Unavailable: !anyHealthy(view, p.servers), Demand: demand,
	}
	if !p.whole || p.sub != "" {
		return r // what is converted is the resource, where no server has any of it
	}
	for _, c := range st.set.Conversions() {
		if resourceOf(c.From) == p.resource && len(st.known[resourceOf(c.To)]) > 0 {
			r.ConvertedTo, r.Policy = gvr(resourceOf(c.To)), c.Policy
			break
		}
	}
	return r
}

// conversions are those that serve a version that no server has, and those that take
// place although some have it.
func (st *state) conversions() []*engine.Conversion {
	return slices.DeleteFunc(st.set.Conversions(), func(c *engine.Conversion) bool {
		from, to := resourceOf(c.From), resourceOf(c.To)
		if slices.ContainsFunc(c.Via, func(v convert.Version) bool { return len(st.known[resourceOf(v)]) > 0 }) {
			return true // a shorter chain does
		}
		if c.When == engine.WhenAlways {
			return len(st.known[to]) == 0
		}
		return !st.merged.Converted(from.group, from.version, from.name)
	})
}

// demands are the requests so far for what the state counts.
func (st *state) demands(now time.Time) map[demandKey]Demand {
	demands := map[demandKey]Demand{}
	for r, list := range st.tally.asks() {
		for _, a := range list {
			key := demandKey{capability: capability{resource: r}}
			if a.part != nil {
				key = a.part.key()
			}
			total, recent := a.counts(now)
			demands[key] = Demand{total, recent}
		}
	}
	return demands
}

func names(servers []*upstream.State) []string {
	list := make([]string, len(servers))
	for i, server := range servers {
		list[i] = server.Name
	}
	return list
}

func anyHealthy(view *upstream.View, names []string) bool {
	return slices.ContainsFunc(view.Servers, func(s *upstream.State) bool { return s.Healthy && slices.Contains(names, s.Name) })
}

// emulation is the version that a server behaves as, "" while it is not known.
func emulation(server *upstream.State) string {
	if server.Emulation.Minor == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d", server.Emulation.Major, server.Emulation.Minor)
}

func utc(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
