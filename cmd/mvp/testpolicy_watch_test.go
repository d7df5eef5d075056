package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// watched is `mvp test-policy --watch` while it runs.
type watched struct {
	t     *testing.T
	stop  context.CancelFunc
	lines *bufio.Scanner
	code  chan int
	seen  string // what was printed by runs that nobody waited for
}

func watch(t *testing.T, args ...string) *watched {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	w := &watched{t: t, stop: cancel, lines: bufio.NewScanner(reader), code: make(chan int, 1)}
	go func() {
		w.code <- run(ctx, append([]string{"test-policy", "--watch"}, args...), streams{strings.NewReader(""), writer, writer})
		_ = writer.Close() // a pipe's never fails
	}()
	t.Cleanup(func() { cancel(); _, _ = io.Copy(io.Discard, reader) })
	return w
}

// ran reads what one run prints, up to where the next change is waited for.
func (w *watched) ran() string {
	w.t.Helper()
	var printed strings.Builder
	for w.lines.Scan() {
		if w.lines.Text() == "== watching for changes" {
			return printed.String()
		}
		printed.WriteString(w.lines.Text() + "\n")
	}
	w.t.Fatalf("it ended, after\n%s%s", w.seen, printed.String())
	return ""
}

// runs reads what is printed until a run prints all of want. A file that is written in
// place may be read before it is whole, and again after that.
func (w *watched) runs(want ...string) {
	w.t.Helper()
	for {
		got := w.ran()
		if strings.Contains(got, "\x1b") {
			w.t.Fatalf("what is no terminal is cleared: %q", got)
		}
		if !slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(got, text) }) {
			return
		}
		w.seen += got
	}
}

// ends stops it and returns its exit code, with what it still prints.
func (w *watched) ends() (int, string) {
	w.stop()
	var printed strings.Builder
	for w.lines.Scan() {
		printed.WriteString(w.lines.Text() + "\n")
	}
	return <-w.code, printed.String()
}

// put writes a file, with its folder.
func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// replace puts another file in its place, as editors do.
func replace(t *testing.T, name, text string) {
	t.Helper()
	fresh := filepath.Join(filepath.Dir(name), ".fresh")
	put(t, fresh, text)
	if err := os.Rename(fresh, name); err != nil {
		t.Fatal(err)
	}
}

const watchedCases = `apiVersion: mvp.k8s.io/v1
kind: PolicyTest
policies: [../policies]
cases:
  - {name: a, request: GET /api/v1/pods, expect: {warnings: [old]}}
`

// The command runs again when a policy, a case or a manifest changes, whichever way it
// is written, and ends with the exit code of its last run.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	policy, file := filepath.Join(dir, "policies", "10.warn.cel"), filepath.Join(dir, "cases", "x.test.yaml")
	put(t, policy, "'old'")
	put(t, file, watchedCases)
	w := watch(t, filepath.Dir(file))
	f := func(want ...string) {
		t.Helper()
		w.runs(want...)
	}

	f("1 case\n")
	replace(t, policy, "'new'")
	f("== "+policy+" changed at ", `warnings: got ["new"], want ["old"]`, "mvp: 1 of 1 cases failed\n")
	put(t, file, strings.Replace(watchedCases, "old", "new", 1))
	f("== "+file+" changed at ", "ok  \t"+filepath.Dir(file))
	put(t, policy, "'new")
	f("10.warn.cel:1:1: ")
	if err := os.Remove(policy); err != nil {
		t.Fatal(err)
	}
	f("== " + policy + " changed at ")
	put(t, policy, "'new'")
	f("ok  \t" + filepath.Dir(file))

	// A folder that comes is watched, too.
	added := filepath.Join(dir, "cases", "more", "y.test.yaml")
	replacement := strings.NewReplacer("../policies", "../../policies", "old", "other").Replace(watchedCases)
	put(t, filepath.Join(dir, "y.test.yaml"), replacement)
	if err := os.Mkdir(filepath.Dir(added), 0o755); err != nil {
		t.Fatal(err)
	}
	f("== " + filepath.Dir(added) + " changed at ")
	if err := os.Rename(filepath.Join(dir, "y.test.yaml"), added); err != nil {
		t.Fatal(err)
	}
	f("== "+added+" changed at ", `warnings: got ["new"], want ["other"]`)
	if code, printed := w.ends(); code != exitFailed || printed != "mvp: the last run failed\n" {
		t.Errorf("it ended with %d and printed %q", code, printed)
	}
}

func TestWatchManifests(t *testing.T) {
	dir := t.TempDir()
	manifest := filepath.Join(dir, "pod.yaml")
	put(t, filepath.Join(dir, "policies", "10.warn.cel"), "'w'")
	put(t, manifest, "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n")
	w := watch(t, "--policies", filepath.Join(dir, "policies"), manifest)
	w.runs("v1 Pod p: not converted; policies: 10")
	replace(t, manifest, "apiVersion: v1\nkind: Pod\nmetadata: {name: q}\n")
	w.runs("v1 Pod q: not converted; policies: 10")
	if code, printed := w.ends(); code != exitOK || printed != "" {
		t.Errorf("it ended with %d and printed %q", code, printed)
	}
}

// What no change can mend ends it at once.
func TestWatchRefuses(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		w := watch(t, args...)
		if code, printed := w.ends(); code != exitUsage || !strings.Contains(printed, want) {
			t.Errorf("%q ended with %d and printed %q, want %q", args, code, printed, want)
		}
	}
	f("--watch cannot read manifests from standard input: name files or folders", "--library", "kubernetes-all", "-")
	f("no policies: give --policies DIR or --library NAME", "x.yaml")
}
