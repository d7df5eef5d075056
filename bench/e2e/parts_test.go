package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// testGetWatch runs `kubectl get -w`, changes the object directly, and waits for
// the line.
func testGetWatch(t *testing.T, k, direct kubectl) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := k.command(ctx, "get", oldCR, "shop", "-w", "-o", "jsonpath={.apiVersion} {.spec.config.legacyTimeout}{\"\\n\"}")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	want := func(line string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != line {
			t.Errorf("kubectl %s get -w printed %q, want %q", k.version, lines.Text(), line)
		}
	}
	want("myapps.example.com/v1alpha1 50")
	direct.ok("patch", newCR, "shop", "--type", "merge", "-p", `{"spec":{"config":{"requestTimeoutSeconds":60}}}`)
	want("myapps.example.com/v1alpha1 60")
	cancel()
	_ = cmd.Wait() // it was killed
}

// testOldKubectl has kubectl 1.20 speak policy/v1beta1 and batch/v1beta1, which
// no server has.
func testOldKubectl(t *testing.T, l *lab) {
	m := l.serve(t, nil, "policy-v1beta1", "batch-v1beta1")
	old := m.kubectl("1.20").in(t)
	direct := l.direct(t, "b")
	direct.version = "1.20"

	createBudget := []string{"create", "pdb", "budget", "--selector=app=shop", "--min-available=1"}
	direct.fails("no matches for kind", createBudget...)
	old.says("created", createBudget...)
	old.says("budget", "get", "pdb")
	if got := field(old.object("pdb.v1beta1.policy", "budget"), "apiVersion"); got != "string policy/v1beta1" {
		t.Errorf("apiVersion is %s", got)
	}
	old.says("deleted", "delete", "pdb", "budget")

	createJob := []string{"create", "cronjob", "nightly", "--image=busybox", "--schedule=0 3 * * *"}
	direct.fails("could not find the requested resource", createJob...)
	old.says("created", createJob...)
	old.says("nightly", "get", "cronjob")
	if got := field(l.direct(t, "b").object("cronjobs.v1.batch", "nightly"), "spec.schedule"); got != "string 0 3 * * *" {
		t.Errorf("the schedule is stored as %s", got)
	}
	old.says("deleted", "delete", "cronjob", "nightly")
}

// testServedByOne lists a kind that only the older server has, with it and
// without it.
func testServedByOne(t *testing.T, l *lab) {
	m := l.serve(t, nil, "flowcontrol-v1beta3")
	k := m.kubectl(newKubectl).in(t)
	const kind = "flowschemas.v1beta3.flowcontrol.apiserver.k8s.io"
	l.direct(t, "b").fails("the server doesn't have a resource type", "get", kind)
	for range 100 {
		k.says("exempt", "get", kind)
	}
	stop(t, l, "a")
	defer start(t, l, m, "a")
	for range 20 {
		k.says("exempt", "get", kind)
	}
	if got := field(k.object(kind, "exempt"), "apiVersion"); got != "string flowcontrol.apiserver.k8s.io/v1beta3" {
		t.Errorf("apiVersion is %s", got)
	}
}

