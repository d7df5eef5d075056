package upstream

import (
	"context"
	"sync"
	"time"
)

const (
	// newsInterval is the time between two polls while news is awaited, at first; it
	// grows to a fifth of the news' age.
	newsInterval = 100 * time.Millisecond

	// wakeGap is the least time between the end of a poll and the next one, whatever
	// wakes it: also a server with many changes is not polled without a pause.
	wakeGap = 50 * time.Millisecond

	// restFactor is how many times as long as a poll took the next one waits at least,
	// up to maxRest: polling a cluster whose discovery takes 100 ms to read takes a
	// third of a processor, for the seconds in which it changes.
	restFactor = 4
	maxRest    = 200 * time.Millisecond

	// signGap is the least time between two polls or probes that signs in clients'
	// traffic bring about.
	signGap = 200 * time.Millisecond
)

// pause is how long a loop waits: at least for least, and then until it is woken, but
// no longer than most in all.
type pause struct{ least, most time.Duration }

// pauseAfter is the pause after a poll that took that long. Its usual interval is idle;
// news is when the last event came that it must show, zero without one.
func pauseAfter(took, idle time.Duration, news time.Time) pause {
	least := min(max(wakeGap, min(restFactor*took, maxRest)), idle)
	if news.IsZero() {
		return pause{least, idle}
	}
	return pause{least, min(max(newsInterval, time.Since(news)/5, least), idle)}
}

// paced calls f at once, and again after the pause that it returns, until ctx is done.
func paced(ctx context.Context, woken <-chan struct{}, f func() pause) {
	for ctx.Err() == nil {
		p := f()
		if !sleep(ctx, p.least) {
			return
		}
		timer := time.NewTimer(p.most - p.least)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-woken:
		}
		timer.Stop()
	}
}

// throttle calls f for each call of its own, but at most once in a gap: calls within
// one are made up for by one at its end.
type throttle struct {
	gap time.Duration
	f   func()

	mu      sync.Mutex
	last    time.Time
	pending bool
}

func (t *throttle) call() {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch wait := t.gap - time.Since(t.last); {
	case t.pending:
	case wait <= 0:
		t.last = time.Now()
		t.f()
	default:
		t.pending = true
		time.AfterFunc(wait, t.due)
	}
}

func (t *throttle) due() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending, t.last = false, time.Now()
	t.f()
}
