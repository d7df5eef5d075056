package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy"
)

// probed is the time between two probes where servers come and go.
const probed = 20 * time.Millisecond

const podsAfter = "/api/v1/pods?watch=1&resourceVersion="

// A watch goes on elsewhere however the server's stream ends, with nothing lost,
// doubled or out of order.
func TestWatchGoesOn(t *testing.T) {
	next := jsonEvents.write(change{12, "DELETED", "q"})
	half := len(next) / 2
	for name, how := range map[string]string{
		"clean end behind an event":   lastChunk,
		"clean end inside an event":   chunked(next[:half]) + " + " + lastChunk,
		"FIN behind an event":         fin,
		"FIN inside an event":         chunked(next[:half]) + " + " + fin,
		"FIN inside a chunk":          chunked(next)[:half] + " + " + fin,
		"FIN inside a chunk's length": "1 + " + fin,
		"RST behind an event":         rst,
		"RST inside an event":         chunked(next[:half]) + " + " + rst,
		"RST inside a chunk":          chunked(next)[:half] + " + " + rst,
		"something else than a chunk": "no chunk\r\n + " + fin,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			h.add(10, "ADDED", "p")
			a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
			s := watchStage(t, proxy.Config{}, a, b)
			w := s.watch(podsAfter + "7")
			h.add(11, "ADDED", "q")
			w.want(jsonEvents.events(change{10, "ADDED", "p"}, change{11, "ADDED", "q"}))
			a.end(1, how)
			b.watching(1)
			h.add(12, "DELETED", "q")
			h.add(14, "MODIFIED", "p")
			w.want(jsonEvents.events(change{12, "DELETED", "q"}, change{14, "MODIFIED", "p"}))
			sameList(t, "a", a.watches(), podsAfter+"7&allowWatchBookmarks=true")
			sameList(t, "b", b.watches(), "/api/v1/pods?watch=1&resourceVersion=11&allowWatchBookmarks=true")
		})
	}
}

// A server may be cut off at any byte of its answer.
func TestWatchCutAtEveryByte(t *testing.T) {
	changes := []change{{10, "ADDED", "p"}, {11, "ADDED", "q"}, {12, "MODIFIED", "p"}, {13, "DELETED", "q"}}
	h := newHistory()
	wire := head200 + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, c := range changes {
		h.add(c.rv, c.kind, c.name)
		wire += chunked(jsonEvents.write(c))
	}
	a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
	s := watchStage(t, proxy.Config{}, a, b)
	for cut := range len(wire) {
		for _, how := range []string{fin, rst} {
			a.set(func(a *watchServer) { a.wire = func(int) (int, string) { return cut, how } })
			w := s.in(t).watch(podsAfter + "7")
			w.want(jsonEvents.events(changes...))
			_ = w.conn.Close()
		}
	}
}

// Bookmarks tell where a quiet watch has come to. A client that did not ask for them
// sees none.
func TestWatchBookmarks(t *testing.T) {
	for name, tt := range map[string]struct {
		query string
		want  string
	}{
		"not asked for":   {"", ""},
		"asked for":       {"&allowWatchBookmarks=1", jsonEvents.write(mark(20, false))},
		"asked not to":    {"&allowWatchBookmarks=false", ""},
		"asked for twice": {"&allowWatchBookmarks=0&allowWatchBookmarks=true", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
			s := watchStage(t, proxy.Config{}, a, b)
			w := s.watch(podsAfter + "7" + tt.query)
			a.bookmark(1, 20)
			w.want(tt.want)
			a.end(1, rst)
			b.watching(1)
			if got := b.watches()[0]; !strings.Contains(got, "resourceVersion=20&allowWatchBookmarks=") && !strings.Contains(got, "&resourceVersion=20") {
				t.Errorf("b was asked for %s", got)
			}
			h.add(21, "ADDED", "p")
			w.want(jsonEvents.write(change{21, "ADDED", "p"}))
		})
	}
}

