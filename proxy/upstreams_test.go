package proxy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mixed-version-proxy/mvp/proxy"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// observed is a rig with its admin listener.
type observed struct {
	*rig
	admin string // URL
}

func observe(t *testing.T, files map[string]string, upstreams ...*recorder) *observed {
	t.Helper()
	registry := prometheus.NewRegistry()
	o := &observed{rig: startWith(t, proxy.Config{Metrics: registry}, files, nil, upstreams...)}
	server := httptest.NewServer(o.proxy.Admin(proxy.AdminConfig{
		Policies: func() any { return nil },
		Metrics:  promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
	}))
	t.Cleanup(server.Close)
	o.admin = server.URL
	return o
}

// page reads one page of the admin listener.
func (o *observed) page(path string) (int, string) {
	o.t.Helper()
	resp, err := http.Get(o.admin + path)
	if err != nil {
		o.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func (o *observed) report() proxy.UpstreamsReport {
	o.t.Helper()
	code, body := o.page("/upstreams")
	var report proxy.UpstreamsReport
	if err := json.Unmarshal([]byte(body), &report); code != http.StatusOK || err != nil {
		o.t.Fatalf("/upstreams answered %d %q: %v", code, body, err)
	}
	return report
}

// series are the lines of /metrics that begin with one of the names.
func (o *observed) series(names ...string) string {
	o.t.Helper()
	_, body := o.page("/metrics")
	var found strings.Builder
	for line := range strings.Lines(body) {
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(line, name+"{") || strings.HasPrefix(line, name+" ") }) {
			found.WriteString(line)
		}
	}
	return found.String()
}

// shows polls until the series of the names are want.
func (o *observed) shows(want string, names ...string) {
	o.t.Helper()
	got := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if got = o.series(names...); got == want {
			return
		}
	}
	o.t.Errorf("/metrics has\n%s\nwant\n%s", got, want)
}

var (
	oldServes = []served{
		{"", "v1", "pods", "Pod"},
		{"acme.io", "v1beta1", "things", "Thing"},
		{"acme.io", "v1beta2", "things", "Thing"},
	}
	newServes = []served{{"", "v1", "pods", "Pod"}, {"acme.io", "v1", "things", "Thing"}}
)

// mixed is an old server a and a new one b, which has pods/resize.
func mixed(t *testing.T, reply func(request) string) (a, b *recorder) {
	a = record(t, "a", "1.31.14", oldServes, reply)
	b = record(t, "b", "1.32.13", newServes, reply)
	b.subresources = map[string][]string{"pods": {"resize"}}
	return a, b
}

// varying is what differs from run to run.
var varying = regexp.MustCompile(`"(time|since|lastProbe|lastDiscovery|latencyMillis|probeMillis|generation|url)": ("[^"]+"|[0-9.]+)`)

