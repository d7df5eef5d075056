package proxy_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// A request for which a server has no connection left, and gets none in time, is
// answered 503 and when to come again; nothing of it was sent.
func TestServerIsFull(t *testing.T) {
	arrived, end := make(chan struct{}, 1), make(chan struct{})
	u, _ := tapeRecorder(t, nil, "a", func(request) string {
		arrived <- struct{}{}
		<-end
		return ok("{}")
	})
	s := raise(t, setting{upstream: upstream.Config{
		MaxConnsPerServer: 1, DialTimeout: 100 * time.Millisecond,
		ProbeInterval: time.Hour, DiscoveryInterval: time.Hour, CRDInterval: time.Hour,
	}}, u)
	first, firstIn := s.send(target(pod))
	defer first.Close()
	<-arrived
	for _, raw := range []string{postHead + "Content-Length: 2\r\n\r\n{}", target(pod)} {
		got, err := s.ask(raw)
		if err != nil || got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
			t.Errorf("answered %d %s, Retry-After %q, %v, want 503 and when to come again", got.code, got.body, got.header.Get("Retry-After"), err)
		}
		wantStatus(t, got)
		if !strings.Contains(got.body, `"reason":"ServiceUnavailable"`) || !strings.Contains(got.body, "has as many requests under way as MVP sends it at once") {
			t.Errorf("the answer is %s, want why", got.body)
		}
	}
	close(end)
	if got, err := readAnswer(firstIn, "GET"); err != nil || got.code != http.StatusOK {
		t.Errorf("the request that was under way was answered %d %s, %v", got.code, got.body, err)
	}
	u.only()
}
