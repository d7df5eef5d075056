package upstream

import (
	"sync"
	"time"
)

// idleConns keeps a server's unused connections. The last one used is the first to
// be used again, so that a quiet server's surplus can age.
type idleConns struct {
	max   int
	after time.Duration // how long one may be idle

	mu     sync.Mutex
	conns  map[connKind][]*conn // oldest first
	closed bool
	usable func(*conn) bool // never nil

	died func() // told of each that the server closed before its time; nil: nobody
}

func newIdleConns(most int, after time.Duration, usable func(*conn) bool) *idleConns {
	return &idleConns{max: most, after: after, usable: usable, conns: map[connKind][]*conn{}}
}

// get returns a connection that is open and silent, or nil.
func (ic *idleConns) get(kind connKind) *conn {
	for c := ic.pop(kind); c != nil; c = ic.pop(kind) {
		if time.Since(c.idleSince) < ic.after && ic.usable(c) {
			if c.alive() {
				c.reused, c.received = true, false
				return c
			}
			if ic.died != nil {
				ic.died()
			}
		}
		_ = c.Close()
	}
	return nil
}

func (ic *idleConns) pop(kind connKind) *conn {
	ic.mu.Lock()
	defer ic.mu.Unlock()
	list := ic.conns[kind]
	if len(list) == 0 {
		return nil
	}
	c := list[len(list)-1]
	list[len(list)-1] = nil
	ic.conns[kind] = list[:len(list)-1]
	return c
}

// put takes back a connection whose answer was read to its end.
func (ic *idleConns) put(c *conn) {
	c.idleSince = time.Now()
	ic.mu.Lock()
	keep := !ic.closed && len(ic.conns[c.kind]) < ic.max && ic.usable(c)
	if keep {
		ic.conns[c.kind] = append(ic.conns[c.kind], c)
	}
	ic.mu.Unlock()
	if !keep {
		_ = c.Close()
	}
}

// sweep closes the connections that are idle for too long or no longer usable.
func (ic *idleConns) sweep() {
	ic.drop(func(c *conn) bool { return time.Since(c.idleSince) >= ic.after || !ic.usable(c) })
}

// close closes all, and those that are put later.
func (ic *idleConns) close() {
	ic.mu.Lock()
	ic.closed = true
	ic.mu.Unlock()
	ic.drop(func(*conn) bool { return true })
}

func (ic *idleConns) drop(drop func(*conn) bool) {
	ic.mu.Lock()
	defer ic.mu.Unlock()
	for kind, list := range ic.conns {
		kept := list[:0]
		for _, c := range list {
			if drop(c) {
				_ = c.Close()
				continue
			}
			kept = append(kept, c)
		}
		clear(list[len(kept):])
		ic.conns[kind] = kept
	}
}
