package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
	"github.com/mixed-version-proxy/mvp/bench/lab/kubelet"
	"github.com/mixed-version-proxy/mvp/examples/demo"
)

const (
	// shutdownWatches are open when MVP is told to end, half of them converted.
	shutdownWatches = 50

	// shutdownWriters write without a pause until then.
	shutdownWriters = 8

	// shutdownGrace is what MVP is given to end.
	shutdownGrace = 20 * time.Second

	// shutdownSessions are commands that run in a container until their user ends them.
	shutdownSessions = 5
)

// TestShutdown ends MVP under load: every write that was taken is answered, every
// watch ends after a whole event, sessions go on, and MVP ends by itself and in time.
func TestShutdown(t *testing.T) {
	t.Parallel()
	l := startLabWith(t, controlplane.Config{Kubelet: true})
	t.Run("under load", func(t *testing.T) { testShutdownUnderLoad(t, l) })
	t.Run("with a session that does not end", func(t *testing.T) { testShutdownCutsSessions(t, l) })
}

func testShutdownUnderLoad(t *testing.T, l *lab) {
	p := l.launch(t, map[string]string{"mvp-rules.yaml": read(t, demo.Manifests, "mvp-rules.yaml")}, shutdownGrace)
	p.kubectl(newKubectl).ok("apply", "-f", manifest(t, "customresource-v1alpha1.yaml"))

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var watches sync.WaitGroup
	open := make(chan struct{}, shutdownWatches)
	for i := range shutdownWatches {
		path := "/api/v1/configmaps?watch=1"
		if i%2 == 1 {
			path = "/apis/myapps.example.com/v1alpha1/customresources?watch=1"
		}
		watches.Go(func() { p.watch(ctx, t, path, open) })
	}
	for range shutdownWatches {
		<-open
	}
	var sessions []*running
	for i := range shutdownSessions {
		sessions = append(sessions, p.session(t, flavours[i%len(flavours)]))
	}
	var writers sync.WaitGroup
	var written atomic.Int64
	told := make(chan struct{})
	for i := range shutdownWriters {
		writers.Go(func() { p.write(ctx, t, fmt.Sprintf("w%d", i), &written, told) })
	}
	p.eventually("writes are under way", func() bool { return written.Load() > 10*shutdownWriters })

	close(told)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	deadline := time.AfterFunc(shutdownGrace, func() { _ = p.cmd.Process.Kill() })
	p.eventually("mvp shuts down", func() bool { return p.log.find("shutting down") != nil })
	for _, session := range sessions {
		session.types(t, "after\n")
		session.sees(t, "after\n")
		_ = session.stdin.Close()
		if code := session.code(t); code != 42 {
			t.Errorf("a session that its user ended in the grace period ended with %d, want 42; it printed %q", code, session.out.String())
		}
	}
	err := p.cmd.Wait()
	if !deadline.Stop() {
		t.Errorf("mvp did not end within %v", shutdownGrace)
	}
	if err != nil {
		t.Errorf("mvp ended with %v, want exit code 0", err)
	}
	writers.Wait()
	watches.Wait()
	if p.log.find("some requests were cut off at the end of the grace period") != nil {
		t.Error("requests were cut off")
	}
	t.Logf("%d writes were answered", written.Load())
}

// session runs a command that says what it is told, until its input ends.
func (p *process) session(t *testing.T, f flavour) *running {
	t.Helper()
	r := f.streamer(p.kubectl(f.version).in(t)).start("exec", "-i", kubelet.Pod, "-c", kubelet.Main, "--", "sh", "-c", "cat; exit 42")
	r.types(t, "before\n")
	r.sees(t, "before\n")
	return r
}

