// Command mvp is the Mixed Version Proxy: one stable endpoint before
// kube-apiservers of different versions.
//
// The package turns arguments into a running program: one file per command,
// wiring only.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// streams are what a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// The exit codes of every command.
const (
	exitOK       = 0
	exitFailed   = 1 // the command could not do its work, or a case failed
	exitUsage    = 2 // the arguments are wrong
	exitPolicies = 3 // a policy does not compile
)

// exitError is an error that knows its exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// run executes one command until it is done or ctx is, and returns the exit
// code.
func run(ctx context.Context, args []string, std streams) int {
	root := &cobra.Command{
		Use:   "mvp",
		Short: "One stable endpoint before kube-apiservers of different versions",
		Long: "mvp knows what each kube-apiserver serves, sends each request to one that can answer it, and converts\n" +
			"requests and answers between API versions where none can. Policies say how.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		PersistentPreRunE: checkNumbers,
	}
	root.SetArgs(args)
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError("%w; see '%s --help'", err, cmd.CommandPath())
	})
	root.AddCommand(serveCommand(std), demoCommand(std), testPolicyCommand(std), statusCommand(std), libraryCommand(std), versionCommand(std))
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(std.err, "mvp: %v\n", err)
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		return exit.code
	case isUsage(err):
		return exitUsage
	}
	return exitFailed
}
