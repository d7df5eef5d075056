package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
)

const (
	oldVersion = "1.31.14"
	newVersion = "1.32.13"
)

// upgradeSteps are the ends and beginnings of servers in a rolling upgrade, back, and
// once more with servers that crash.
var upgradeSteps = []struct {
	server, version string
	kill            bool
}{
	{"a", newVersion, false},
	{"b", newVersion, false},
	{"c", newVersion, false},
	{"a", oldVersion, false},
	{"b", oldVersion, false},
	{"c", oldVersion, false},
	{"a", newVersion, true},
	{"b", newVersion, true},
	{"c", newVersion, true},
}

const (
	// settle is how long an operator waits at least between two servers.
	settle = 10 * time.Second

	// upgradeRounds are the rounds of kubectl during the upgrade. They set its pace.
	upgradeRounds = 500

	// comparedSteps are those that the balancer takes part in. What it loses is seen by
	// then, and the machine is left to the rounds through MVP, which count.
	comparedSteps = 3

	// roundPause leaves the machine some time for others; balancerPause leaves it to
	// the rounds through MVP, which count.
	roundPause    = 500 * time.Millisecond
	balancerPause = 10 * time.Second
)

// TestRollingUpgrade upgrades three servers one by one, there and back and once more
// with servers that are killed, under the load of a cluster's clients. Through MVP
// none of them may notice. Beside it the same load goes over a plain load balancer,
// and is only counted.
func TestRollingUpgrade(t *testing.T) {
	l := startLabWith(t, controlplane.Config{
		Versions:      []string{oldVersion, oldVersion, oldVersion},
		APIServerArgs: []string{"--feature-gates=WatchList=true"}, // 1.31 has it off
	})
	m := l.serveWith(t, nil, "--library", "all")
	through := l.endpoint(t, "mvp", m.url)
	through.converts = true
	beside := l.endpoint(t, "balancer", l.balance(t).url)

	enter := func(name string, killed bool) {
		t.Logf("%s %s", time.Now().Format("15:04:05.000"), name)
		for _, e := range []*endpoint{through, beside} {
			e.tally.enter(phase{name, killed})
		}
	}
	defer func() { // also of a test that gave up
		beside.tally.report(t)
		through.tally.report(t)
		m.noneFailed(t, through.tally)
		if t.Failed() {
			m.explain(t)
		}
	}()
	m.settled()
	enter("begin", false)
	a, b := startTraffic(t, through, roundPause), startTraffic(t, beside, balancerPause)
	enter("all "+oldVersion, false)
	pause(t, settle)
	for i, s := range upgradeSteps {
		enter(stepName(s.server, s.version, s.kill), s.kill)
		replace(t, l, s.server, s.version, s.kill)
		m.ready()
		pause(t, settle)
		a.waitRounds(upgradeRounds * (i + 1) / len(upgradeSteps))
		if i+1 == comparedSteps {
			b.end()
		}
	}
	enter("end", false)
	a.end()

	m.reportMetrics(t)
	if n := through.tally.requests(roundClient); n < upgradeRounds {
		t.Errorf("%d rounds of kubectl, want %d", n, upgradeRounds)
	}
}

func stepName(server, version string, kill bool) string {
	if kill {
		return "kill " + server + ", start " + version
	}
	return server + " to " + version
}

// replace stops or kills a server and starts a version of it.
func replace(t *testing.T, l *lab, server, version string, kill bool) {
	t.Helper()
	if kill {
		if err := l.Kill(t.Context(), server); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Upgrade(t.Context(), server, version); err != nil {
		t.Fatal(err)
	}
}

// pause is a time that the servers are left alone, as operators leave them.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal("the test has ended")
	}
}

// startTraffic starts everything there is on an endpoint. The pause is that between
// two rounds.
func startTraffic(t *testing.T, e *endpoint, pause time.Duration) *traffic {
	t.Helper()
	l := newTraffic(t, e)
	l.prepare()
	l.inform()
	l.count()
	l.churn()
	l.page()
	l.flow()
	l.elect()
	l.apply()
	l.install()
	l.explore(pause)
	return l
}