// testShutdownCutsSessions has a session that outlives the grace period. It is cut
// then, and mvp has ended as it was asked to.
func testShutdownCutsSessions(t *testing.T, l *lab) {
	p := l.launch(t, nil, time.Second)
	session := p.session(t, flavour{newKubectl, true})
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("mvp ended with %v, want exit code 0", err)
	}
	if p.log.find("some requests were cut off at the end of the grace period") == nil {
		t.Error("the log does not say that something was cut off")
	}
	if code := session.code(t); code == 0 || code == 42 {
		t.Errorf("the session that was cut ended with %d, want a failure; it printed %q", code, session.out.String())
	}
}

// process is an mvp that the test ends itself.
type process struct {
	mvp
	cmd  *exec.Cmd
	http *http.Client
}

// launch is serve, but for who ends it.
func (l *lab) launch(t *testing.T, files map[string]string, grace time.Duration) *process {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, key, err := l.ServingCert("mvp", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	p := &process{mvp: mvp{t: t, lab: l, log: &lines{}}}
	p.cmd = exec.Command(l.binary, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		"--upstream", "a="+l.URL("a"), "--upstream", "b="+l.URL("b"), "--upstream-ca-file", l.Files().CA,
		"--upstream-token-file", write(t, "token", l.Token(controlplane.Discovery)),
		"--tls-cert-file", cert, "--tls-private-key-file", key, "--policies", dir,
		"--shutdown-grace-period", grace.String())
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it has ended, unless the test failed
		if t.Failed() {
			t.Logf("the log of mvp ends:\n%s", tail(p.log.String(), 8<<10))
		}
	})
	p.eventually("mvp says where it listens", func() bool {
		record := p.log.find("serving")
		if record == nil {
			return false
		}
		p.url, p.admin = "https://"+record["clients"].(string), "http://"+record["admin"].(string)
		return true
	})
	p.ready()
	p.http = p.client()
	return p
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// watch reads a watch to its end. Each line of it must be a whole event, and the end
// one that a client takes for the end.
func (p *process) watch(ctx context.Context, t *testing.T, path string, open chan<- struct{}) {
	opened := sync.OnceFunc(func() { open <- struct{}{} })
	defer opened()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		t.Error(err)
		return
	}
	resp, err := p.http.Do(req)
	if err != nil {
		t.Errorf("cannot watch %s: %v", path, err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("watching %s was answered %s", path, resp.Status)
		return
	}
	opened()
	events := bufio.NewReader(resp.Body)
	for n := 0; ; n++ {
		line, err := events.ReadString('\n')
		switch {
		case err == nil && !json.Valid([]byte(line)):
			t.Errorf("event %d of %s is %q", n, path, line)
		case errors.Is(err, io.EOF) && line == "":
			return
		case err != nil:
			t.Errorf("after %d events %s ended with %q, %v", n, path, line, err)
			return
		}
	}
}

// write creates ConfigMaps one after the other until mvp has been told to end. Each
// must be answered; from then on a connection may be refused instead, or the next
// request find it closed before anything was taken of it.
func (p *process) write(ctx context.Context, t *testing.T, name string, written *atomic.Int64, told <-chan struct{}) {
	for i := 0; ; i++ {
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s-%d"},"data":{"x":%q}}`, name, i, strings.Repeat("x", 1000))
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/api/v1/namespaces/default/configmaps", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := p.http.Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		select {
		case <-told:
			if err != nil && p.stored(t, fmt.Sprintf("%s-%d", name, i)) {
				t.Errorf("%s-%d was stored, and its writer got %v", name, i, err)
			}
			if err != nil {
				return
			}
		default:
		}
		if err != nil {
			t.Errorf("write %d of %s: %v", i, name, err)
			return
		}
		if resp.StatusCode != http.StatusCreated {
			t.Errorf("write %d of %s was answered %s", i, name, resp.Status)
			return
		}
		written.Add(1)
	}
}

// stored reports whether a server has the ConfigMap.
func (p *process) stored(t *testing.T, name string) bool {
	out, err := p.lab.direct(t, "b").run("get", "configmap", name, "--ignore-not-found", "-o", "name")
	if err != nil {
		t.Errorf("cannot look for %s: %v\n%s", name, err, out)
	}
	return strings.Contains(out, name)
}
