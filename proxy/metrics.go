package proxy

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what Prometheus sees of requests. Every label takes its values
// from what the servers serve or the policies say, never from a client, so that
// no client can make series without end.
type metrics struct {
	inflight    prometheus.Gauge
	requests    *prometheus.CounterVec
	durations   *prometheus.HistogramVec
	conversions *prometheus.CounterVec
	failures    *prometheus.CounterVec
	moves       *prometheus.CounterVec

	// Those of one kube-apiserver have its name as the label upstream.
	retries          *prometheus.CounterVec
	upstreamFailures *prometheus.CounterVec
	upstreamSeconds  *prometheus.HistogramVec
}

func newMetrics(registry prometheus.Registerer, now collector) (*metrics, error) {
	m := &metrics{
		inflight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "mvp_requests_in_flight", Help: "Requests that have not been answered to the end, watches included.",
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mvp_requests_total", Help: "Requests answered, by what they asked for, who answered and the HTTP status.",
		}, []string{"verb", "group", "version", "resource", "upstream", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mvp_request_duration_seconds", Help: "Time from a request's head to the end of its answer; watches are not in it.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"verb", "converted"}),
		conversions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mvp_conversions_total", Help: "Requests answered by converting them to another version.",
		}, []string{"policy", "from", "to", "code"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mvp_policy_failures_total", Help: "Requests that failed because a policy did: reason PolicyFailed.",
		}, []string{"resource"}),
		moves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mvp_watch_resumes_total", Help: "Watches that lost their kube-apiserver, by what became of them.",
		}, []string{"result"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mvp_upstream_retries_total", Help: "Requests taken away from a kube-apiserver and decided again without it, by why.",
		}, []string{"upstream", "reason"}),
		upstreamFailures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mvp_upstream_failures_total", Help: "Clients' requests that a kube-apiserver did not answer, or not to the end, by why.",
		}, []string{"upstream", "reason"}),
		upstreamSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mvp_upstream_response_seconds", Help: "Time from sending a client's request to a kube-apiserver to the head of its answer; watches are not in it.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30},
		}, []string{"upstream"}),
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{
		m.inflight, m.requests, m.durations, m.conversions, m.failures, m.moves, m.retries, m.upstreamFailures, m.upstreamSeconds, now,
	} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("cannot register the proxy's metrics: %w", err)
		}
	}
	return m, nil
}

// observe counts one request whose answer has ended.
func (m *metrics) observe(x *exchange, status int) {
	verb, r := x.label()
	upstream := ""
	if x.server != nil {
		upstream = x.server.Name
	}
	code := strconv.Itoa(status)
	m.requests.WithLabelValues(verb, r.group, r.version, r.name, upstream, code).Inc()
	if verb != "watch" && !x.upgrade() {
		converted := "false"
		if x.conv != nil {
			converted = "true"
		}
		m.durations.WithLabelValues(verb, converted).Observe(time.Since(x.start).Seconds())
	}
	if x.conv != nil {
		m.conversions.WithLabelValues(x.conv.Policy, x.conv.From.APIVersion(), x.conv.To.APIVersion(), code).Inc()
	}
	x.st.tally.ended(x)
	if x.err != nil && toStatus(x.err).reason == statusPolicyFailed {
		m.failures.WithLabelValues(r.name).Inc()
	}
}

// watchMoved counts a watch that lost its server.
func (m *metrics) watchMoved(r result) { m.moves.WithLabelValues(string(r)).Inc() }

// newServer makes the tally of a server that has none.
func (m *metrics) newServer(name string) *serverTally {
	return &serverTally{seconds: m.upstreamSeconds.WithLabelValues(name)}
}

// forgetServer drops the series of a server that is gone for good: addresses that
// come and go must not make series without end.
func (m *metrics) forgetServer(name string) {
	labels := prometheus.Labels{"upstream": name}
	m.requests.DeletePartialMatch(labels)
	m.retries.DeletePartialMatch(labels)
	m.upstreamFailures.DeletePartialMatch(labels)
	m.upstreamSeconds.DeletePartialMatch(labels)
}

// retried counts that the request is taken away from its server for err.
func (m *metrics) retried(x *exchange, err error) {
	x.st.tally.failed(x, err)
	m.retries.WithLabelValues(x.server.Name, cmp.Or(refusalReason(err), failureReason(err), "other")).Inc()
}

// label is the request's verb and resource as metrics name them: a resource that
// no server is known to serve is "other", and so is a verb that is none.
func (x *exchange) label() (string, resource) {
	if !x.req.IsResource {
		return "other", resource{}
	}
	r := resource{x.req.Group, x.req.Version, x.req.Resource}
	if len(x.st.known[r]) == 0 && x.conv == nil {
		r = resource{name: "other"}
	}
	switch x.req.Verb {
	case "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection":
		return x.req.Verb, r
	}
	return "other", r
}
