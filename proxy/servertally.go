package proxy

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// serverTally counts what became of the round trips of clients' requests to a server.
type serverTally struct {
	answers  [6]atomic.Uint64 // by the first digit of the status; at 0 what has another
	failures atomic.Uint64    // that brought no answer, or broke off in it
	latency  atomic.Int64     // moving average of the time to the head, in nanoseconds
	seconds  prometheus.Observer
}

// server is the tally of the exchange's server, nil for none.
func (t *tally) server(x *exchange) *serverTally {
	if x.server == nil {
		return nil
	}
	return t.of(x.server.Name)
}

// answered counts the head of an answer to a round trip that began at start. Long
// ones have no latency: what a watch waits for is not the server's doing.
func (t *tally) answered(x *exchange, start time.Time) {
	server := t.server(x)
	if server == nil {
		return
	}
	class := x.answer.Status / 100
	if class < 1 || class > 5 {
		class = 0
	}
	server.answers[class].Add(1)
	if !x.long() {
		server.took(time.Since(start))
	}
}

// took takes one latency into the average over about the last ten. Two at the same
// moment may count as one.
func (s *serverTally) took(d time.Duration) {
	s.seconds.Observe(d.Seconds())
	old := s.latency.Load()
	if old == 0 {
		old = int64(d)
	}
	s.latency.Store(old + (int64(d)-old)/10)
}

// failed counts a round trip that failed, where that was the server's doing.
func (t *tally) failed(x *exchange, err error) {
	server, reason := t.server(x), failureReason(err)
	if server == nil || reason == "" {
		return
	}
	server.failures.Add(1)
	x.s.metrics.upstreamFailures.WithLabelValues(x.server.Name, reason).Inc()
}

// failureReason is what metrics call the failure of a round trip, "" for one that is
// not the server's.
func failureReason(err error) string {
	var up *upstream.Error
	if errors.Is(err, errServerDown) {
		return "hung"
	}
	if !errors.As(err, &up) || errors.Is(err, context.Canceled) {
		return ""
	}
	switch up.Op {
	case upstream.OpWait:
		return "busy"
	case upstream.OpDial:
		return "dial"
	case upstream.OpHandshake:
		return "handshake"
	case upstream.OpWrite, upstream.OpReadHead:
		return "no_answer"
	case upstream.OpReadBody:
		return "broken_answer"
	}
	return ""
}
