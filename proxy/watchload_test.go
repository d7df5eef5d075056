package proxy

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
)

// What becomes of the watches of one server is counted one by one and told in one line.
func TestWatchesAreTold(t *testing.T) {
	var log bytes.Buffer
	counts := map[result]int{}
	w := newWatches(slog.New(slog.NewTextHandler(&log, nil)), func(r result) { counts[r]++ })
	for range 120 {
		w.note("a", resultResumed)
	}
	w.note("a", resultExpired)
	w.close()
	w.note("b", resultResumed)
	if counts[resultResumed]--; w.moved["b"] != nil {
		t.Error("a watch that moved after the end is kept to be told")
	}
	if counts[resultResumed] != 120 || counts[resultExpired] != 1 {
		t.Errorf("counted %v", counts)
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `msg="watches lost their server" upstream=a expired=1 resumed=120`) {
		t.Errorf("told %q", text)
	}
}

// A server is asked for so many watches at a time, each server by itself.
func TestWatchesComeOneAfterTheOther(t *testing.T) {
	w := newWatches(slog.New(slog.DiscardHandler), func(result) {})
	now, cancel := context.WithCancel(t.Context())
	var leaves []func()
	for range maxResumesAtOnce {
		leave, ok := w.enter(t.Context(), "a")
		if !ok {
			t.Fatal("a watch was not let in")
		}
		leaves = append(leaves, leave)
	}
	cancel()
	if _, ok := w.enter(now, "a"); ok {
		t.Error("one too many was let in")
	}
	leave, ok := w.enter(t.Context(), "b")
	if !ok {
		t.Fatal("a watch of another server was not let in")
	}
	leave()
	leaves[0]()
	if leaves[0], ok = w.enter(t.Context(), "a"); !ok {
		t.Fatal("a watch was not let in after another had left")
	}
	for _, leave := range leaves {
		leave()
	}
	if len(w.gates) != 0 {
		t.Errorf("gates are left: %v", w.gates)
	}
}