// The target of a watch changes in what must change, and in nothing else.
func TestWatchTargets(t *testing.T) {
	f := func(sent, first, resumed string, headers ...string) {
		t.Helper()
		h := newHistory()
		a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
		s := watchStage(t, proxy.Config{}, a, b)
		s.watch(sent, headers...)
		a.watching(1) // the initial events are through
		h.add(8, "ADDED", "p")
		h.add(9, "MODIFIED", "p")
		if strings.Contains(sent, "sendInitialEvents=") {
			a.watching(1).extra <- chunked(jsonEvents.write(mark(9, true)))
		}
		s.settle(a, 1)
		a.end(1, lastChunk)
		b.watching(1)
		sameList(t, "a", a.watches(), first)
		sameList(t, "b", b.watches(), resumed)
	}

	const pods = "/api/v1/namespaces/d/pods"
	f(pods+"?watch=1&resourceVersion=7", pods+"?watch=1&resourceVersion=7&allowWatchBookmarks=true",
		pods+"?watch=1&resourceVersion=9&allowWatchBookmarks=true")
	f(pods+"?labelSelector=a%3Db%2cc&watch=true&resourceVersion=7&x;y=%41&&fieldSelector=", pods+"?labelSelector=a%3Db%2cc&watch=true&resourceVersion=7&x;y=%41&&fieldSelector=&allowWatchBookmarks=true",
		pods+"?labelSelector=a%3Db%2cc&watch=true&x;y=%41&&fieldSelector=&resourceVersion=9&allowWatchBookmarks=true")
	f(pods+"?watch=1&resourceVersion=7&allowWatchBookmarks=true", pods+"?watch=1&resourceVersion=7&allowWatchBookmarks=true",
		pods+"?watch=1&allowWatchBookmarks=true&resourceVersion=9")
	f(pods+"?watch=1&resourceVersion=7&timeoutSeconds=3600", pods+"?watch=1&resourceVersion=7&timeoutSeconds=3600&allowWatchBookmarks=true",
		pods+"?watch=1&resourceVersion=9&timeoutSeconds=3600&allowWatchBookmarks=true")
	// With the initial events the request is not touched: bookmarks would make another of it.
	f(pods+"?watch=1", pods+"?watch=1", pods+"?watch=1&resourceVersion=9&allowWatchBookmarks=true")
	f(pods+"?watch=1&resourceVersion=0", pods+"?watch=1&resourceVersion=0", pods+"?watch=1&resourceVersion=9&allowWatchBookmarks=true")
	f(pods+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
		pods+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
		pods+"?watch=1&allowWatchBookmarks=true&resourceVersion=9")
	// Bookmarks as tables would take the column definitions with them.
	f(pods+"?watch=1&resourceVersion=7", pods+"?watch=1&resourceVersion=7", pods+"?watch=1&resourceVersion=9",
		"Accept: application/json;as=Table;v=v1;g=meta.k8s.io")
}

// settle waits until MVP has passed on what the nth watch of a server has had: a
// bookmark goes through.
func (s *stage) settle(a *watchServer, n int) {
	s.t.Helper()
	a.watching(n).extra <- "" // taken only when everything before it is written
}

// A watch whose position is not certain ends behind a whole event, in a way that its
// client takes for the end.
func TestWatchEndsWhereItIsNotCertain(t *testing.T) {
	next := jsonEvents.write(change{11, "ADDED", "z"})
	added := jsonEvents.events(change{10, "ADDED", "p"}, change{9, "ADDED", "q"})
	for name, tt := range map[string]struct{ query, extra, want string }{
		"initial events, no end of them in sight": {"", "", added},
		"resourceVersion 0":                       {"&resourceVersion=0", "", added},
		"bookmarks without the end of the initial events": {
			"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "unmarked", added + jsonEvents.write(mark(10, false)),
		},
		"an event without a resourceVersion": {"&resourceVersion=7", `{"type":"ADDED","object":{"metadata":{"name":"x"}}}` + "\n", "+"},
		"an event that goes back":            {"&resourceVersion=7", jsonEvents.events(change{30, "ADDED", "x"}, change{29, "ADDED", "y"}), "+"},
		"an event of another type":           {"&resourceVersion=7", strings.Replace(next, "ADDED", "CHANGED", 1), "+"},
		"an ERROR event":                     {"&resourceVersion=7", jsonEvents.write(change{500, "ERROR", "etcdserver: no leader"}), "+"},
	} {
		for _, how := range []string{lastChunk, chunked(next[:20]) + " + " + rst} {
			t.Run(name+" "+how[len(how)-3:], func(t *testing.T) {
				h := newHistory()
				a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
				if !strings.Contains(tt.query, "resourceVersion=7") {
					h.add(9, "ADDED", "q")
					h.add(10, "ADDED", "p")
				}
				a.set(func(a *watchServer) { a.say = noMark(tt.extra) })
				s := watchStage(t, proxy.Config{}, a, b)
				w := s.watch("/api/v1/pods?watch=1" + tt.query)
				want := tt.want
				if want == "+" {
					a.watching(1).extra <- chunked(tt.extra)
					want = tt.extra
				}
				w.want(want)
				if a.count > 0 && tt.extra != "unmarked" {
					a.end(1, how)
				}
				w.wantEnd()
				sameList(t, "b", b.watches())
			})
		}
	}
}

