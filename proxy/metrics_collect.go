package proxy

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// collector tells Prometheus what is known at the moment of a scrape: of the servers,
// of what only some of them serve, and of the policies.
type collector struct{ s *Server }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	upDesc        = desc("mvp_upstream_up", "1 while the kube-apiserver is healthy.", "upstream")
	infoDesc      = desc("mvp_upstream_info", "1, with the kube-apiserver's version and the one that it behaves as.", "upstream", "version", "emulation_version")
	syncedDesc    = desc("mvp_upstream_synced", "1 when it is known what the kube-apiserver serves.", "upstream")
	staleDesc     = desc("mvp_upstream_stale", "1 while what is known of what the kube-apiserver serves may be old.", "upstream")
	ageDesc       = desc("mvp_upstream_discovery_age_seconds", "Time since it was last read what the kube-apiserver serves.", "upstream")
	probeDesc     = desc("mvp_upstream_probe_seconds", "Moving average of the time that the kube-apiserver's /readyz takes.", "upstream")
	openDesc      = desc("mvp_upstream_requests_in_flight", "Requests that the kube-apiserver is answering, without streams.", "upstream")
	streamsDesc   = desc("mvp_upstream_streams", "Watches, followed logs and upgraded connections that are open to the kube-apiserver.", "upstream")
	responsesDesc = desc("mvp_upstream_responses_total", "Answers of the kube-apiserver to clients' requests, by the class of their status.", "upstream", "code")
	onlyDesc      = desc("mvp_upstream_only_resources", "Resources and subresources that no other kube-apiserver serves.", "upstream")
	lacksDesc     = desc("mvp_upstream_missing_resources", "Resources and subresources that the kube-apiserver lacks and another serves.", "upstream")

	viewDesc      = desc("mvp_discovery_generation", "How often it changed what is known of the kube-apiservers.")
	partialDesc   = desc("mvp_partial_resources", "Resources and subresources that only some kube-apiservers serve.")
	convertedDesc = desc("mvp_converted_resources", "Resources that are served by conversion.")
	asksDesc      = desc("mvp_partial_requests_total", "Requests for what only some kube-apiservers serve.", "group", "version", "resource", "subresource")

	matchesDesc = desc("mvp_policy_matches_total", "Requests that a policy did something to.", "policy")
	denialsDesc = desc("mvp_policy_denials_total", "Requests that a policy refused.", "policy")
	errorsDesc  = desc("mvp_policy_errors_total", "Requests that failed in a policy: an expression, or an object that could not be converted.", "policy")
	ignoredDesc = desc("mvp_policy_ignored_total", "Requests that went on without a policy, since it failed and says so, by why.", "policy", "reason")
	effectsDesc = desc("mvp_policy_audit_effects_total", "What a policy in audit mode would have done to requests, by the effect.", "policy", "effect")
	auditedDesc = desc("mvp_policy_audited_total", "Requests that a policy in audit mode would have done something to.", "policy")
)

// Describe implements prometheus.Collector.
func (c collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		upDesc, infoDesc, syncedDesc, staleDesc, ageDesc, probeDesc, openDesc, streamsDesc, responsesDesc, onlyDesc, lacksDesc,
		viewDesc, partialDesc, convertedDesc, asksDesc, matchesDesc, denialsDesc, errorsDesc, ignoredDesc, effectsDesc, auditedDesc,
	} {
		descs <- d
	}
}

// scrape is one collection.
type scrape chan<- prometheus.Metric

func (out scrape) gauge(d *prometheus.Desc, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (out scrape) count(d *prometheus.Desc, value uint64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
}

// Collect implements prometheus.Collector.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	out, st, view, now := scrape(metrics), c.s.state.Load(), c.s.cfg.Upstreams.View(), time.Now()
	for _, server := range view.Servers {
		out.server(st, server, now)
	}
	out.gauge(viewDesc, float64(view.Generation))
	out.gauge(partialDesc, float64(len(st.spread.list())))
	out.gauge(convertedDesc, float64(len(st.conversions())))
	out.asks(st, now)
	out.policies(c.s.tallies.byName())
}

func (out scrape) server(st *state, server *upstream.State, now time.Time) {
	name := server.Name
	out.gauge(upDesc, number(server.Healthy), name)
	out.gauge(infoDesc, 1, name, server.GitVersion, emulation(server))
	out.gauge(syncedDesc, number(server.Synced), name)
	out.gauge(staleDesc, number(server.Stale), name)
	if !server.LastDiscovery.IsZero() {
		out.gauge(ageDesc, now.Sub(server.LastDiscovery).Seconds(), name)
	}
	out.gauge(probeDesc, server.Latency.Seconds(), name)
	out.gauge(openDesc, float64(server.Inflight()), name)
	out.gauge(streamsDesc, float64(server.Streams()), name)
	only, lacks := st.spread.only(name)
	out.gauge(onlyDesc, float64(len(only)), name)
	out.gauge(lacksDesc, float64(len(lacks)), name)
	if t := st.tally.of(name); t != nil {
		for class := range t.answers {
			out.count(responsesDesc, t.answers[class].Load(), name, classNames[class])
		}
	}
}

// classNames are the classes of HTTP statuses.
var classNames = [6]string{"other", "1xx", "2xx", "3xx", "4xx", "5xx"}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// asks has one series for all verbs of a subresource.
func (out scrape) asks(st *state, now time.Time) {
	sums := map[capability]uint64{}
	for _, list := range st.tally.asks() {
		for _, a := range list {
			if a.part != nil {
				total, _ := a.counts(now)
				sums[a.capability] += total
			}
		}
	}
	for c, total := range sums {
		out.count(asksDesc, total, c.group, c.version, c.name, c.sub)
	}
}

// policies has no series for what a policy cannot do: there may be ten thousand.
func (out scrape) policies(counts map[string]policySeries) {
	for name, c := range counts {
		out.count(matchesDesc, c.Matches, name)
		out.count(errorsDesc, c.Errors, name)
		for reason, n := range c.Ignored {
			out.count(ignoredDesc, n, name, string(reason))
		}
		for effect, n := range c.Effects {
			out.count(effectsDesc, n, name, effect)
		}
		if c.denies {
			out.count(denialsDesc, c.Denials, name)
		}
		if c.audits {
			out.count(auditedDesc, c.Audited, name)
		}
	}
}
