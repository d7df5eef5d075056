package convert

import (
	"syscall"
	"time"
)

// cpuTime is the time for which the calling thread has run: on a machine that is
// busy with other things, only that is a measure.
func cpuTime() time.Duration {
	const thisThread = 1 // RUSAGE_THREAD
	var usage syscall.Rusage
	if err := syscall.Getrusage(thisThread, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