// noMark makes a server break off before it has said that the initial events have
// ended, if extra says so.
func noMark(extra string) func(request) string {
	if extra != "unmarked" {
		return nil
	}
	return func(request) string {
		return head200 + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
			chunked(jsonEvents.events(change{10, "ADDED", "p"}, change{9, "ADDED", "q"}, mark(10, false))) + "0\r\n\r\n"
	}
}

// After the bookmark that ends the initial events a watch goes on, without it, too,
// for a client that did not count on it.
func TestWatchAfterInitialEvents(t *testing.T) {
	const initial = "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	for name, tt := range map[string]struct{ target, end string }{
		"with the bookmark":        {initial + "&allowWatchBookmarks=true", jsonEvents.write(mark(10, true))},
		"without, one is modified": {initial, jsonEvents.write(change{11, "MODIFIED", "q"})},
		"of old, one is deleted":   {"/api/v1/pods?watch=1", jsonEvents.write(change{11, "DELETED", "q"})},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			h.add(9, "ADDED", "q")
			h.add(10, "ADDED", "p")
			a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
			s := watchStage(t, proxy.Config{}, a, b)
			w := s.watch(tt.target)
			w.want(jsonEvents.events(change{10, "ADDED", "p"}, change{9, "ADDED", "q"}))
			rv := uint64(10)
			if fields := strings.SplitN(tt.end, `"`, 5); fields[3] != "BOOKMARK" {
				rv = 11
				h.add(11, fields[3], "q")
			}
			w.want(tt.end)
			a.end(1, fin)
			b.watching(1)
			if got := b.watches()[0]; !strings.Contains(got, fmt.Sprintf("resourceVersion=%d", rv)) || strings.Contains(got, "Match") || strings.Contains(got, "Initial") {
				t.Errorf("b was asked for %s", got)
			}
			h.add(12, "ADDED", "r")
			w.want(jsonEvents.write(change{12, "ADDED", "r"}))
		})
	}
}

// A watch whose time is over has ended; one that goes on has what is left of it.
func TestWatchTimesOut(t *testing.T) {
	h := newHistory()
	a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
	s := watchStage(t, proxy.Config{}, a, b)
	began := time.Now()
	w := s.watch(podsAfter + "7&timeoutSeconds=1")
	await(t, "the second is over", func() bool { return time.Since(began) > 1200*time.Millisecond })
	a.end(1, lastChunk)
	w.wantEnd()
	sameList(t, "b", b.watches())
}

// Without --resume-watches nothing is changed: the request passes as it came, and the
// answer as it comes.
func TestPassWatches(t *testing.T) {
	h := newHistory()
	a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
	s := watchStage(t, proxy.Config{PassWatches: true}, a, b)
	w := s.watch(podsAfter + "7")
	next := jsonEvents.write(change{11, "ADDED", "z"})
	a.watching(1).extra <- chunked(next[:20])
	w.want(next[:20])
	a.bookmark(1, 12)
	w.want(jsonEvents.write(mark(12, false)))
	a.end(1, rst)
	if _, err := w.in.ReadByte(); err == nil {
		t.Error("the watch went on")
	}
	sameList(t, "a", a.watches(), podsAfter+"7")
	sameList(t, "b", b.watches())
}

// The end of one server after the other is survived; the position never goes back.
func TestWatchGoesOnAgainAndAgain(t *testing.T) {
	h := newHistory()
	a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
	s := watchStage(t, proxy.Config{}, a, b)
	w := s.watch(podsAfter + "7")
	from := []string{"7"}
	for i := range uint64(20) {
		server, n := a, int(i/2)+1
		if i%2 == 1 {
			server = b
		}
		server.watching(n)
		if i%3 != 0 { // else nothing happens before the next end
			h.add(10+i, "ADDED", fmt.Sprint(i))
			w.want(jsonEvents.write(change{10 + i, "ADDED", fmt.Sprint(i)}))
			from = append(from, fmt.Sprint(10+i))
		} else {
			from = append(from, from[len(from)-1])
		}
		server.end(n, []string{lastChunk, fin, rst}[i%3])
	}
	a.watching(11)
	var got []string
	for i := range 11 {
		got = append(got, rvOf(a.watches()[i]))
		if i < 10 {
			got = append(got, rvOf(b.watches()[i]))
		}
	}
	sameList(t, "asked for", got, from...)
}

func rvOf(target string) string {
	req, err := http.NewRequest("GET", target, nil)
	if err != nil {
		return err.Error()
	}
	return req.URL.Query().Get("resourceVersion")
}
