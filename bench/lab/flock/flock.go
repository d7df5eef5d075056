// Package flock locks files between processes.
//
// A lock belongs to the open file, not to the process: a child that inherits
// the file keeps the lock until it exits, however it exits. The lab uses that to
// know, without trusting process ids, whether a server it once started still
// runs. The package knows nothing of what the files are for.
package flock

import (
	"context"
	"fmt"
	"os"
	"time"
)

// pollInterval is how often Acquire looks again at a lock that is taken.
const pollInterval = 20 * time.Millisecond

// A Lock is an exclusively locked file.
type Lock struct {
	file *os.File
}

// Try locks the file at path, which it creates when missing. It returns nil and
// no error when somebody else has the lock.
func Try(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open lock file: %w", err)
	}
	ok, err := tryLock(f, true)
	if err != nil || !ok {
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("cannot lock %s: %w", path, err)
		}
		return nil, nil
	}
	return &Lock{file: f}, nil
}

// Acquire is Try that waits until the lock is free or ctx is done. It calls
// onWait once, when it is not nil, before it starts to wait.
func Acquire(ctx context.Context, path string, onWait func()) (*Lock, error) {
	for {
		l, err := Try(path)
		if err != nil || l != nil {
			return l, err
		}
		if onWait != nil {
			onWait()
			onWait = nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot lock %s, another process has it: %w", path, context.Cause(ctx))
		case <-time.After(pollInterval):
		}
	}
}

// Held reports whether somebody has the lock of the file at path. A file that
// does not exist is not locked.
func Held(path string) (bool, error) {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot open lock file: %w", err)
	}
	defer f.Close()

	// A shared lock, so that two who ask at once do not see each other.
	free, err := tryLock(f, false)
	if err != nil {
		return false, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	return !free, nil
}

// File returns the locked file, to write into it or to hand it to a child.
func (l *Lock) File() *os.File { return l.file }

// Release closes the file. The lock ends with its last open copy, so a child
// that inherited the file keeps it.
func (l *Lock) Release() { _ = l.file.Close() }