func stop(t *testing.T, l *lab, name string) {
	t.Helper()
	if err := l.Stop(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, l *lab, m *mvp, name string) {
	t.Helper()
	if err := l.Start(context.WithoutCancel(t.Context()), name); err != nil {
		t.Fatal(err)
	}
	m.ready()
}

// testPreference sends Deployments to the 1.32 server while it is there, and to
// the other while it is not, without a failed request.
func testPreference(t *testing.T, l *lab, policies map[string]string) {
	m := l.serve(t, policies)
	k := m.kubectl(newKubectl).in(t)
	const path = "/apis/apps/v1/namespaces/default/deployments"
	for i := range 5 {
		k.says("created", "create", "deployment", fmt.Sprintf("d%d", i), "--image=busybox")
	}
	defer func() { k.ok("delete", "deployment", "--all") }()
	for _, record := range m.log.records("request") {
		if record["path"] == path && record["upstream"] != "b" {
			t.Errorf("%s %s went to %s, not to the preferred server", record["method"], path, record["upstream"])
		}
	}
	load := m.load(path)
	stop(t, l, "b")
	load.more(200)
	start(t, l, m, "b")
	load.more(200)
	load.end()
	served := map[any]int{}
	for _, record := range m.log.records("request") {
		if record["path"] == path && record["method"] == "GET" {
			served[record["upstream"]]++
		}
	}
	t.Logf("answered by: %v", served)
	if served["a"] < 100 || served["b"] < 100 {
		t.Errorf("answered by %v, want many by both", served)
	}
}

// load is a client that gets a path over and over; none may fail.
type load struct {
	m      *mvp
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu   sync.Mutex
	sent int
}

func (m *mvp) load(path string) *load {
	ctx, cancel := context.WithCancel(m.t.Context())
	l := &load{m: m, cancel: cancel}
	client := m.client()
	for range 2 {
		l.done.Go(func() {
			for ctx.Err() == nil {
				if err := l.get(ctx, client, m.url+path); err != nil && ctx.Err() == nil {
					m.t.Errorf("a request failed: %v", err)
				}
			}
		})
	}
	m.t.Cleanup(cancel)
	return l
}

func (l *load) get(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%d: %s", resp.StatusCode, body)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	return nil
}

// more waits until n more requests were answered.
func (l *load) more(n int) {
	l.m.t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.sent
	}
	target := count() + n
	l.m.eventually("requests flow", func() bool { return count() >= target })
}

func (l *load) end() {
	l.cancel()
	l.done.Wait()
}

