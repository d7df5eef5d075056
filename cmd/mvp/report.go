package main

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/source"
	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/proxy"
)

// policyReport is what /policies answers.
type policyReport struct {
	Generation uint64       `json:"generation"`
	Loaded     time.Time    `json:"loaded"`
	Hash       string       `json:"hash"`
	Files      []string     `json:"files"`
	Policies   []policyInfo `json:"policies"`

	// Objects are the policies that are objects of the cluster, accepted or not.
	Objects []objectReport `json:"objects,omitempty"`

	// LastReload says what is wrong with the files as they are now; what is above
	// stays live until they are right.
	LastReload *failedReload `json:"lastReload,omitempty"`

	// Warnings are what in live policies is likely not meant, such as a rule that never
	// acts, and paths in rules that mean no field, as far as the schemas of the versions
	// are known now.
	Warnings []mistake `json:"warnings,omitempty"`
}

type failedReload struct {
	Failed   time.Time `json:"failed"`
	Mistakes []mistake `json:"mistakes"`
}

type mistake struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
	// Text is the mistake as mvp prints it: with the line and a caret.
	Text string `json:"text"`
}

type policyInfo struct {
	Name       string   `json:"name"`
	Origin     string   `json:"origin"`
	Position   string   `json:"position"`
	Roles      []string `json:"roles"`
	From       string   `json:"from,omitempty"`
	To         string   `json:"to,omitempty"`
	When       string   `json:"when,omitempty"`
	Prefer     string   `json:"preferApiServerVersion,omitempty"`
	Mode       string   `json:"mode"`
	ShadowedBy string   `json:"shadowedBy,omitempty"`

	proxy.PolicyCounts
}

// reportPolicies tells of the live policies; counts says what one has done.
func reportPolicies(store *policies.Store, counts func(name, origin string) proxy.PolicyCounts) policyReport {
	status := store.Status()
	report := policyReport{
		Generation: status.Generation, Loaded: status.Loaded, Hash: status.Hash,
		Files: status.Files, Policies: []policyInfo{}, Objects: reportObjects(status.Objects),
	}
	for _, info := range store.Current().Policies() {
		p := describe(info)
		p.PolicyCounts = counts(info.Name, info.Origin)
		report.Policies = append(report.Policies, p)
	}
	if len(status.Err) > 0 {
		report.LastReload = &failedReload{Failed: status.ErrTime, Mistakes: mistakes(status.Err)}
	}
	return report
}

func describe(info engine.Info) policyInfo {
	p := policyInfo{
		Name: info.Name, Origin: info.Origin, Position: info.Pos.String(), Roles: info.Roles,
		From: info.From, To: info.To, Prefer: info.Prefer, Mode: "enforce", ShadowedBy: info.ShadowedBy,
	}
	if info.From != "" {
		p.When = info.When
	}
	if info.Audit {
		p.Mode = "audit"
	}
	return p
}

func mistakes(errs source.Errors) []mistake {
	list := make([]mistake, 0, len(errs))
	for _, err := range errs {
		list = append(list, mistake{
			File: err.Pos.File, Line: err.Pos.Line, Column: err.Pos.Col, Message: err.Msg, Text: err.Error(),
		})
	}
	return list
}

// policyMetrics tell Prometheus of the policies that are live, and what is wrong
// with those that are not.
type policyMetrics struct{ store *policies.Store }

var (
	policiesDesc   = prometheus.NewDesc("mvp_policies", "Policies that are live.", nil, nil)
	generationDesc = prometheus.NewDesc("mvp_policy_generation", "How many policy sets have been live since the start.", nil, nil)
	loadedDesc     = prometheus.NewDesc("mvp_policy_loaded_timestamp_seconds", "When the live policies were loaded.", nil, nil)
	failuresDesc   = prometheus.NewDesc("mvp_policy_reload_failures_total", "Reloads that failed and changed nothing.", nil, nil)
	objectsDesc    = prometheus.NewDesc("mvp_policy_objects", "Policy objects of the cluster, by whether they are accepted.", []string{"accepted"}, nil)
	mistakeDesc    = prometheus.NewDesc("mvp_policy_mistake", "1 for each mistake in policy files and objects that keeps them from becoming live.",
		[]string{"position", "message"}, nil)
)

// maxMistakeSeries bounds the mistakes that become series of their own; the log
// and /policies have them all.
const maxMistakeSeries = 20

// Describe implements prometheus.Collector.
func (m policyMetrics) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{policiesDesc, generationDesc, loadedDesc, failuresDesc, objectsDesc, mistakeDesc} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (m policyMetrics) Collect(metrics chan<- prometheus.Metric) {
	status := m.store.Status()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(policiesDesc, float64(status.Policies))
	gauge(generationDesc, float64(status.Generation))
	gauge(loadedDesc, float64(status.Loaded.UnixMilli())/1000)
	metrics <- prometheus.MustNewConstMetric(failuresDesc, prometheus.CounterValue, float64(status.Failures))
	wrong, notAccepted := status.Err, 0
	for i := range status.Objects {
		if o := &status.Objects[i]; !o.Accepted() {
			notAccepted++
			wrong = append(wrong[:len(wrong):len(wrong)], o.Err...)
		}
	}
	gauge(objectsDesc, float64(len(status.Objects)-notAccepted), "true")
	gauge(objectsDesc, float64(notAccepted), "false")
	seen := map[[2]string]bool{}
	for _, err := range wrong {
		key := [2]string{err.Pos.String(), strings.ToValidUTF8(err.Msg, "")}
		if seen[key] || len(seen) == maxMistakeSeries {
			continue // two series of the same labels would break the scrape
		}
		seen[key] = true
		gauge(mistakeDesc, 1, key[0], key[1])
	}
}
