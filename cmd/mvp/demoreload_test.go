package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/policies"
)

// TestTellReloads edits the demo's policies: each time, one line says what came of it.
func TestTellReloads(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		part := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(part, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(part, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write("a.warn.cel", "'one'")
	store, err := policies.Open(policies.Options{Dirs: []string{dir}, Library: []string{"policy-v1beta1"}}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	running := make(chan error, 1)
	go func() { running <- store.Run(ctx) }()
	reader, writer := io.Pipe()
	told := make(chan struct{})
	go func() { defer close(told); tellReloads(ctx, writer, store) }()
	lines := bufio.NewScanner(reader)
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("no line, want %q: %v", want, lines.Err())
		}
		if got := strings.ReplaceAll(lines.Text(), dir, "DIR"); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}

	write("a.warn.cel", "'two'")
	expect("The policies are reloaded: 1 of yours are live, with the same names.")
	write("b.warn.cel", "'three'")
	expect("The policies are reloaded: 2 of yours are live, new: b.")
	write("b.warn.cel", "request.nme + request.vrb")
	expect(`The policies are not reloaded, the last good ones stay: DIR/b.warn.cel:1:1: undeclared reference to "request.nme"; did you mean "request.name"? (and 1 more, see /policies)`)
	write("b.warn.cel", "'three'")
	expect("The policy files are again as they are live.")

	stop()
	if err := <-running; err != nil {
		t.Error(err)
	}
	<-told
}
