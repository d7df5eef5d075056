//go:build !linux

package main

import "syscall"

// processAttr leaves it to processes to end with their terminal or pipes.
func processAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
