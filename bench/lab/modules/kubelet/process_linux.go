package main

import "syscall"

// processAttr has processes of containers end with the kubelet, however it ends.
func processAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
