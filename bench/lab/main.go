// Command lab runs a Kubernetes control plane of real servers on loopback: one
// etcd and kube-apiservers of two versions. README.md tells how to use it.
//
// The work is done by the packages below: controlplane, clients, binaries. Tests
// use those directly, through labtest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a mistake in the arguments.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

// run is the whole program. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := dispatch(ctx, args, stdout, stderr)
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(stdout, usageText())
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "lab: %v\n\n%s", err, usageText())
		return exitUsage
	}
	fmt.Fprintf(stderr, "lab: %v\n", err)
	return exitFailed
}

func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return &usageError{"no command"}
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		return flag.ErrHelp
	}
	cmd, ok := commands[args[0]]
	if !ok {
		return &usageError{fmt.Sprintf("unknown command %.40q", args[0])}
	}
	in, err := parse(cmd, args[1:])
	if err != nil {
		return err
	}
	in.stdout = stdout
	in.logf = func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) }
	return cmd.run(ctx, in)
}