// testReload edits the rules while requests flow.
func testReload(t *testing.T, l *lab, policies map[string]string) {
	m := l.serve(t, policies)
	k, direct := m.kubectl(newKubectl).in(t), l.direct(t, "b")
	k.ok("apply", "-f", manifest(t, "customresource-v1alpha1.yaml"))
	defer func() { direct.ok("delete", newCR, "--all") }()
	load := m.load("/apis/myapps.example.com/v1alpha1/namespaces/default/customresources")
	defer load.end()

	edit := func(from, to string) {
		t.Helper()
		path := filepath.Join(m.policies, "mvp-rules.yaml")
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(content), from) {
			t.Fatalf("the rules do not have %q", from)
		}
		edited := strings.Replace(string(content), from, to, 1)
		if err := os.WriteFile(path+".new", []byte(edited), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	state := func() string {
		_, body := m.getAs(m.url + "/apis/myapps.example.com/v1alpha1/namespaces/default/customresources/shop")
		var object map[string]any
		if err := json.Unmarshal(body, &object); err != nil {
			t.Fatalf("got %q: %v", body, err)
		}
		return field(object, "spec.stateManagement")
	}
	if got := state(); got != "string ephemeral" {
		t.Fatalf("stateManagement is %s before the edit", got)
	}
	edit(`matchValue: "ephemeral"`, `matchValue: "transient"`)
	t.Logf("the edit was live after %v", m.eventually("the edit is live", func() bool { return state() == "string transient" }))

	edit(`action: "modify"`, `action: "modfy"`)
	var report string
	m.eventually("/policies says what is wrong", func() bool {
		_, report = m.get(m.admin + "/policies")
		return strings.Contains(report, "modfy")
	})
	if got := state(); got != "string transient" {
		t.Errorf("a broken edit changed stateManagement to %s", got)
	}
	const place = "mvp-rules.yaml:2" // and the line's second digit, the column
	_, metrics := m.get(m.admin + "/metrics")
	for where, text := range map[string]string{"/policies": report, "the log": m.log.String(), "/metrics": metrics} {
		if !strings.Contains(text, place) || !strings.Contains(text, "modfy") {
			t.Errorf("%s does not say where and why: %q is missing", where, place)
		}
	}
	if !strings.Contains(metrics, "mvp_policy_mistake{") {
		t.Error("/metrics has no mvp_policy_mistake")
	}
	edit(`action: "modfy"`, `action: "modify"`)
	m.eventually("the mistake is gone", func() bool {
		_, report = m.get(m.admin + "/policies")
		return !strings.Contains(report, "modfy")
	})
	load.more(50)
}

// getAs reads one page through mvp as the administrator.
func (m *mvp) getAs(url string) (int, []byte) {
	m.t.Helper()
	resp, err := m.client().Get(url)
	if err != nil {
		m.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return resp.StatusCode, body
}

// testWatch measures a watch, plain and converted: its head, its events, and the
// end of the upstream's part when the client is gone.
func testWatch(t *testing.T, l *lab, policies map[string]string) {
	m := l.serve(t, policies)
	k, direct := m.kubectl(newKubectl).in(t), l.direct(t, "b")
	k.ok("apply", "-f", manifest(t, "customresource-v1alpha1.yaml"))
	defer func() { direct.ok("delete", newCR, "--all") }()
	for name, version := range map[string]string{"plain": "v1beta1", "converted": "v1alpha1"} {
		t.Run(name, func(t *testing.T) {
			path := "/apis/myapps.example.com/" + version + "/namespaces/default/customresources"
			_, body := m.getAs(m.url + path)
			var list struct {
				Metadata struct{ ResourceVersion string }
			}
			if err := json.Unmarshal(body, &list); err != nil {
				t.Fatal(err)
			}
			base := m.streams()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url+path+"?watch=1&resourceVersion="+list.Metadata.ResourceVersion, nil)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			resp, err := m.client().Do(req) // nothing changes, so only the head can end this
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			t.Logf("the head came after %v", time.Since(began))
			events := bufio.NewReader(resp.Body)
			for i := range 5 {
				patch := fmt.Sprintf(`{"metadata":{"annotations":{"n":"%s%d"}}}`, name, i)
				sent := time.Now()
				m.patch(t, path+"/shop", patch)
				answered := time.Since(sent)
				line, err := events.ReadString('\n')
				if err != nil || !strings.Contains(line, name+fmt.Sprint(i)) || !strings.Contains(line, "myapps.example.com/"+version) {
					t.Fatalf("event %d is %q, %v", i, line, err)
				}
				t.Logf("the write was answered after %v, its event there after %v", answered, time.Since(sent))
			}
			if got := m.streams(); got <= base {
				t.Errorf("%d upstream streams with the watch, %d before it", got, base)
			}
			cancel()
			t.Logf("the upstream's part was gone after %v", m.eventually("the upstream's watch is gone", func() bool { return m.streams() == base }))
		})
	}
}

func (m *mvp) patch(t *testing.T, path, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, m.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/merge-patch+json")
	resp, err := m.client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(resp.Body)
		t.Fatalf("patch answered %d: %s", resp.StatusCode, answer)
	}
}

// testTestPolicy runs the same policies offline.
func testTestPolicy(t *testing.T, l *lab, policies map[string]string) {
	dir := t.TempDir()
	for name, content := range policies {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(code int, want []string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), l.binary, append([]string{"test-policy"}, args...)...)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("mvp test-policy %s exited %d, want %d:\n%s", strings.Join(args, " "), got, code, out)
		}
		for _, text := range want {
			if !strings.Contains(string(out), text) {
				t.Errorf("mvp test-policy %s printed\n%s\nwant %q in it", strings.Join(args, " "), out, text)
			}
		}
	}
	run(0, []string{"apiVersion: myapps.example.com/v1beta1", "requestTimeoutSeconds: 30", "stateManagement: stateless"},
		"--policies", dir, "-o", "yaml", manifest(t, "customresource-v1alpha1.yaml"))
	run(0, []string{"untouched"}, "--policies", dir, manifest(t, "crd.yaml"))
	broken := write(t, "10-typo.match.cel", "requst.verb == 'get'\n")
	run(3, []string{"10-typo.match.cel:1:1: ", "\n  requst.verb == 'get'\n  ^"}, "--policies", filepath.Dir(broken), manifest(t, "crd.yaml"))
}
