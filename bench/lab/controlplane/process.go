package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/flock"
)

// pollInterval is how often we look at a server that starts or stops.
const pollInterval = 25 * time.Millisecond

// signal is what a process can be told.
type signal int

const (
	sigTerminate signal = iota
	sigKill
	sigStop
	sigContinue
)

// A process is a server to start.
type process struct {
	bin     string
	args    []string
	dir     string // working directory
	log     string // stdout and stderr are appended to it
	pidFile string // locked as long as the process lives
	detach  bool   // it outlives us
}

// startProcess starts p. Whether it still runs is known by the lock of its pid
// file, which it inherits, because a process id can be given to another process.
func startProcess(p process) error {
	// Somebody who only looks has the lock for a moment.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	lock, err := flock.Acquire(ctx, p.pidFile, nil)
	if err != nil {
		return err
	}
	defer lock.Release()
	log, err := os.OpenFile(p.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()

	cmd := exec.Command(p.bin, p.args...)
	cmd.Dir = p.dir
	cmd.Env = environment()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lock.File()}
	cmd.SysProcAttr = processAttr(p.detach)

	// Where a process is to die with us, Linux takes "us" for the thread that
	// started it. So that thread does nothing else until the process has ended.
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	if err := lock.File().Truncate(0); err != nil {
		return err
	}
	_, err = lock.File().WriteAt([]byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0)
	return err
}

// environment is that of a server: all its settings are flags. In particular
// etcd reads every variable that begins with ETCD_.
func environment() []string {
	var env []string
	for _, name := range []string{"HOME", "PATH", "TMPDIR", "GOMAXPROCS"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// runningPID returns the id of the process that holds the pid file, or 0 when
// there is none.
func runningPID(pidFile string) (int, error) {
	// The id is written a moment after the lock is taken.
	for deadline := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
		held, err := flock.Held(pidFile)
		if err != nil || !held {
			return 0, err
		}
		data, err := os.ReadFile(pidFile)
		if err != nil {
			return 0, fmt.Errorf("cannot read process id: %w", err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
		if err == nil && pid > 0 {
			return pid, nil
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("no process id in %s: %.40q", pidFile, data)
		}
	}
}
