package proxy_test

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A watch that no server can take now is told to come back, in the way that makes an
// informer ask for the same watch again; after the 503 that others get it would list
// everything anew.
func TestWatchComesBackLater(t *testing.T) {
	a := record(t, "a", "1.32.13", pods, nil)
	r := start(t, nil, nil, a)
	a.listener.Close()
	a.hangUp()
	r.eventually("the server is down", func() bool { return r.do("GET", "/api/v1/pods", "", "").code == 503 })
	for target, want := range map[string]struct {
		code   int
		reason string
	}{
		"/api/v1/pods":                             {503, "ServiceUnavailable"},
		"/api/v1/pods?watch=1&resourceVersion=5":   {429, "TooManyRequests"},
		"/api/v1/watch/namespaces/d/pods":          {429, "TooManyRequests"},
		"/api/v1/namespaces/d/pods?watch=false":    {503, "ServiceUnavailable"},
		"/api/v1/namespaces/d/pods/p/log?follow=1": {503, "ServiceUnavailable"},
	} {
		got := r.do("GET", target, "", "")
		var status metav1.Status
		if err := json.Unmarshal([]byte(got.body), &status); err != nil {
			t.Fatalf("%s: %v in %q", target, err, got.body)
		}
		if got.code != want.code || int(status.Code) != want.code || string(status.Reason) != want.reason || got.header.Get("Retry-After") != "1" {
			t.Errorf("%s: %d %s, Retry-After %q; want %d %s and 1", target, got.code, status.Reason, got.header.Get("Retry-After"), want.code, want.reason)
		}
	}
}
