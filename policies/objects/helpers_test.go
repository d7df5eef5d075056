package objects

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine/source"
	"github.com/mixed-version-proxy/mvp/policies"
)

func newStore(t *testing.T, dirs ...string) *policies.Store {
	t.Helper()
	store, err := policies.Open(policies.Options{Dirs: dirs}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// follow has a store follow its files until the test ends, or until it is told to stop.
func follow(t *testing.T, store *policies.Store) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := store.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	return func() { cancel(); <-ended }
}

func mistakeAt(place, msg string) *source.Error {
	return &source.Error{Pos: source.Pos{File: place}, Msg: msg}
}
