package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/mixed-version-proxy/mvp/policies/dryrun/policytest"
)

// settleTime is how long after a change the command runs again: an editor writes a file
// in several steps, and a checkout many files.
const settleTime = 100 * time.Millisecond

// watchPolicies runs the command, and again whenever something that it reads changes,
// until ctx is done. The error is that of the last run.
func watchPolicies(ctx context.Context, std streams, opts *testPolicyOptions, args []string) error {
	if slices.Contains(args, "-") {
		return usageError("--watch cannot read manifests from standard input: name files or folders")
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("cannot watch for changes: %w", err)
	}
	defer func() { _ = watcher.Close() }() // nothing can be done about it
	w := policyWatch{std: std, opts: opts, args: args, watcher: watcher}
	w.run()
	var exit *exitError
	if errors.As(w.last, &exit) && exit.code == exitUsage {
		return w.last // a change of files mends no arguments
	}
	for {
		if w.last != nil {
			fmt.Fprintf(std.err, "mvp: %v\n", w.last)
		}
		fmt.Fprintln(std.out, "== watching for changes")
		changed, err := w.wait(ctx)
		if err != nil {
			return err
		}
		if changed == "" {
			return w.lastError()
		}
		if isTerminal(std.out) {
			fmt.Fprint(std.out, clearScreen)
		}
		fmt.Fprintf(std.out, "== %s changed at %s\n", changed, time.Now().Format(time.TimeOnly))
		w.run()
	}
}

// clearScreen clears a terminal, and what has been scrolled away.
const clearScreen = "\x1b[H\x1b[2J\x1b[3J"

// policyWatch is a command that runs again and again.
type policyWatch struct {
	std     streams
	opts    *testPolicyOptions
	args    []string
	watcher *fsnotify.Watcher
	last    error
}

// run runs the command once. It watches before, so that no change is missed.
func (w *policyWatch) run() {
	watching := w.watchAll()
	w.last = errors.Join(testPolicy(w.std, w.opts, w.args), watching)
}

// lastError has the exit code of the last run, whose error has been printed.
func (w *policyWatch) lastError() error {
	if w.last == nil {
		return nil
	}
	code := exitFailed
	var exit *exitError
	if errors.As(w.last, &exit) {
		code = exit.code
	}
	return &exitError{code, errors.New("the last run failed")}
}

// wait returns the first file that changes, once no more have for a while; "" when ctx
// is done.
func (w *policyWatch) wait(ctx context.Context) (changed string, err error) {
	settled := time.NewTimer(0)
	defer settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return "", nil
		case err := <-w.watcher.Errors:
			return "", fmt.Errorf("cannot watch for changes: %w", err)
		case event := <-w.watcher.Events:
			if event.Op == fsnotify.Chmod || strings.HasPrefix(filepath.Base(event.Name), ".") {
				continue
			}
			if changed == "" {
				changed = event.Name
			}
			settled.Reset(settleTime)
		case <-settled.C:
			if changed != "" {
				return changed, nil
			}
		}
	}
}

// watchAll watches the folders of all that is read; one that is watched stays so.
func (w *policyWatch) watchAll() error {
	var errs []error
	for _, name := range w.reads() {
		errs = append(errs, w.watchBelow(name))
	}
	return errors.Join(errs...)
}

// reads are the files and folders that the command reads.
func (w *policyWatch) reads() []string {
	all := slices.Concat(w.args, w.opts.policies.Dirs, w.opts.resources)
	for _, name := range append(slices.Clone(w.opts.schemas), w.opts.response) {
		if name != "" && name != schemaCluster {
			all = append(all, name)
		}
	}
	files, err := w.opts.caseFiles(w.args)
	if err != nil {
		return all // which the run says, too
	}
	for _, file := range files {
		cases, err := policytest.Load(file)
		if err != nil {
			continue // which the run says, too
		}
		all = append(all, file)
		for _, c := range cases {
			all = append(all, c.Reads()...)
		}
	}
	return all
}

// watchBelow watches the folder name with all below it, or that of the file name: an
// editor may put a new file in its place.
func (w *policyWatch) watchBelow(name string) error {
	if !isFolder(name) {
		return w.add(filepath.Dir(name))
	}
	return filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil // it went in the meantime
		case err != nil || !entry.IsDir():
			return err
		case path != name && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		}
		return w.add(path)
	})
}

func (w *policyWatch) add(folder string) error {
	if err := w.watcher.Add(folder); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot watch %s: %w", folder, err)
	}
	return nil
}