// What /upstreams says is a contract: whole.
func TestUpstreamsPage(t *testing.T) {
	a, b := mixed(t, func(q request) string {
		if strings.Contains(q.target, "teapot") {
			return respond(503, "text/plain", "short and stout")
		}
		return ok(oldThing)
	})
	o := observe(t, map[string]string{
		"things.yaml":    rules,
		"c0.convert.cel": `{'resource': 'things', 'from': 'acme.io/v1alpha1', 'to': 'acme.io/v1'}`,
	}, a, b)
	for range 3 {
		o.do("GET", "/apis/acme.io/v1beta1/namespaces/d/things/t", "", "")
	}
	o.do("GET", "/apis/acme.io/v1beta1/namespaces/d/things/t/status", "", "") // goes with the resource
	o.do("PATCH", "/api/v1/namespaces/d/pods/p/resize", "application/merge-patch+json", "{}")
	o.do("GET", "/apis/acme.io/v1/namespaces/d/things/teapot", "", "")
	o.do("GET", "/api/v1/namespaces/d/pods/p", "", "") // which both serve

	var got string
	o.eventually("the pod has been counted", func() bool {
		_, got = o.page("/upstreams")
		total := uint64(0)
		for _, s := range o.report().Servers {
			total += s.Answers.Total
		}
		return total == 7
	})
	got = varying.ReplaceAllString(got, `"$1": …`)
	// Which of the two servers answers for the pod depends on the caller's address.
	got = strings.NewReplacer(`"2xx": 5`, `"2xx": N`, `"2xx": 4`, `"2xx": N`, `"2xx": 2`, `"2xx": N`, `"2xx": 1`, `"2xx": N`,
		`"total": 5`, `"total": N`, `"total": 4`, `"total": N`, `"total": 3`, `"total": N`, `"total": 2`, `"total": N`).Replace(got)
	const want = `{
  "time": …,
  "generation": …,
  "servers": [
    {
      "name": "a",
      "url": …,
      "version": "v1.31.14",
      "emulationVersion": "1.31",
      "healthy": true,
      "since": …,
      "lastProbe": …,
      "synced": true,
      "lastDiscovery": …,
      "resources": 3,
      "only": [
        "acme.io/v1beta1 things",
        "acme.io/v1beta2 things"
      ],
      "lacks": [
        "v1 pods/resize",
        "acme.io/v1 things"
      ],
      "inflight": 0,
      "streams": 0,
      "answers": {
        "total": N,
        "classes": {
          "2xx": N
        },
        "failures": 0
      },
      "latencyMillis": …,
      "probeMillis": …
    },
    {
      "name": "b",
      "url": …,
      "version": "v1.32.13",
      "emulationVersion": "1.32",
      "healthy": true,
      "since": …,
      "lastProbe": …,
      "synced": true,
      "lastDiscovery": …,
      "resources": 2,
      "only": [
        "v1 pods/resize",
        "acme.io/v1 things"
      ],
      "lacks": [
        "acme.io/v1beta1 things",
        "acme.io/v1beta2 things"
      ],
      "inflight": 0,
      "streams": 0,
      "answers": {
        "total": N,
        "classes": {
          "2xx": N,
          "5xx": 1
        },
        "failures": 0
      },
      "latencyMillis": …,
      "probeMillis": …
    }
  ],
  "partial": [
    {
      "resource": "v1 pods/resize",
      "verbs": [
        "create",
        "get",
        "patch",
        "update"
      ],
      "whole": true,
      "servers": [
        "b"
      ],
      "missing": [
        "a"
      ],
      "requests": 1,
      "recentRequests": 1
    },
    {
      "resource": "acme.io/v1 things",
      "verbs": [
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch"
      ],
      "whole": true,
      "servers": [
        "b"
      ],
      "missing": [
        "a"
      ],
      "requests": 1,
      "recentRequests": 1
    },
    {
      "resource": "acme.io/v1beta1 things",
      "verbs": [
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch"
      ],
      "whole": true,
      "servers": [
        "a"
      ],
      "missing": [
        "b"
      ],
      "convertedTo": "acme.io/v1 things",
      "policy": "things/apiMigrationRules[0]",
      "requests": 4,
      "recentRequests": 4
    },
    {
      "resource": "acme.io/v1beta2 things",
      "verbs": [
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch"
      ],
      "whole": true,
      "servers": [
        "a"
      ],
      "missing": [
        "b"
      ],
      "requests": 0,
      "recentRequests": 0
    }
  ],
  "converted": [
    {
      "resource": "acme.io/v1alpha1 things",
      "to": "acme.io/v1 things",
      "policy": "c0",
      "servers": [
        "b"
      ],
      "requests": 0,
      "recentRequests": 0
    }
  ]
}
`
	if got != want {
		t.Errorf("/upstreams answered\n%s\nwant\n%s", got, want)
	}
}

