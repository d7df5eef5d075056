// Command conversion measures what a conversion costs before a real kube-apiserver:
// lists, writes and watches of a custom kind, direct, through MVP without and with a
// conversion, and by the kube-apiserver itself with a conversion webhook. It is run on
// Linux, from inside the module:
//
//	go run ./bench/conversion
//
// Every figure stands beside those that it is compared with: what is measured is taken
// in turns, round by round, so that a machine that is busy is busy for all of them.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are how much is measured.
type options struct {
	objects  int    // in each group
	rounds   int    // of lists
	restarts int    // of the kube-apiserver
	writes   int    // of each kind, each way
	events   int    // of the watches
	megabyte int    // size of the large list
	clients  int    // that read it at once
	version  string // of kube-apiserver
	mvp      string // binary
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("conversion", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.objects, "objects", 5000, "custom resources of 4 KB in each of the two groups")
	flags.IntVar(&o.rounds, "rounds", 11, "rounds of warm lists; 0 leaves them out")
	flags.IntVar(&o.restarts, "restarts", 4, "restarts of kube-apiserver, after which the first lists are measured; 0 leaves them out")
	flags.IntVar(&o.writes, "writes", 200, "creates and updates each way; 0 leaves them out")
	flags.IntVar(&o.events, "events", 300, "events of each watch; 0 leaves them out")
	flags.IntVar(&o.megabyte, "list-mib", 100, "size of the list that MVP's memory is looked at for, in MiB; 0 leaves it out")
	flags.IntVar(&o.clients, "clients", 4, "clients that read that list at once")
	flags.StringVar(&o.version, "version", "1.32.13", "version of kube-apiserver; see bench/lab")
	flags.StringVar(&o.mvp, "mvp", "", "binary of MVP (default: built from this module)")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() > 0 || o.objects < 1 || o.clients < 1 {
		fmt.Fprintln(stderr, "conversion: takes flags only, with at least one object and one client; see -help")
		return 2
	}
	if err := measure(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "conversion: %v\n", err)
		return 1
	}
	return 0
}

// measure sets the scene and takes all figures.
func measure(ctx context.Context, o options, out, progress io.Writer) (err error) {
	start := time.Now()
	note := func(what string) { fmt.Fprintf(progress, "%4.0f s: %s\n", time.Since(start).Seconds(), what) }
	note("starting the control plane")
	s, err := newScene(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		if closing := s.close(); err == nil {
			err = closing
		}
	}()
	note("making the objects")
	if err := s.populate(ctx, o.objects); err != nil {
		return err
	}
	for _, part := range []struct {
		name    string
		count   int
		measure func(context.Context, options, io.Writer) error
	}{
		{"warm lists", o.rounds, s.warmLists},
		{"creates and updates", o.writes, s.writes},
		{"watches", o.events, s.watches},
		{"first lists after a restart", o.restarts, s.firstLists},
		{"memory", o.megabyte, s.memory},
	} {
		if part.count < 1 {
			continue
		}
		note(part.name)
		if err := part.measure(ctx, o, out); err != nil {
			return fmt.Errorf("cannot measure %s: %w", part.name, err)
		}
	}
	note("done, " + machine())
	return nil
}
