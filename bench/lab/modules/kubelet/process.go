package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/creack/pty"
	utilexec "k8s.io/utils/exec"
)

// command makes a process of a container that is not started.
func command(home string, args []string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=xterm", "HOSTNAME=lab"}
	return cmd
}

// A process is a started command.
type process struct {
	stdin  io.WriteCloser
	resize func(width, height uint16) // nil without a terminal
	wait   func() error
}

// start starts cmd, on a terminal of its own or with pipes. Terminals know no
// standard error. Out and errOut may be nil.
func start(cmd *exec.Cmd, terminal bool, out, errOut io.Writer) (*process, error) {
	if terminal {
		return startOnTerminal(cmd, out)
	}
	cmd.Stdout, cmd.Stderr = out, errOut
	cmd.SysProcAttr = processAttr()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{stdin: stdin, wait: cmd.Wait}, nil
}

func startOnTerminal(cmd *exec.Cmd, out io.Writer) (*process, error) {
	attr := processAttr()
	attr.Setsid, attr.Setctty = true, true
	terminal, err := pty.StartWithAttrs(cmd, &pty.Winsize{Rows: 24, Cols: 80}, attr)
	if err != nil {
		return nil, err
	}
	if out == nil {
		out = io.Discard
	}
	var mu sync.Mutex // resizing must not see the file being closed
	closed := false
	return &process{
		stdin: terminal,
		resize: func(width, height uint16) {
			mu.Lock()
			defer mu.Unlock()
			if !closed {
				_ = pty.Setsize(terminal, &pty.Winsize{Rows: height, Cols: width})
			}
		},
		wait: func() error {
			// Reading fails when the last process on the terminal has ended; whatever it
			// printed comes before.
			_, _ = io.Copy(out, terminal)
			err := cmd.Wait()
			mu.Lock()
			defer mu.Unlock()
			closed = true
			return errors.Join(err, terminal.Close())
		},
	}, nil
}

// exitError turns the error of a process that ran into one that the streaming
// package reports with its exit code.
func exitError(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	code := exit.ExitCode()
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal()) // as shells do
	}
	return utilexec.CodeExitError{Err: exit, Code: code}
}