// While the only server that has something is away, the page says so, and since when.
func TestUpstreamsUnavailable(t *testing.T) {
	a, b := mixed(t, nil)
	var down atomic.Bool
	a.ready = func() string {
		if down.Load() {
			return respond(500, "text/plain", "[-]shutdown failed: reason withheld\n")
		}
		return respond(200, "text/plain", "ok")
	}
	o := observe(t, map[string]string{"things.yaml": rules}, a, b)
	before := o.report().Servers[0]
	if before.Since.IsZero() || !before.Healthy {
		t.Fatalf("the server is not seen as healthy since a moment: %+v", before)
	}
	down.Store(true)
	o.eventually("MVP sees that the server is down", func() bool { return !o.report().Servers[0].Healthy })
	report := o.report()
	if s := report.Servers[0]; !strings.Contains(s.Reason, "/readyz answered 500: shutdown failed") || !s.Stale || s.Since.Before(before.Since) {
		t.Errorf("of the server that is down it says %+v", s)
	}
	unavailable := map[string]string{}
	for _, p := range report.Partial {
		if p.Unavailable {
			unavailable[p.Resource] = p.ConvertedTo
		}
	}
	if want := map[string]string{"acme.io/v1beta1 things": "acme.io/v1 things", "acme.io/v1beta2 things": ""}; !maps.Equal(unavailable, want) {
		t.Errorf("unavailable, and converted to: %v, want %v", unavailable, want)
	}
	o.shows("mvp_upstream_stale{upstream=\"a\"} 1\nmvp_upstream_stale{upstream=\"b\"} 0\n"+
		"mvp_upstream_up{upstream=\"a\"} 0\nmvp_upstream_up{upstream=\"b\"} 1\n", "mvp_upstream_stale", "mvp_upstream_up")
}

// The series of servers and of what only some of them serve.
func TestUpstreamMetrics(t *testing.T) {
	a, b := mixed(t, func(q request) string {
		switch {
		case strings.Contains(q.target, "broken"):
			reset(q.conn)
			return ""
		case strings.Contains(q.target, "missing"):
			return respond(404, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		}
		return ok("{}")
	})
	o := observe(t, nil, a, b)
	o.do("GET", "/apis/acme.io/v1/namespaces/d/things/t", "", "")
	o.do("GET", "/apis/acme.io/v1/namespaces/d/things/missing", "", "")
	o.do("POST", "/apis/acme.io/v1/namespaces/d/things?x=broken", "application/json", "{}")
	o.do("GET", "/apis/acme.io/v1/namespaces/d/things/broken", "", "") // asked again: nobody else has it
	// What a client makes up is no label.
	o.do("GET", "/apis/made.up/v9/namespaces/d/inventions/x", "", "")
	o.do("PATCH", "/api/v1/namespaces/d/pods/p/fancy", "application/json", "{}")
	o.do("BREW", "/api/v1/namespaces/d/pods/p/resize", "", "")

	o.shows(`mvp_converted_resources 0
mvp_partial_requests_total{group="",resource="pods",subresource="resize",version="v1"} 0
mvp_partial_requests_total{group="acme.io",resource="things",subresource="",version="v1"} 4
mvp_partial_requests_total{group="acme.io",resource="things",subresource="",version="v1beta1"} 0
mvp_partial_requests_total{group="acme.io",resource="things",subresource="",version="v1beta2"} 0
mvp_partial_resources 4
mvp_upstream_failures_total{reason="no_answer",upstream="b"} 2
mvp_upstream_info{emulation_version="1.31",upstream="a",version="v1.31.14"} 1
mvp_upstream_info{emulation_version="1.32",upstream="b",version="v1.32.13"} 1
mvp_upstream_missing_resources{upstream="a"} 2
mvp_upstream_missing_resources{upstream="b"} 2
mvp_upstream_only_resources{upstream="a"} 2
mvp_upstream_only_resources{upstream="b"} 2
mvp_upstream_retries_total{reason="no_answer",upstream="b"} 1
mvp_upstream_synced{upstream="a"} 1
mvp_upstream_synced{upstream="b"} 1
`,
		"mvp_converted_resources", "mvp_partial_requests_total", "mvp_partial_resources", "mvp_upstream_failures_total", "mvp_upstream_info",
		"mvp_upstream_missing_resources", "mvp_upstream_only_resources", "mvp_upstream_retries_total", "mvp_upstream_synced")
	if got := o.series("mvp_upstream_responses_total"); !strings.Contains(got, `{code="2xx",upstream="b"}`) ||
		!strings.Contains(got, `mvp_upstream_responses_total{code="4xx",upstream="b"} 1`) {
		t.Errorf("the answers of the servers are\n%s", got)
	}
	_, all := o.page("/metrics")
	for _, invented := range []string{"made.up", "inventions", "fancy", "BREW", "brew"} {
		if strings.Contains(all, invented) {
			t.Errorf("a client's %q became a label:\n%s", invented, all)
		}
	}
	if s := o.report().Servers[1].Answers; s.Failures != 2 || s.Classes["4xx"] != 1 || s.Total < 4 {
		t.Errorf("/upstreams counts the answers of b as %+v", s)
	}
}

// Requests and streams that are open are counted where they are.
func TestUpstreamLoad(t *testing.T) {
	arrived, release := make(chan struct{}, 2), make(chan struct{})
	u := record(t, "a", "1.32.13", pods, func(q request) string {
		if strings.Contains(q.target, "watch=1") {
			return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
		}
		arrived <- struct{}{}
		<-release
		return ok("{}")
	})
	o := observe(t, nil, u)
	watch, answer := o.raw("GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n")
	if line, err := answer.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("the watch began with %q: %v", line, err)
	}
	slow, _ := o.raw("GET /api/v1/pods HTTP/1.1\r\nHost: x\r\n\r\n")
	<-arrived
	o.shows("mvp_upstream_requests_in_flight{upstream=\"a\"} 1\nmvp_upstream_streams{upstream=\"a\"} 1\n",
		"mvp_upstream_requests_in_flight", "mvp_upstream_streams")
	if s := o.report().Servers[0]; s.Inflight != 1 || s.Streams != 1 {
		t.Errorf("/upstreams shows %d requests and %d streams, want 1 of each", s.Inflight, s.Streams)
	}
	close(release)
	for _, conn := range []net.Conn{watch, slow} {
		conn.Close()
	}
	o.shows("mvp_upstream_requests_in_flight{upstream=\"a\"} 0\nmvp_upstream_streams{upstream=\"a\"} 0\n",
		"mvp_upstream_requests_in_flight", "mvp_upstream_streams")
}

