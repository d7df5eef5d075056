package proxy_test

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy"
)

// A server whose history does not reach back is passed over, whether it says so by
// its status or by an event, and so is one that will not have the watch.
func TestWatchPassesOver(t *testing.T) {
	status := func(code int) string {
		return respond(code, "application/json", fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","message":"no","code":%d}`, code))
	}
	watch := func(events string) string {
		return head200 + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(events) + "0\r\n\r\n"
	}
	for name, answer := range map[string]string{
		"410":                   status(410),
		"403":                   status(403),
		"404":                   status(404),
		"429":                   status(429),
		"500":                   status(500),
		"a 404 of the mux":      respond(404, "text/plain; charset=utf-8", "404 page not found\n"),
		"an event of 410":       watch(jsonEvents.write(change{410, "ERROR", "too old resource version: 10 (40)"})),
		"an event of 500":       watch(jsonEvents.write(change{500, "ERROR", "no leader"})),
		"another form":          head200 + "Content-Type: application/vnd.kubernetes.protobuf;stream=watch\r\nTransfer-Encoding: chunked\r\n\r\n",
		"an encoding":           head200 + "Content-Type: application/json\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
		"a document":            ok("{}"),
		"no HTTP":               "no\r\n",
		"an answer cut at once": "HTTP/1.1 2",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			h.add(10, "ADDED", "p")
			a, b, c := serveWatches(t, "a", h), serveWatches(t, "b", h), serveWatches(t, "c", h)
			b.say = func(q request) string {
				if answer == "HTTP/1.1 2" || answer == "no\r\n" {
					_, _ = io.WriteString(q.conn, answer)
					_ = q.conn.Close()
				}
				return answer
			}
			s := watchStage(t, proxy.Config{}, a, b, c)
			w := s.watch(podsAfter + "7")
			w.want(jsonEvents.write(change{10, "ADDED", "p"}))
			a.end(1, fin)
			c.watching(1)
			h.add(11, "ADDED", "q")
			w.want(jsonEvents.write(change{11, "ADDED", "q"}))
			sameList(t, "c", c.watches(), podsAfter+"10&allowWatchBookmarks=true")
		})
	}
}

// A watch that no server will have any more ends, and its client finds out why when
// it comes back.
func TestWatchThatNobodyWillHave(t *testing.T) {
	for name, code := range map[string]int{"unauthorized": 401, "forbidden": 403, "gone": 410} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
			s := watchStage(t, proxy.Config{}, a, b)
			w := s.watch(podsAfter + "7")
			h.add(10, "ADDED", "p")
			w.want(jsonEvents.write(change{10, "ADDED", "p"}))
			refuse := func(q request) string { return respond(code, "application/json", "{}") }
			for _, server := range []*watchServer{a, b} {
				server.set(func(s *watchServer) { s.say, s.lists = refuse, refuse })
			}
			a.end(1, lastChunk)
			w.wantEnd()
		})
	}
}

// The history of a server that has just started does not reach back to a client that
// comes with an older position; another server's does.
func TestWatchBeginsWhereHistoryReaches(t *testing.T) {
	h := newHistory()
	h.add(10, "ADDED", "p")
	a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
	a.oldest = 50
	s := watchStage(t, proxy.Config{}, a, b)
	w := s.watch(podsAfter + "7")
	w.want(jsonEvents.write(change{10, "ADDED", "p"}))
	sameList(t, "b", b.watches(), podsAfter+"7&allowWatchBookmarks=true")
}

