package proxy_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/proxy"
)

// BenchmarkWatchThrough is one event of 3 KiB from a server to a client, both on
// sockets of their own, with the watch followed and passed as it comes.
func BenchmarkWatchThrough(b *testing.B) {
	event := jsonEvents.write(change{10, "ADDED", strings.Repeat("x", 1400)})
	for name, settings := range map[string]proxy.Config{"followed": {}, "passed": {PassWatches: true}} {
		b.Run(name, func(b *testing.B) {
			a := serveWatches(b, "a", newHistory())
			s := watchStage(b, settings, a)
			conns := make(chan request, 1)
			a.say = func(q request) string {
				conns <- q
				return head200 + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
			}
			w := s.watch(podsAfter + "7")
			server, text, got := (<-conns).conn, chunked(event), make([]byte, len(event))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := io.WriteString(server, text); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(w.in, got); err != nil {
					b.Fatal(fmt.Errorf("reading an event: %w", err))
				}
			}
		})
	}
}