// What each policy did, one request of each kind.
func TestPolicyCounts(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(request) string { return ok(newThing) })
	o := observe(t, map[string]string{
		"conv.yaml": strings.Replace(strings.Replace(rules, "{name: things}", "{name: conv}", 1),
			"targetPath: spec.new}", "targetPath: spec.new, type: integer}", 1),
		"deny.match.cel":  `request.name == 'no'`,
		"deny.deny.cel":   `'no'`,
		"heard.match.cel": `request.verb == 'delete'`,
		"heard.deny.cel":  `'would not'`,
		"heard.warn.cel":  `'asked only without a deny'`,
		"heard.mode.cel":  `'audit'`,
		"fails.match.cel": `request.name == 'fails' && int(request.userAgent) > 0`,
		"fails.warn.cel":  `'never'`,
	}, u)
	const path = "/apis/acme.io/v1/namespaces/d/things/"
	o.do("GET", path+"no", "", "")
	o.do("DELETE", path+"t", "", "")
	o.do("GET", path+"fails", "", "")
	o.do("DELETE", "/apis/acme.io/v1beta1/namespaces/d/things/t", "", "") // converted, and heard
	o.do("PUT", "/apis/acme.io/v1beta1/namespaces/d/things/t", "application/json", `{"apiVersion":"acme.io/v1beta1","kind":"Thing","spec":{"old":"x"}}`)

	o.shows(`mvp_policy_audited_total{policy="heard"} 2
mvp_policy_denials_total{policy="deny"} 1
mvp_policy_denials_total{policy="heard"} 0
mvp_policy_errors_total{policy="conv/apiMigrationRules[0]"} 1
mvp_policy_errors_total{policy="deny"} 0
mvp_policy_errors_total{policy="fails"} 1
mvp_policy_errors_total{policy="heard"} 0
mvp_policy_matches_total{policy="conv/apiMigrationRules[0]"} 2
mvp_policy_matches_total{policy="deny"} 1
mvp_policy_matches_total{policy="fails"} 0
mvp_policy_matches_total{policy="heard"} 0
`, "mvp_policy_audited_total", "mvp_policy_denials_total", "mvp_policy_errors_total", "mvp_policy_matches_total")
	for name, want := range map[string]proxy.PolicyCounts{
		"conv/apiMigrationRules[0]": {Matches: 2, Conversions: 2, Errors: 1},
		"deny":                      {Matches: 1, Denials: 1},
		"heard":                     {Audited: 2, Effects: map[string]uint64{"deny": 2}},
		"fails":                     {Errors: 1},
		"unknown":                   {},
	} {
		if got := o.proxy.PolicyCounts(name, "file"); !reflect.DeepEqual(got, want) {
			t.Errorf("of %s: %+v, want %+v", name, got, want)
		}
	}
}