// Where no server's history reaches back, it is proved by lists that nothing has
// happened, or the client is told what the first server said.
func TestWatchQuietProof(t *testing.T) {
	tooOld := jsonEvents.write(change{410, "ERROR", "too old resource version: 10 (50)"})
	for name, tt := range map[string]struct {
		happened []change // since the position
		change   func(*watchServer)
		list     string // instead of the second one
		proved   bool
	}{
		"nothing happened":                  {nil, nil, "", true},
		"something happened after it began": {[]change{{60, "ADDED", "q"}}, nil, "", true},
		"one was added":                     {[]change{{40, "ADDED", "q"}}, nil, "", false},
		"one was modified":                  {[]change{{40, "MODIFIED", "p"}}, nil, "", false},
		"one was deleted":                   {[]change{{40, "DELETED", "p"}}, nil, "", false},
		"one came and went":                 {[]change{{40, "ADDED", "q"}, {41, "DELETED", "q"}}, nil, "", true},
		"the client may not list":           {nil, nil, respond(403, "application/json", "{}"), false},
		"the list is too long":              {nil, nil, metaList(`"resourceVersion":"50","continue":"x"`, ""), false},
		"the list is of another moment":     {nil, nil, metaList(`"resourceVersion":"51"`, `{"metadata":{"name":"p","uid":"u-p","resourceVersion":"10"}}`), false},
		"the list is of another kind":       {nil, nil, ok(`{"kind":"PodList","metadata":{"resourceVersion":"50"},"items":[]}`), false},
		"the list has no uids":              {nil, nil, metaList(`"resourceVersion":"50"`, `{"metadata":{"name":"p","resourceVersion":"10"}}`), false},
		"the list breaks off":               {nil, nil, ok(`{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"50"},"items":[`), false},
		"the list is none":                  {nil, nil, ok(`[]`), false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			h.add(10, "ADDED", "p")
			a := serveWatches(t, "a", h)
			a.oldest = 50
			for _, c := range tt.happened {
				h.add(c.rv, c.kind, c.name)
			}
			a.lists = func(q request) string {
				if strings.Contains(q.target, "resourceVersion=50") {
					return tt.list
				}
				return ""
			}
			s := watchStage(t, proxy.Config{}, a)
			w := s.watch("/api/v1/namespaces/d/pods?labelSelector=a%3Db&watch=1&resourceVersion=10&timeoutSeconds=600", "Authorization: Bearer mine")
			if !tt.proved {
				w.want(tooOld)
				w.wantEnd()
				return
			}
			if len(tt.happened) > 0 && tt.happened[0].rv == 60 {
				w.want(jsonEvents.events(tt.happened...))
			}
			h.add(70, "ADDED", "r")
			w.want(jsonEvents.write(change{70, "ADDED", "r"}))
			var targets []string
			for _, q := range a.got() {
				targets = append(targets, q.target)
				if !strings.Contains(q.raw, "Authorization: Bearer mine\r\n") {
					t.Errorf("%s was not sent with the client's credential: %q", q.target, q.raw)
				}
			}
			const pods = "/api/v1/namespaces/d/pods?labelSelector=a%3Db"
			sameList(t, "a", targets,
				pods+"&watch=1&resourceVersion=10&timeoutSeconds=600&allowWatchBookmarks=true",
				pods+"&resourceVersion=10&resourceVersionMatch=Exact&limit=10000",
				pods+"&resourceVersion=50&resourceVersionMatch=Exact&limit=10000",
				pods+"&watch=1&resourceVersion=50&timeoutSeconds=600&allowWatchBookmarks=true")
		})
	}
}

