package upstream

import (
	"context"
	"errors"
	"io"
	"testing"
)

// BenchmarkRoundTrip is a GET of two bytes over a kept connection, loopback system
// calls of both sides included.
func BenchmarkRoundTrip(b *testing.B) {
	s := serverAt(b, "http://"+listen(b, answerEach(okAnswer)), nil)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	req := &Request{Method: "GET", Target: "/api/v1/namespaces/default/pods/p", Host: "kube", Header: fields(
		"User-Agent", "kubectl/v1.32.0", "Accept", "application/json", "Authorization", "Bearer x",
	)}
	buf := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		resp, err := s.RoundTrip(ctx, req)
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, err = resp.Body.Read(buf)
		}
		if !errors.Is(err, io.EOF) {
			b.Fatal(err)
		}
		_ = resp.Body.Close()
	}
}