// prepare makes the namespace, and the service account that pods in it need.
func (l *traffic) prepare() {
	l.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", l.lab.KubeconfigPath(controlplane.Admin, "a"))
	l.must(err)
	client, err := dynamic.NewForConfig(config)
	l.must(err)
	core := func(resource string) dynamic.NamespaceableResourceInterface {
		return client.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource})
	}
	_, err = core("namespaces").Create(l.ctx, object("v1", "Namespace", l.namespace(), nil), metav1.CreateOptions{})
	l.must(err)
	_, err = core("serviceaccounts").Namespace(l.namespace()).Create(l.ctx, object("v1", "ServiceAccount", "default", nil), metav1.CreateOptions{})
	l.must(err)
}

// settled waits until each server can be asked for a watch of the custom resource:
// for a moment after a CRD is established it says that it is not initialised yet.
func (m *mvp) settled() {
	m.t.Helper()
	client, err := m.lab.HTTPClient(controlplane.Admin)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, name := range m.lab.Names() {
		url := m.lab.URL(name) + "/apis/myapps.example.com/v1beta1/customresources?watch=1&timeoutSeconds=1"
		m.eventually(name+" knows the custom resource", func() bool { return ready(m.t.Context(), client, url) })
	}
}

// roundsTimeout bounds the wait for more rounds.
const roundsTimeout = 3 * time.Minute

// waitRounds waits until the traffic has done n rounds.
func (l *traffic) waitRounds(n int) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.ctx, roundsTimeout)
	defer cancel()
	for l.tally.requests(roundClient) < n {
		select {
		case <-ctx.Done():
			l.t.Errorf("%d rounds, want %d by now", l.tally.requests(roundClient), n)
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// reported are the metrics that tell what MVP did that nobody saw.
var reported = regexp.MustCompile(`^mvp_(watch_|upstream_retries|upstream_.*_errors|conversions_total)`)

func (m *mvp) reportMetrics(t *testing.T) {
	t.Helper()
	_, metrics := m.get(m.admin + "/metrics")
	var b strings.Builder
	for line := range strings.Lines(metrics) {
		if reported.MatchString(line) {
			b.WriteString(line)
		}
	}
	t.Logf("metrics of mvp:\n%s", b.String())
}

// noneFailed sees to it that nothing failed through MVP but what the killing of a
// server excuses: by what its clients say, and by MVP's own log, which has the
// requests that kubectl, helm and controllers try again in silence.
func (m *mvp) noneFailed(t *testing.T, y *tally) {
	t.Helper()
	if failed := y.unexcused(); len(failed) > 0 {
		t.Errorf("%d failures through mvp", len(failed))
	}
	failed := 0
	for _, record := range m.log.records("request") {
		if succeeded(record) || excused(record, y) {
			continue
		}
		t.Errorf("mvp logged %v", record)
		if failed++; failed == maxTold {
			t.Error("and maybe more")
			return
		}
	}
}

// succeeded is of a request that was answered by a server that was well, whatever the
// answer was.
func succeeded(record map[string]any) bool {
	status, _ := record["status"].(float64) // always there
	return status < http.StatusInternalServerError && status != http.StatusTooManyRequests
}

// excused is of a write that a killed server may have executed.
func excused(record map[string]any, y *tally) bool {
	status, _ := record["status"].(float64)
	text, _ := record["time"].(string)
	at, err := time.Parse(time.RFC3339Nano, text)
	return err == nil && y.killing(at) && record["method"] != http.MethodGet &&
		(status == http.StatusBadGateway || status == http.StatusGatewayTimeout)
}

// maxExplained is how many records of MVP's log a failure prints.
const maxExplained = 100

// explain prints what MVP's log has that is not as usual, and keeps the whole log.
func (m *mvp) explain(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.ArtifactDir(), "mvp.log")
	if err := os.WriteFile(path, []byte(m.log.String()), 0o600); err != nil {
		t.Error(err)
	}
	var b strings.Builder
	n := 0
	for line := range strings.Lines(m.log.String()) {
		if !unusual.MatchString(line) {
			continue
		}
		if n++; n > maxExplained {
			fmt.Fprintf(&b, "and more, see %s\n", path)
			break
		}
		fmt.Fprintf(&b, "%.700s", line)
	}
	t.Logf("mvp logged:\n%s", b.String())
}

// unusual are records of warnings, errors, and requests that failed.
var unusual = regexp.MustCompile(`"level":"(WARN|ERROR)"|"status":5\d\d|"error":`)