func metaList(metadata, items string) string {
	return ok(fmt.Sprintf(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{%s},"items":[%s]}`, metadata, items))
}

// A watch that is moved and meets no history goes on after the proof, too.
func TestWatchQuietProofWhenMoved(t *testing.T) {
	h := newHistory()
	h.add(10, "ADDED", "p")
	a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
	b.oldest = 50
	s := watchStage(t, proxy.Config{}, a, b)
	w := s.watch(podsAfter + "7")
	w.want(jsonEvents.write(change{10, "ADDED", "p"}))
	a.set(func(a *watchServer) { a.oldest = 60 }) // it restarts
	a.end(1, rst)
	b.watching(1)
	h.add(55, "MODIFIED", "p")
	w.want(jsonEvents.write(change{55, "MODIFIED", "p"}))
	sameList(t, "b", b.watches(), podsAfter+"10&allowWatchBookmarks=true", podsAfter+"50&allowWatchBookmarks=true")
}

// The watch waits for a kind's only server to come back.
func TestWatchWaitsForTheServer(t *testing.T) {
	h := newHistory()
	a := serveWatches(t, "a", h)
	s := probedStage(t, proxy.Config{}, a)
	w := s.watch(podsAfter + "7")
	h.add(10, "ADDED", "p")
	w.want(jsonEvents.write(change{10, "ADDED", "p"}))
	a.kill()
	await(t, "a is down", func() bool { return !s.pool.View().Servers[0].Healthy })
	h.add(11, "ADDED", "q")
	again := a.restart()
	w.want(jsonEvents.write(change{11, "ADDED", "q"}))
	sameList(t, "a", again.watches(), podsAfter+"10&allowWatchBookmarks=true")
}

// A watch for which no server comes in time ends.
func TestWatchIsGivenUp(t *testing.T) {
	h := newHistory()
	a := serveWatches(t, "a", h)
	s := watchStage(t, proxy.Config{ResumeTime: 300 * time.Millisecond}, a)
	w := s.watch(podsAfter + "7")
	h.add(10, "ADDED", "p")
	w.want(jsonEvents.write(change{10, "ADDED", "p"}))
	a.kill()
	w.wantEnd()
}

// A server that ends every watch at once does not keep MVP busy.
func TestWatchThatAlwaysEnds(t *testing.T) {
	h := newHistory()
	a := serveWatches(t, "a", h)
	a.say = func(request) string {
		return head200 + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	}
	s := watchStage(t, proxy.Config{ResumeTime: time.Second}, a)
	s.watch(podsAfter + "7").wantEnd()
	if n := len(a.watches()); n < 2 || n > 12 {
		t.Errorf("the server was asked %d times within a second", n)
	}
}

// A client that leaves while its watch moves takes the request with it.
func TestWatchClientLeavesWhileItMoves(t *testing.T) {
	h := newHistory()
	a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
	asked, gone := make(chan struct{}, 1), make(chan struct{})
	b.say = func(q request) string {
		asked <- struct{}{}
		_, _ = io.Copy(io.Discard, q.conn) // until MVP closes it
		close(gone)
		return "x"
	}
	s := watchStage(t, proxy.Config{}, a, b)
	w := s.watch(podsAfter + "7")
	a.end(1, rst)
	<-asked
	_ = w.conn.Close()
	<-gone
	await(t, "the request to b is cancelled", func() bool { return s.streams() == 0 })
}

// streams are the streams that are open to all servers.
func (s *stage) streams() (n int) {
	for _, server := range s.pool.View().Servers {
		n += server.Streams()
	}
	return n
}

// A shutdown ends a watch that is looking for a server.
func TestShutdownWhileAWatchMoves(t *testing.T) {
	h := newHistory()
	a := serveWatches(t, "a", h)
	s := watchStage(t, proxy.Config{ResumeTime: time.Hour}, a)
	w := s.watch(podsAfter + "7")
	a.kill()
	await(t, "MVP has lost the server", func() bool { return s.streams() == 0 })
	s.proxy.EndStreams()
	w.wantEnd()
}

// The watch of a server that hangs goes on elsewhere.
func TestWatchOfAServerThatHangs(t *testing.T) {
	h := newHistory()
	a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
	var hanging atomic.Bool
	hang := make(chan struct{})
	defer close(hang)
	a.ready = func() string {
		if hanging.Load() {
			<-hang
		}
		return respond(200, "text/plain", "ok")
	}
	s := probedStage(t, proxy.Config{HungTime: 2 * probed}, a, b)
	w := s.watch(podsAfter + "7")
	h.add(10, "ADDED", "p")
	w.want(jsonEvents.write(change{10, "ADDED", "p"}))
	hanging.Store(true)
	b.watching(1)
	h.add(11, "ADDED", "q")
	w.want(jsonEvents.write(change{11, "ADDED", "q"}))
}

// A client that reads slowly loses nothing, and its server may go meanwhile.
func TestWatchSlowReader(t *testing.T) {
	h := newHistory()
	a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
	a.wire = func(int) (int, string) { return 3 << 20, rst }
	s := watchStage(t, proxy.Config{}, a, b)
	w := s.watch(podsAfter + "7")
	var want []string
	long := strings.Repeat("x", 20<<10)
	for i := range uint64(400) {
		h.add(10+i, "ADDED", fmt.Sprint(long, i))
		want = append(want, jsonEvents.write(change{10 + i, "ADDED", fmt.Sprint(long, i)}))
	}
	w.want(want...)
	if len(b.watches()) != 1 {
		t.Errorf("b was asked for %q", b.watches())
	}
}

// After half an hour and more a server may end a watch that has no limit; but not one
// that is about to leave.
func TestWatchServerTimeout(t *testing.T) {
	for name, ready := range map[string]int{"a server that is well": 200, "a server that shuts down": 500} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
			var code atomic.Int64
			code.Store(200)
			a.ready = func() string { return respond(int(code.Load()), "text/plain", "x") }
			s := watchStage(t, proxy.Config{}, a, b)
			s.proxy.SetServerTimeout(0)
			w := s.watch(podsAfter + "7")
			h.add(10, "ADDED", "p")
			w.want(jsonEvents.write(change{10, "ADDED", "p"}))
			code.Store(int64(ready))
			a.end(1, lastChunk)
			if ready == 200 {
				w.wantEnd()
				sameList(t, "b", b.watches())
				return
			}
			b.watching(1)
			h.add(11, "ADDED", "q")
			w.want(jsonEvents.write(change{11, "ADDED", "q"}))
		})
	}
}
