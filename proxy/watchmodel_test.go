package proxy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mixed-version-proxy/mvp/proxy"
)

// Whatever servers do, a client sees the history as it was: three of them are cut
// off, restart without their history and refuse, at random, while things happen. As
// long as one server has the history, all of it; else it has at each moment what there
// was at that moment, up to where its watch ends.
func TestWatchModel(t *testing.T) {
	for seed := range uint64(8) {
		for _, forgetful := range []int{2, 3} {
			t.Run(fmt.Sprintf("seed %d, %d servers forget", seed, forgetful), func(t *testing.T) {
				t.Parallel()
				m := newModel(t, seed)
				m.forgetful = forgetful
				m.run(150)
			})
		}
	}
}

// model is a control plane that behaves badly.
type model struct {
	t       *testing.T
	random  *rand.Rand
	h       *history
	servers []*watchServer
	rv      uint64

	forgetful int              // how many of the servers lose their history
	seen      [6]atomic.Uint64 // up to where each client is; the end when its watch has ended
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, random: rand.New(rand.NewPCG(seed, 1)), h: newHistory(), rv: 10}
	for _, name := range []string{"a", "b", "c"} {
		m.servers = append(m.servers, serveWatches(t, name, m.h))
	}
	return m
}

// run lets happen what may, while clients watch in both forms.
func (m *model) run(steps int) {
	s := watchStage(m.t, proxy.Config{}, m.servers...)
	targets := []string{podsAfter + "7", podsAfter + "7&allowWatchBookmarks=true"}
	var clients sync.WaitGroup
	watchers := make([]*watcher, len(m.seen))
	for i := range watchers {
		watchers[i] = s.watch(targets[i%2])
	}
	seen := make([][]string, len(watchers))
	for i, w := range watchers {
		clients.Go(func() { seen[i] = w.untilLast(&m.seen[i]) })
	}
	for range steps {
		m.step()
	}
	m.happen("LAST")
	clients.Wait()
	var want []string
	for _, c := range m.h.changes {
		want = append(want, jsonEvents.write(c))
	}
	for i, got := range seen {
		if m.forgetful < len(m.servers) {
			sameList(m.t, fmt.Sprint("client ", i), got, want...)
		} else {
			m.sameState(got)
		}
	}
}

// sameState fails unless what a client knows after all it saw is what there was.
func (m *model) sameState(seen []string) {
	m.t.Helper()
	known := newHistory()
	for _, line := range seen {
		for _, c := range m.h.changes {
			if jsonEvents.write(c) == line {
				if last := len(known.changes); last > 0 && known.changes[last-1].rv >= c.rv {
					m.t.Errorf("%d came after %d", c.rv, known.changes[last-1].rv)
				}
				known.changes = append(known.changes, c)
			}
		}
	}
	if len(known.changes) != len(seen) {
		m.t.Fatalf("of %d events %d are of the history: %q", len(seen), len(known.changes), seen)
	}
	if len(seen) == 0 {
		return
	}
	got, at := known.at(0)
	if want, _ := m.h.at(at); !slices.Equal(got, want) {
		m.t.Errorf("at %d the client knows of %v, and there was %v", at, got, want)
	}
}

func (m *model) step() {
	switch n := m.random.IntN(10); {
	case n < 5:
		m.happen(fmt.Sprint("o", m.random.IntN(20)))
	case n < 8:
		m.cut(m.servers[m.random.IntN(3)])
	case n == 8:
		m.forget(m.servers[m.random.IntN(m.forgetful)])
	default:
		m.refuse(m.servers[m.random.IntN(2)]) // one never does
	}
}

func (m *model) happen(name string) {
	m.rv += 1 + m.random.Uint64N(3)
	m.h.add(m.rv, []string{"ADDED", "MODIFIED", "DELETED"}[m.random.IntN(3)], name)
	if m.forgetful == len(m.servers) && m.random.IntN(2) == 0 { // a client is up to date at times
		i := m.random.IntN(len(m.seen))
		await(m.t, "a client sees what happens", func() bool { return m.seen[i].Load() >= m.rv })
	}
}

// cut ends every watch of a server in some way.
func (m *model) cut(s *watchServer) {
	next := jsonEvents.write(change{m.rv + 1, "ADDED", "never"})
	ways := []string{lastChunk, fin, rst, chunked(next[:m.random.IntN(len(next))]) + " + " + rst, chunked(next)[:m.random.IntN(len(next))] + " + " + fin}
	how := ways[m.random.IntN(len(ways))]
	s.set(func(s *watchServer) {
		for _, one := range s.open {
			select {
			case one.end <- how:
			default: // it has been told
			}
		}
	})
}

// forget is a restart: the server knows what happens from now on.
func (m *model) forget(s *watchServer) {
	m.cut(s)
	s.set(func(s *watchServer) { s.oldest = m.rv })
}

// refuse makes a server answer what is no watch, or again one.
func (m *model) refuse(s *watchServer) {
	code := []int{0, 0, 429, 500, 503}[m.random.IntN(5)]
	s.set(func(s *watchServer) {
		s.say = nil
		if code != 0 {
			s.say = func(request) string { return respond(code, "application/json", "{}") }
		}
	})
}

// untilLast reads events until the last one, or until the watch ends. It tells how
// far it has come.
func (w *watcher) untilLast(at *atomic.Uint64) (events []string) {
	defer at.Store(math.MaxUint64)
	for {
		line, err := w.in.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" { // it is told to come back, and may be told that it cannot
			return events
		}
		if err != nil {
			w.t.Errorf("the watch broke off with %q, %v", line, err)
			return events
		}
		events = append(events, line)
		var event struct {
			Object struct {
				Metadata struct {
					ResourceVersion uint64 `json:",string"`
				}
			}
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			w.t.Errorf("%q: %v", line, err)
		}
		at.Store(event.Object.Metadata.ResourceVersion)
		if strings.Contains(line, `"LAST"`) {
			return events
		}
	}
}
