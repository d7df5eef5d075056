package proxy

import (
	"sync"
	"time"
)

// demand counts how often something was asked for. The zero demand is ready for use.
type demand struct {
	mu     sync.Mutex
	total  uint64
	recent [recentMinutes]uint64 // by minute, round and round
	minute int64                 // of the newest
}

// recentMinutes is what "lately" means: long enough for what a cron job does every
// five minutes, and over soon when the last old client is gone.
const recentMinutes = 10

func (d *demand) add(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.advance(now)
	d.total++
	d.recent[d.minute%recentMinutes]++
}

// counts returns how often it was asked for, and how often lately.
func (d *demand) counts(now time.Time) (total, recent uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.advance(now)
	for _, n := range d.recent {
		recent += n
	}
	return d.total, recent
}

// advance clears the minutes that have passed since the newest.
func (d *demand) advance(now time.Time) {
	minute := now.Unix() / 60
	for ; d.minute < minute; d.minute++ {
		if minute-d.minute > recentMinutes {
			d.minute = minute - recentMinutes
		}
		d.recent[(d.minute+1)%recentMinutes] = 0
	}
}
