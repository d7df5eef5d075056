package proxy

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// watchOptions are what the query of a watch says of where it begins and ends.
type watchOptions struct {
	from      uint64        // resourceVersion; 0: none was given
	initial   bool          // what there is comes first, as ADDED events
	bookmarks bool          // the client wants BOOKMARK events
	marked    bool          // it counts on the one that ends the initial events
	timeout   time.Duration // after which the server ends the watch; 0: when it likes
	table     bool          // the objects come as tables
}

// parseWatchOptions reads a query as kube-apiserver does, the first value of each
// parameter. ok is false if the resourceVersion is none that it writes.
func parseWatchOptions(query string, accept []string) (o watchOptions, ok bool) {
	values, _ := url.ParseQuery(query) // it leaves out what kube-apiserver ignores
	from := values.Get("resourceVersion")
	o.from = parseRV([]byte(from))
	o.bookmarks = values.Has("allowWatchBookmarks") && isTrue(values.Get("allowWatchBookmarks"))
	if values.Has("sendInitialEvents") {
		o.initial = isTrue(values.Get("sendInitialEvents"))
		o.marked = o.initial && o.bookmarks
	} else {
		o.initial = o.from == 0
	}
	if n, err := strconv.ParseInt(values.Get("timeoutSeconds"), 10, 32); err == nil && n > 0 {
		o.timeout = time.Duration(n) * time.Second
	}
	o.table = strings.Contains(strings.ToLower(strings.Join(accept, ",")), "as=table")
	return o, o.from != 0 || from == "" || from == "0"
}

// isTrue reads a bool of a query as kube-apiserver does.
func isTrue(value string) bool { return value != "0" && !strings.EqualFold(value, "false") }

// position is how far a client's watch has come: the resourceVersion after which it
// goes on elsewhere.
//
// It rests on three promises of kube-apiserver's watches (processInterval and
// convertToWatchEvent in k8s.io/apiserver/pkg/storage/cacher, sync in
// storage/etcd3): events come in the order of their resourceVersions, each event
// under the revision that made it, also that of a deletion; a bookmark comes after
// all events up to its resourceVersion; and where the state comes first, it comes
// as ADDED events in the order of the keys, all of them before anything else.
//
// Only what etcd deletes by itself can share a revision: Events whose time is over. A
// stream that is cut between two of them goes on after both, as it would for a client
// that comes back by itself.
type position struct {
	at      uint64 // 0: not certain
	top     uint64 // the highest that at has been
	initial bool   // events may still be those of the initial state
	marked  bool   // the client waits for the bookmark that ends them
	broken  bool   // the events kept no order: certain never more
}

func newPosition(o watchOptions) position {
	if o.initial {
		return position{initial: true, marked: o.marked}
	}
	return position{at: o.from, top: o.from}
}

// pass notes that e was passed on. ends says of a bookmark that it ends the initial
// events.
//
// A client that asked for the initial events and for bookmarks counts on the one
// that ends them, which only the watch that began has: nothing else is the end of
// them. Without, the first event that is no ADDED one is.
func (p *position) pass(e event, ends func() bool) {
	switch {
	case e.kind == errorEvent:
		return
	case e.kind == unknownEvent:
		p.at = 0
		return
	case p.initial && e.kind == addedEvent, p.initial && p.marked && !(e.kind == bookmarkEvent && ends()):
		return
	}
	p.initial = false
	if e.rv != 0 && e.rv < p.top {
		p.broken = true
	}
	p.at, p.top = e.rv, max(p.top, e.rv)
}

// certain is where to go on; 0 where that cannot be said.
func (p *position) certain() uint64 {
	if p.broken || p.initial {
		return 0
	}
	return p.at
}
