package flock_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/flock"
)

func TestOneHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	wantHeld(t, path, false)

	first, err := flock.Try(path)
	if err != nil || first == nil {
		t.Fatalf("first Try = %v, %v; want a lock", first, err)
	}
	wantHeld(t, path, true)
	if second, err := flock.Try(path); err != nil || second != nil {
		t.Fatalf("second Try = %v, %v; want neither lock nor error", second, err)
	}

	first.Release()
	wantHeld(t, path, false)
}

func TestAcquireWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := flock.Try(path)
	if err != nil {
		t.Fatal(err)
	}

	// The holder lets go once the other one says that it waits.
	second, err := flock.Acquire(t.Context(), path, first.Release)
	if err != nil {
		t.Fatal(err)
	}
	second.Release()
}

func TestAcquireGivesUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := flock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Release()

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err = flock.Acquire(ctx, path, nil)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "cannot lock "+path+", another process has it") {
		t.Errorf("Acquire of a taken lock: %v", err)
	}
}

func TestChildKeepsLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := flock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), "cat")
	child.ExtraFiles = append(child.ExtraFiles, lock.File())
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatalf("cannot start a child: %v", err)
	}
	lock.Release()
	wantHeld(t, path, true)

	_ = stdin.Close()
	_ = child.Wait()
	wantHeld(t, path, false)
}

func wantHeld(t *testing.T, path string, want bool) {
	t.Helper()
	if got, err := flock.Held(path); err != nil || got != want {
		t.Errorf("Held = %v, %v; want %v", got, err, want)
	}
}
