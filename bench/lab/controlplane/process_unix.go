//go:build unix && !linux

package controlplane

import "syscall"

func processAttr(detach bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: detach}
}
