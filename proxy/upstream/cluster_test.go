package upstream

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestCluster sends requests with MVP's own credential to a server that is healthy, and
// stays with it.
func TestCluster(t *testing.T) {
	a, b := newFake(t), newFake(t)
	p := runPool(t, func(cfg *Config) { cfg.Token = "secret" }, a, b)
	eventually(t, "both are healthy", func() bool { return len(p.View().Healthy(nil)) == 2 })
	for _, f := range []*fakeServer{a, b} {
		f.set("/own", "{}")
	}
	cluster := p.Cluster()
	ask := func() {
		t.Helper()
		req, err := http.NewRequestWithContext(testContext(t), "PATCH", "http://cluster/own", strings.NewReader(`{"a":1}`))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := cluster.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if closeErr := resp.Body.Close(); err != nil || closeErr != nil || resp.StatusCode != 200 || string(body) != "{}" {
			t.Fatalf("answer is %d %q, %v, %v", resp.StatusCode, body, err, closeErr)
		}
	}
	count := func(f *fakeServer) int { n, _ := f.asked("/own"); return n }
	for range 3 {
		ask()
	}
	first, second := a, b
	if count(a) == 0 {
		first, second = b, a
	}
	_, last := first.asked("/own")
	if count(first) != 3 || count(second) != 0 || last.Header.Get("Authorization") != "Bearer secret" || last.Method != "PATCH" || last.ContentLength != 7 {
		t.Errorf("the servers were asked %d and %d times, at last %s of %d bytes", count(first), count(second), last.Method, last.ContentLength)
	}

	// Another server answers when that one is not healthy any more.
	first.set("/readyz", "500 down")
	eventually(t, "one is unhealthy", func() bool { return len(p.View().Healthy(nil)) == 1 })
	ask()
	if count(second) != 1 {
		t.Errorf("the healthy server was asked %d times, want once", count(second))
	}
}
