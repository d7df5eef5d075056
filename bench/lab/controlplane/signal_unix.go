//go:build unix

package controlplane

import (
	"errors"
	"syscall"
)

var signals = map[signal]syscall.Signal{
	sigTerminate: syscall.SIGTERM,
	sigKill:      syscall.SIGKILL,
	sigStop:      syscall.SIGSTOP,
	sigContinue:  syscall.SIGCONT,
}

// sendSignal is no error when the process has just ended.
func sendSignal(pid int, sig signal) error {
	err := syscall.Kill(pid, signals[sig])
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
