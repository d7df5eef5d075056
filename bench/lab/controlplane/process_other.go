//go:build !unix

package controlplane

import (
	"errors"
	"syscall"
)

func processAttr(bool) *syscall.SysProcAttr { return nil }

func sendSignal(int, signal) error {
	return errors.New("the lab needs a Unix system, such as Linux or macOS")
}
