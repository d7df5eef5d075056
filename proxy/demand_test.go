package proxy

import (
	"testing"
	"time"
)

func TestDemand(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 30, 0, time.UTC)
	var d demand
	after := func(passed time.Duration, wantTotal, wantRecent uint64) {
		t.Helper()
		if total, recent := d.counts(start.Add(passed)); total != wantTotal || recent != wantRecent {
			t.Errorf("after %v it was asked for %d times, %d of them lately; want %d and %d", passed, total, recent, wantTotal, wantRecent)
		}
	}

	after(0, 0, 0)
	d.add(start)
	d.add(start)
	after(0, 2, 2)
	d.add(start.Add(5 * time.Minute))
	after(9*time.Minute, 3, 3)
	after(10*time.Minute, 3, 1) // the first two are ten minutes old
	after(15*time.Minute, 3, 0)
	d.add(start.Add(20 * time.Minute))
	after(20*time.Minute, 4, 1)
	after(1000*time.Hour, 4, 0)

	// A clock that is set back loses nothing.
	d.add(start)
	after(1000*time.Hour, 5, 1)
}
