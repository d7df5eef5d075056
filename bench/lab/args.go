package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/bench/lab/cache"
)

// input is what a command is called with.
type input struct {
	dir           string
	versions      []string
	audit         bool
	kubelet       bool
	keep          bool
	apiServerArgs []string
	args          []string // the others

	stdout io.Writer
	logf   func(format string, args ...any)
}

// list is a flag that may be repeated.
type list []string

func (l *list) String() string { return strings.Join(*l, " ") }

func (l *list) Set(s string) error {
	*l = append(*l, s)
	return nil
}

// commaList is a flag of values between commas.
type commaList []string

func (l *commaList) String() string { return strings.Join(*l, ",") }

func (l *commaList) Set(s string) error {
	if s == "" {
		return errors.New("it is empty")
	}
	*l = strings.Split(s, ",")
	return nil
}

// parse reads the arguments of a command. Flags may stand before, between and
// after the others; after -- there are none.
func parse(cmd command, args []string) (*input, error) {
	in := &input{}
	fs := flag.NewFlagSet("lab", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	if slices.Contains(cmd.flags, "dir") {
		fs.StringVar(&in.dir, "dir", "", "")
	}
	if slices.Contains(cmd.flags, "versions") {
		fs.Var((*commaList)(&in.versions), "versions", "")
	}
	if slices.Contains(cmd.flags, "audit") {
		fs.BoolVar(&in.audit, "audit", false, "")
	}
	if slices.Contains(cmd.flags, "kubelet") {
		fs.BoolVar(&in.kubelet, "kubelet", false, "")
	}
	if slices.Contains(cmd.flags, "apiserver-arg") {
		fs.Var((*list)(&in.apiServerArgs), "apiserver-arg", "")
	}
	if slices.Contains(cmd.flags, "keep") {
		fs.BoolVar(&in.keep, "keep", false, "")
	}

	for len(args) > 0 {
		before := args
		if err := fs.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, &usageError{err.Error()}
		}
		args = fs.Args()
		if len(args) == 0 {
			break
		}
		if n := len(before) - len(args); n > 0 && before[n-1] == "--" {
			in.args = append(in.args, args...)
			break
		}
		in.args = append(in.args, args[0])
		args = args[1:]
	}
	if n := len(in.args); n < cmd.minArgs || n > cmd.maxArgs {
		return nil, &usageError{fmt.Sprintf("wrong number of arguments: want %s", cmd.synopsis)}
	}
	if in.dir == "" {
		dir, err := cache.Dir("run")
		if err != nil {
			return nil, err
		}
		in.dir = dir
	}
	return in, nil
}
