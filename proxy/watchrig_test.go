package proxy_test

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// history is what etcd has: every change since the beginning, each under its own
// resourceVersion. All servers of a test have one.
type history struct {
	mu      sync.Mutex
	changes []change
	changed chan struct{} // closed with the next change
}

type change struct {
	rv         uint64
	kind, name string
}

func newHistory() *history { return &history{changed: make(chan struct{})} }

// add makes something happen, at the resourceVersion rv.
func (h *history) add(rv uint64, kind, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes = append(h.changes, change{rv, kind, name})
	close(h.changed)
	h.changed = make(chan struct{})
}

// after gives the changes after rv, and what tells of more.
func (h *history) after(rv uint64) ([]change, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i, _ := slices.BinarySearchFunc(h.changes, rv+1, func(c change, rv uint64) int { return int(c.rv) - int(rv) })
	return h.changes[i:len(h.changes):len(h.changes)], h.changed
}

// at gives what there was at rv, 0: what there is, and its resourceVersion.
func (h *history) at(rv uint64) ([]change, uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	objects, last := map[string]change{}, rv
	for _, c := range h.changes {
		if rv == 0 {
			last = c.rv
		} else if c.rv > rv {
			break
		}
		if objects[c.name] = c; c.kind == "DELETED" {
			delete(objects, c.name)
		}
	}
	return slices.SortedFunc(maps.Values(objects), func(a, b change) int { return strings.Compare(a.name, b.name) }), last
}

// dialect is a form in which a server writes events.
type dialect struct {
	contentType string
	write       func(c change) string
}

var jsonEvents = dialect{"application/json", writeJSON}

// mark is the bookmark at rv; initial: the one that ends the initial events.
func mark(rv uint64, initial bool) change {
	kind := "BOOKMARK"
	if initial {
		kind = "INITIAL"
	}
	return change{rv, kind, ""}
}

func writeJSON(c change) string {
	annotations := ""
	switch c.kind {
	case "INITIAL":
		annotations = `,"annotations":{"k8s.io/initial-events-end":"true"}`
		fallthrough
	case "BOOKMARK":
		return fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d"%s},"spec":null}}`+"\n", c.rv, annotations)
	case "ERROR":
		return fmt.Sprintf(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"code":%d}}`+"\n", c.name, c.rv)
	}
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"uid":"u-%[2]s","resourceVersion":"%d"},"spec":{"resourceVersion":"999"}}}`+"\n",
		c.kind, c.name, c.rv)
}

// watchServer is a kube-apiserver with a history behind it.
type watchServer struct {
	*recorder
	h       *history
	dialect dialect

	mu     sync.Mutex
	oldest uint64 // positions before it are gone; 0: none is
	open   []*servedWatch
	wire   func(n int) (bytes int, how string) // cuts the answer to the nth watch; nil: none
	say    func(q request) string              // answers instead, if it answers something
	lists  func(q request) string              // likewise
	count  int
}

// servedWatch is one watch that a server serves.
type servedWatch struct {
	extra chan string // what else is to be written
	end   chan string // how to end
}

func serveWatches(t testing.TB, name string, h *history) *watchServer {
	s := &watchServer{h: h, dialect: jsonEvents}
	s.recorder, _ = tapeRecorder(t, nil, name, s.reply)
	return s
}

func (s *watchServer) reply(q request) string {
	target, err := url.Parse(q.target)
	if err != nil {
		return respond(400, "text/plain", err.Error())
	}
	query := target.Query()
	if !query.Has("watch") {
		return s.list(q, query)
	}
	s.mu.Lock()
	s.count++
	say, cut, oldest, n := s.say, s.wire, s.oldest, s.count
	s.mu.Unlock()
	if say != nil {
		if text := say(q); text != "" {
			return text
		}
	}
	w := &wireWriter{conn: q.conn, left: -1}
	if cut != nil {
		w.left, w.how = cut(n)
	}
	w.write(head200 + "Content-Type: " + s.dialect.contentType + "\r\nTransfer-Encoding: chunked\r\n\r\n")
	from, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	if from != 0 && from < oldest {
		w.write(chunked(s.dialect.write(change{410, "ERROR", fmt.Sprintf("too old resource version: %d (%d)", from, oldest)})) + "0\r\n\r\n")
		return ""
	}
	if from == 0 {
		from = s.initial(w, query)
	}
	s.stream(w, from)
	return ""
}

