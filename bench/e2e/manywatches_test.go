package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// manyWatches are open at once, each on a connection of its own; every second one
	// is converted.
	manyWatches = 2000

	// dialers is how many of them are opened at the same time.
	dialers = 16
)

// testManyWatches opens many watches that say nothing. With them open kubectl is served
// as before, and when their clients vanish MVP has what it had: connections to the
// servers, file descriptors, goroutines.
func testManyWatches(t *testing.T, l *lab, policies map[string]string) {
	m := l.serve(t, policies)
	k := m.kubectl(newKubectl).in(t)
	k.ok("get", "ns") // reads discovery, which is not measured
	alone := m.listNamespaces(t)
	base := m.held(t)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	m.openWatches(ctx, t, manyWatches)
	t.Logf("%d watches were open after %v: %v", manyWatches, time.Since(began).Round(time.Millisecond), m.held(t))
	if got := m.streams(); got < manyWatches {
		t.Errorf("%d upstream streams, want one for each of %d watches", got, manyWatches)
	}
	t.Logf("kubectl get ns takes %v with them, %v without", m.listNamespaces(t), alone)

	cancel()
	took := m.eventually("all that the watches held is given back", func() bool { return m.held(t).within(base) })
	t.Logf("all was as before after %v: before %v, now %v", took.Round(time.Millisecond), base, m.held(t))
}

// listNamespaces runs `kubectl get ns` some times and returns how long the fastest took.
func (m *mvp) listNamespaces(t *testing.T) time.Duration {
	t.Helper()
	k := m.kubectl(newKubectl).in(t)
	fastest := time.Hour
	for range 5 {
		began := time.Now()
		k.says("kube-system", "get", "ns")
		fastest = min(fastest, time.Since(began))
	}
	return fastest.Round(time.Millisecond)
}

// openWatches opens n watches from the newest resourceVersion. They end with ctx.
func (m *mvp) openWatches(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	client := m.client()
	paths := make(chan string)
	var all sync.WaitGroup
	for range dialers {
		all.Go(func() {
			for path := range paths {
				if err := openWatch(ctx, client, m.url+path); err != nil {
					t.Errorf("cannot watch %s: %v", path, err)
				}
			}
		})
	}
	for i := range n {
		paths <- []string{
			"/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=0",
			"/apis/myapps.example.com/v1alpha1/namespaces/default/customresources?watch=1&resourceVersion=0",
		}[i%2]
	}
	close(paths)
	all.Wait()
}

// openWatch reads the head of a watch; the rest goes with its context.
func openWatch(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		err = fmt.Errorf("answered %s", resp.Status)
	}
	return err
}

// holding is what MVP holds for its clients.
type holding struct{ streams, files, goroutines int }

func (h holding) String() string {
	return fmt.Sprintf("%d upstream streams, %d files, %d goroutines", h.streams, h.files, h.goroutines)
}

// within reports whether h is base again, and a few connections that are kept.
func (h holding) within(base holding) bool {
	const kept = 10
	return h.streams <= base.streams && h.files <= base.files+kept && h.goroutines <= base.goroutines+2*kept
}

func (m *mvp) held(t *testing.T) holding {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", m.process.Pid))
	if err != nil {
		t.Fatalf("cannot count the files of mvp: %v", err)
	}
	h := holding{streams: m.streams(), files: len(files)}
	_, metrics := m.get(m.admin + "/metrics")
	for line := range strings.Lines(metrics) {
		_, _ = fmt.Sscanf(line, "go_goroutines %d", &h.goroutines)
	}
	return h
}
