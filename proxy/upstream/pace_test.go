package upstream

import (
	"context"
	"testing"
	"time"
)

func TestPauseAfter(t *testing.T) {
	const idle = 2 * time.Second
	f := func(took, age time.Duration, least, most time.Duration) {
		t.Helper()
		var news time.Time
		if age > 0 {
			news = time.Now().Add(-age)
		}
		got := pauseAfter(took, idle, news)
		if got.least != least || got.most < most || got.most > most+idle/10 {
			t.Errorf("after %v with news %v old: %v, want {%v %v}", took, age, got, least, most)
		}
	}

	f(0, 0, wakeGap, idle)
	f(30*time.Millisecond, 0, 120*time.Millisecond, idle)
	f(time.Hour, 0, maxRest, idle)
	f(0, time.Millisecond, wakeGap, newsInterval)
	f(0, 4*time.Second, wakeGap, 800*time.Millisecond)
	f(0, time.Hour, wakeGap, idle)
	f(time.Second, time.Millisecond, maxRest, maxRest)
}

// Whatever wakes a loop, it pauses; and what wakes it while it works or pauses is not
// lost.
func TestPaced(t *testing.T) {
	ctx, cancel := context.WithCancel(testContext(t))
	woken := make(chan struct{}, 1)
	rounds := make(chan int)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n := 0
		paced(ctx, woken, func() pause {
			n++
			wake(woken)
			select {
			case rounds <- n:
			case <-ctx.Done():
			}
			return pause{time.Millisecond, time.Hour}
		})
	}()
	for want := range 3 {
		if got := within(t, rounds, "a round"); got != want+1 {
			t.Errorf("round %d, want %d", got, want+1)
		}
	}
	cancel()
	within(t, ended, "the end")
}

// Of many calls within a gap the first passes, and one at the end stands for the rest.
func TestThrottle(t *testing.T) {
	calls := 0
	x := &throttle{gap: time.Hour, f: func() { calls++ }}
	for range 100 {
		x.call()
	}
	if calls != 1 || !x.pending {
		t.Errorf("%d calls passed, one more is pending: %v; want 1, true", calls, x.pending)
	}
	x.due()
	for range 100 {
		x.call()
	}
	if calls != 2 || !x.pending {
		t.Errorf("%d calls passed in all, one more is pending: %v; want 2, true", calls, x.pending)
	}

	passed := make(chan struct{}, 10)
	x = &throttle{gap: time.Millisecond, f: func() { passed <- struct{}{} }}
	x.call()
	x.call()
	within(t, passed, "the first call")
	within(t, passed, "the call at the end of the gap")
}