// initial writes the state, in the order of the names.
func (s *watchServer) initial(w *wireWriter, query url.Values) uint64 {
	objects, at := s.h.at(0)
	for _, c := range objects {
		w.write(chunked(s.dialect.write(change{c.rv, "ADDED", c.name})))
	}
	if query.Has("sendInitialEvents") && query.Get("allowWatchBookmarks") == "true" {
		w.write(chunked(s.dialect.write(mark(at, true))))
	}
	return at
}

// stream writes what happens, until it is told to end.
func (s *watchServer) stream(w *wireWriter, from uint64) {
	one := &servedWatch{extra: make(chan string), end: make(chan string, 1)}
	s.mu.Lock()
	s.open = append(s.open, one)
	s.mu.Unlock()
	for {
		changes, changed := s.h.after(from)
		for _, c := range changes {
			if !w.write(chunked(s.dialect.write(c))) {
				return
			}
			from = c.rv
		}
		select {
		case <-changed:
		case extra := <-one.extra:
			w.write(extra)
		case how := <-one.end:
			w.end(how)
			return
		}
	}
}

// list answers a list of metadata, as of now or of a resourceVersion.
func (s *watchServer) list(q request, query url.Values) string {
	s.mu.Lock()
	lists := s.lists
	s.mu.Unlock()
	if lists != nil {
		if text := lists(q); text != "" {
			return text
		}
	}
	rv, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	objects, at := s.h.at(rv)
	items := []string{}
	for _, c := range objects {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q,"uid":"u-%[1]s","resourceVersion":"%d","managedFields":[{}]}}`, c.name, c.rv))
	}
	return ok(fmt.Sprintf(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"%d"},"items":[%s]}`, at, strings.Join(items, ",")))
}

// wireWriter writes an answer, and cuts it where it is told.
type wireWriter struct {
	conn net.Conn
	left int // bytes; negative: all
	how  string
}

func (w *wireWriter) write(text string) bool {
	cut := w.left >= 0 && len(text) >= w.left
	if cut {
		text = text[:w.left]
	}
	_, err := io.WriteString(w.conn, text)
	if cut {
		w.end(w.how)
		return false
	}
	if w.left >= 0 {
		w.left -= len(text)
	}
	return err == nil
}

// The ways in which a server's stream ends, after what is written last.
const (
	lastChunk = "the last chunk"
	fin       = "FIN"
	rst       = "RST"
)

func (w *wireWriter) end(how string) {
	last, way, _ := cutLast(how, " + ")
	_, _ = io.WriteString(w.conn, last)
	switch way {
	case lastChunk:
		_, _ = io.WriteString(w.conn, "0\r\n\r\n")
	case fin:
		_ = w.conn.Close()
	case rst:
		reset(w.conn)
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

// watching waits until the server serves its nth watch and returns it.
func (s *watchServer) watching(n int) *servedWatch {
	s.t.Helper()
	var one *servedWatch
	await(s.t, fmt.Sprintf("%s serves watch %d", s.name, n), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.open) >= n {
			one = s.open[n-1]
		}
		return one != nil
	})
	return one
}

// end ends the nth watch.
func (s *watchServer) end(n int, how string) { s.watching(n).end <- how }

// bookmark writes a bookmark into the nth watch.
func (s *watchServer) bookmark(n int, rv uint64) {
	s.watching(n).extra <- chunked(s.dialect.write(mark(rv, false)))
}

// set changes what the server does.
func (s *watchServer) set(change func(*watchServer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// kill closes the listener and every connection.
func (s *watchServer) kill() {
	_ = s.listener.Close()
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	for _, conn := range s.conns {
		reset(conn)
	}
}

// restart serves anew on the address of a server that was killed.
func (s *watchServer) restart() *watchServer {
	s.t.Helper()
	listener, err := net.Listen("tcp", s.listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { listener.Close() })
	again := &watchServer{h: s.h, dialect: s.dialect}
	again.recorder = recordOn(s.t, nil, listener, s.name, again.reply)
	return again
}

// watches are the targets of the watches that arrived.
func (s *watchServer) watches() (targets []string) {
	for _, q := range s.got() {
		if strings.Contains(q.target, "watch=") {
			targets = append(targets, q.target)
		}
	}
	return targets
}
