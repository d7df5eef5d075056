package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mixed-version-proxy/mvp/proxy"
)

// scriptedAdmin is the address of an admin listener whose pages are the files in the
// script's folder admin.
func scriptedAdmin(env *testscript.Env) string {
	files := http.FileServer(http.Dir(filepath.Join(env.WorkDir, "admin")))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorded := httptest.NewRecorder()
		files.ServeHTTP(recorded, r)
		code := recorded.Code
		if strings.HasPrefix(recorded.Body.String(), "not ready") {
			code = http.StatusServiceUnavailable
		}
		w.WriteHeader(code)
		_, _ = w.Write(recorded.Body.Bytes())
	}))
	env.Defer(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// runStatus runs `mvp status` with the arguments.
func runStatus(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	code = run(t.Context(), append([]string{"status"}, args...), streams{strings.NewReader(""), &out, &err})
	return code, out.String(), err.String()
}

// The whole table of a demo that runs.
func TestStatusOfDemo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"demo"}, streams{strings.NewReader(""), writer, writer})
		_ = writer.Close() // a pipe's never fails
	}()
	t.Cleanup(func() { cancel(); <-ended })
	admin := ""
	for lines := bufio.NewScanner(reader); admin == "" && lines.Scan(); {
		if address, ok := strings.CutSuffix(strings.TrimSpace(lines.Text()), "/upstreams"); ok {
			admin = strings.TrimPrefix(address, "curl ")
		}
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()

	// The last step of the demo stopped a server, which may take a moment to be back.
	code, stdout, stderr := runStatus(t, "--admin", admin)
	for deadline := time.Now().Add(20 * time.Second); strings.Contains(stdout, "Unhealthy") && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) { // the command tells when asked
		code, stdout, stderr = runStatus(t, "--admin", admin)
	}
	if code != exitOK || stderr != "" {
		t.Errorf("exited %d and said %q", code, stderr)
	}
	for _, line := range []string{
		`^NAME +VERSION +STATUS +SINCE +INFLIGHT +STREAMS +REQUESTS +ERRORS +LATENCY +ONLY\n`,
		`\nkube-apiserver-1.31 +v1.31.14 +Healthy +\d+s +0 +0 +[1-9]\d* +\d+ +\d+\.\dms +2\n`,
		`\nkube-apiserver-1.32 +v1.32.13 +Healthy +\d+s +0 +0 +[1-9]\d* +\d+ +\d+\.\dms +0\n\nONLY SOME SERVE `,
		`\nflowcontrol.apiserver.k8s.io/v1beta3 flowschemas +all +kube-apiserver-1.31 +served +[1-9]\d* +[1-9]`,
		`\npolicy/v1beta1 poddisruptionbudgets +policy/v1 poddisruptionbudgets +kube-apiserver-1.31,kube-apiserver-1.32 +served +[1-9]`,
		`\nupgrade-v1.31-to-v1.32/apiMigrationRules\[0\] +enforce +[1-9]\d* +0 +[1-9]\d* +0 +0\n`,
		`\n… and \d\d+ shipped policies that no request has matched \(-o wide shows them\)\n\n\d+ policies of generation 1, loaded \d+s ago from 1 file.\n$`,
	} {
		if !regexp.MustCompile(line).MatchString(stdout) {
			t.Errorf("printed\n%s\nwithout a line like %s", stdout, line)
		}
	}
}

var statusTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// The wide table shows everything, and nothing of what servers say of themselves can
// do more than be read.
func TestStatusTable(t *testing.T) {
	hostile := "down\x1b[2J\r\nb   v9.9.9   Healthy\u202e"
	report := &statusReport{
		Upstreams: proxy.UpstreamsReport{
			Time: statusTime,
			Servers: []proxy.ServerReport{
				{
					Name: "a", URL: "https://10.0.0.1:6443", Version: "v1.32.13", Emulation: "1.31", Healthy: true, Synced: true, Stale: true,
					Since: statusTime.Add(-26 * time.Hour), Problem: "GET /apis answered 500", Unwatched: []string{"apiservices.apiregistration.k8s.io"}, Resources: 70, Only: []string{"x", "y"}, Lacks: []string{"z"},
					Inflight: 1, Streams: 2, LatencyMillis: 1.26, ProbeMillis: 0.5,
					Answers: proxy.Answers{Total: 12, Classes: map[string]uint64{"2xx": 5, "4xx": 2, "5xx": 3}, Failures: 2},
				},
				{Name: "b", URL: "https://10.0.0.2:6443", Reason: hostile, Since: statusTime.Add(-90 * time.Second)},
				{Name: "c", URL: "https://10.0.0.3:6443", Reason: "not probed yet"},
			},
			Partial: []proxy.PartialReport{
				{Resource: "apps/v1 deployments", Verbs: []string{"list", "watch"}, Servers: []string{"a"}, Missing: []string{"b", "c"}},
				{
					Resource: "acme.io/v1beta1 things", Verbs: []string{"get"}, Whole: true, Servers: []string{"b", "c"}, Missing: []string{"a"},
					Unavailable: true, ConvertedTo: "acme.io/v1 things", Policy: "things", Demand: proxy.Demand{Requests: 7, Recent: 3},
				},
			},
		},
		Policies: policyReport{
			Generation: 2, Loaded: statusTime.Add(-3 * time.Hour), Files: []string{"f", "g"},
			Policies: []policyInfo{
				{Name: "things", Position: "f:1:1", Roles: []string{"match", "convert"}, Mode: "audit", PolicyCounts: proxy.PolicyCounts{Audited: 4}},
				{Name: "old/things", Position: "g:1:1", Roles: []string{"convert"}, Mode: "enforce", ShadowedBy: "things"},
			},
		},
	}
	const want = `NAME   VERSION    STATUS              SINCE   INFLIGHT   STREAMS   REQUESTS   ERRORS   LATENCY   ONLY   LACKS   RESOURCES   EMULATES   PROBE   URL
a      v1.32.13   Healthy,Stale       26h     1          2         12         5        1.3ms     2      1       70          1.31       0.5ms   https://10.0.0.1:6443
b      -          Unhealthy,Unknown   90s     0          0         0          0        -         0      0       0           -          -       https://10.0.0.2:6443
c      -          NotProbed,Unknown   -       0          0         0          0        -         0      0       0           -          -       https://10.0.0.3:6443

SERVER   PROBLEM
a        cannot read what it serves: GET /apis answered 500
a        MVP's own credential may not watch apiservices.apiregistration.k8s.io: their changes are seen seconds later
b        down [2J  b   v9.9.9   Healthy 
c        not probed yet

ONLY SOME SERVE          VERBS        SERVERS   NOW         REQUESTS   LATELY   MISSING   CONVERTED TO        POLICY
apps/v1 deployments      list,watch   a         served      0          0        b,c       -                   -
acme.io/v1beta1 things   all          b,c       converted   7          3        a         acme.io/v1 things   things

POLICY       MODE       MATCHES   DENIALS   CONVERSIONS   ERRORS   AUDITED   DOES            POSITION
things       audit      0         0         0             0        4         match,convert   f:1:1
old/things   shadowed   0         0         0             0        0         convert         g:1:1

2 policies of generation 2, loaded 3h ago from 2 files.
`
	var out strings.Builder
	if err := printStatus(&out, report, true); err != nil || out.String() != want {
		t.Errorf("printed (%v)\n%s\nwant\n%s", err, out.String(), want)
	}
}

// A long table is cut where it is for people only.
func TestStatusTableIsCut(t *testing.T) {
	report := &statusReport{}
	for i := range maxStatusRows + 3 {
		report.Policies.Policies = append(report.Policies.Policies, policyInfo{Name: fmt.Sprintf("p%d", i)})
	}
	for wide, want := range map[bool]int{false: maxStatusRows, true: maxStatusRows + 3} {
		var out strings.Builder
		if err := printStatus(&out, report, wide); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), "\np"); got != want {
			t.Errorf("wide=%v: %d policies, want %d", wide, got, want)
		}
		if got := strings.Contains(out.String(), "\n… and 3 more (-o wide shows them)\n"); got == wide {
			t.Errorf("wide=%v: says that it was cut: %v", wide, got)
		}
	}
}

// An answer without an end is not read to the end.
func TestStatusIsBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			return
		}
		chunk := strings.Repeat(" ", 1<<20)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	code, _, stderr := runStatus(t, "--admin", server.URL)
	if want := fmt.Sprintf("/upstreams: it is larger than %d bytes", maxStatusBytes); code != exitFailed || !strings.Contains(stderr, want) {
		t.Errorf("exited %d and said %q, want %q", code, stderr, want)
	}
}

// --watch shows the status again, and ends when it is interrupted.
func TestStatusWatch(t *testing.T) {
	looks := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			looks <- struct{}{}
			return
		}
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"status", "-w", "--admin", server.URL}, streams{strings.NewReader(""), io.Discard, io.Discard})
	}()
	<-looks
	<-looks
	cancel()
	if got := <-code; got != exitOK {
		t.Errorf("exited %d, want %d", got, exitOK)
	}
}
