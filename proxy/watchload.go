package proxy

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxResumesAtOnce is how many watches one server is asked for at a time when they
// come from another: kube-apiserver opens one in a millisecond or so.
const maxResumesAtOnce = 32

// moveLogTime is how long the watches that leave one server are counted until the
// log tells of them, in one line for all.
const moveLogTime = 3 * time.Second

// watches is what all watches that lose their servers share: how fast they may come
// to others, and what is told of them. Its methods may be called from any goroutine.
type watches struct {
	log     *slog.Logger
	count   func(result)
	proving chan struct{} // an element for each proof

	serverTimeout time.Duration

	mu    sync.Mutex
	gates map[string]*gate
	moved map[string]map[result]int // by the server they were on
	ended bool                      // nothing more is told
}

// gate lets in so many at a time.
type gate struct {
	slots chan struct{}
	users int // that are in, or wait
}

func newWatches(log *slog.Logger, count func(result)) *watches {
	return &watches{
		log: log, count: count, proving: make(chan struct{}, maxProofsAtOnce), serverTimeout: serverTimeout,
		gates: map[string]*gate{}, moved: map[string]map[result]int{},
	}
}

// enter waits until a server may be asked for a watch. It returns false when ctx is
// done; else leave must be called when the server has answered.
func (w *watches) enter(ctx context.Context, server string) (leave func(), ok bool) {
	w.mu.Lock()
	g := w.gates[server]
	if g == nil {
		g = &gate{slots: make(chan struct{}, maxResumesAtOnce)}
		w.gates[server] = g
	}
	g.users++
	w.mu.Unlock()
	out, ok := take(ctx, g.slots)
	done := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if g.users--; g.users == 0 {
			delete(w.gates, server)
		}
	}
	if !ok {
		done()
		return nil, false
	}
	return func() { out(); done() }, true
}

// enterProof waits until a proof may be made.
func (w *watches) enterProof(ctx context.Context) (leave func(), ok bool) {
	return take(ctx, w.proving)
}

func take(ctx context.Context, slots chan struct{}) (leave func(), ok bool) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, true
	case <-ctx.Done():
		return nil, false
	}
}

// note counts what became of a watch that was on server.
func (w *watches) note(server string, r result) {
	w.count(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	if w.moved[server] == nil {
		w.moved[server] = map[result]int{}
		time.AfterFunc(moveLogTime, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.tell(server)
		})
	}
	w.moved[server][r]++
}

// close tells what is left to tell, and nothing afterwards.
func (w *watches) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for server := range w.moved {
		w.tell(server)
	}
	w.ended = true
}

// tell logs what was counted. It is called with the lock held.
func (w *watches) tell(server string) {
	counts := w.moved[server]
	delete(w.moved, server)
	if w.ended || counts == nil {
		return
	}
	attrs := []any{"upstream", server}
	for _, r := range slices.Sorted(maps.Keys(counts)) {
		attrs = append(attrs, string(r), counts[r])
	}
	w.log.Info("watches lost their server", attrs...)
}
