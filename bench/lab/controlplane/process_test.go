//go:build unix

package controlplane

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/flock"
)

// sleeper is a process that does nothing for longer than a test takes.
func sleeper(t *testing.T, dir string, detach bool) process {
	t.Helper()
	bin, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatalf("no sleep command: %v", err)
	}
	return process{
		bin:     bin,
		args:    []string{"300"},
		dir:     dir,
		log:     filepath.Join(dir, "log"),
		pidFile: filepath.Join(dir, "pid"),
		detach:  detach,
	}
}

func TestProcess(t *testing.T) {
	p := sleeper(t, t.TempDir(), false)
	if err := startProcess(p); err != nil {
		t.Fatal(err)
	}
	pid, err := runningPID(p.pidFile)
	if err != nil || pid == 0 {
		t.Fatalf("runningPID = %d, %v; want a process", pid, err)
	}
	if err := startProcess(p); err == nil || !strings.Contains(err.Error(), "another process has it") {
		t.Errorf("second start: %v, want it refused", err)
	}
	endProcess(t, p, pid)
	if pid, err := runningPID(p.pidFile); err != nil || pid != 0 {
		t.Errorf("after its end runningPID = %d, %v; want none", pid, err)
	}
}

func TestStartProcessFails(t *testing.T) {
	p := sleeper(t, t.TempDir(), false)
	p.bin = filepath.Join(p.dir, "missing")
	if err := startProcess(p); err == nil || !strings.Contains(err.Error(), "no such file or directory") {
		t.Errorf("start of a missing binary: %v", err)
	}
	if pid, err := runningPID(p.pidFile); err != nil || pid != 0 {
		t.Errorf("runningPID = %d, %v; want none", pid, err)
	}
}

// parentDir and parentDetach tell TestParent, which runs in a process of its
// own, what to start.
const (
	parentDir    = "MVP_LAB_TEST_PARENT"
	parentDetach = "MVP_LAB_TEST_DETACH"
)

func TestParent(t *testing.T) {
	dir := os.Getenv(parentDir)
	if dir == "" {
		t.Skip("is started by TestEndOfParent") // it is the child, and no test by itself
	}
	if err := startProcess(sleeper(t, dir, os.Getenv(parentDetach) == "1")); err != nil {
		t.Fatal(err)
	}
}

func TestEndOfParent(t *testing.T) {
	f := func(detach, survives bool) {
		t.Helper()
		p := sleeper(t, t.TempDir(), detach)
		parent := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestParent$")
		parent.Env = append(os.Environ(), parentDir+"="+p.dir)
		if detach {
			parent.Env = append(parent.Env, parentDetach+"=1")
		}
		if out, err := parent.CombinedOutput(); err != nil {
			t.Fatalf("parent: %v\n%s", err, out)
		}
		if !survives {
			waitFree(t, p)
			return
		}
		pid, err := runningPID(p.pidFile)
		if err != nil || pid == 0 {
			t.Fatalf("after the end of its parent runningPID = %d, %v; want a process", pid, err)
		}
		endProcess(t, p, pid)
	}

	f(true, true)
	if runtime.GOOS == "linux" {
		f(false, false)
	}
}

func endProcess(t *testing.T, p process, pid int) {
	t.Helper()
	if err := sendSignal(pid, sigKill); err != nil {
		t.Fatal(err)
	}
	waitFree(t, p)
}

// waitFree waits until the process has ended.
func waitFree(t *testing.T, p process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	lock, err := flock.Acquire(ctx, p.pidFile, nil)
	if err != nil {
		t.Fatalf("the process does not end: %v", err)
	}
	lock.Release()
}