// The access log names the servers that failed the request before another answered.
func TestAccessLogOfFailover(t *testing.T) {
	var broken atomic.Bool
	reply := func(q request) string {
		if broken.Swap(false) {
			reset(q.conn)
			return ""
		}
		return ok("{}")
	}
	a, b := record(t, "a", "1.32.13", pods, reply), record(t, "b", "1.32.13", pods, reply)
	o := observe(t, nil, a, b)
	broken.Store(true)
	if got := o.do("GET", "/api/v1/namespaces/d/pods/p", "", ""); got.code != http.StatusOK {
		t.Fatalf("answered %d %s", got.code, got.body)
	}
	record := o.lastAccess("/api/v1/namespaces/d/pods/p")
	if got, want := fmt.Sprintf("%v %v", record["leftOut"], record["upstream"]), []string{"[a] b", "[b] a"}; !slices.Contains(want, got) {
		t.Errorf("the record names %s, want one of %q", got, want)
	}
}

// What is counted of a server goes with it, and stays while another comes.
func TestRemovedServerIsNotCounted(t *testing.T) {
	a, b := record(t, "a", "1.32.13", pods, nil), record(t, "b", "1.32.13", things, nil)
	registry := prometheus.NewRegistry()
	s := raise(t, setting{proxy: proxy.Config{Metrics: registry}}, a, b)
	for _, path := range []string{"/api/v1/namespaces/d/pods/p", "/apis/acme.io/v1/namespaces/d/things/t"} {
		if got, err := s.ask("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil || got.code != http.StatusOK {
			t.Fatalf("answered %d, %v", got.code, err)
		}
	}
	counted := func() map[string]bool {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				for _, label := range m.GetLabel() {
					if label.GetName() == "upstream" {
						found[family.GetName()+" "+label.GetValue()] = true
					}
				}
			}
		}
		return found
	}
	names := []string{"mvp_requests_total", "mvp_upstream_response_seconds", "mvp_upstream_responses_total", "mvp_upstream_up"}
	for _, name := range names {
		await(t, name+" counts both servers", func() bool { return counted()[name+" a"] && counted()[name+" b"] })
	}
	if err := s.pool.SetServers([]upstream.ServerConfig{{Name: "a", URL: "http://" + a.listener.Addr().String()}}); err != nil {
		t.Fatal(err)
	}
	await(t, "b is not counted any more", func() bool {
		for name := range counted() {
			if strings.HasSuffix(name, " b") {
				return false
			}
		}
		return true
	})
	for _, name := range names {
		if !counted()[name+" a"] {
			t.Errorf("%s does not count the server that stays", name)
		}
	}
	if servers := s.proxy.Upstreams().Servers; len(servers) != 1 || servers[0].Answers.Total != 1 {
		t.Errorf("/upstreams shows %+v, want one server with one answer", servers)
	}
}
