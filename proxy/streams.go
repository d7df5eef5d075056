package proxy

import "sync"

// streams are the exchanges that may last for ever, so that a shutdown can end
// them. The zero streams is empty.
type streams struct {
	mu  sync.Mutex
	all map[*exchange]struct{}
}

func (s *streams) add(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*exchange]struct{}{}
	}
	s.all[x] = struct{}{}
}

func (s *streams) remove(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, x)
}

// ender lets a shutdown end one stream where an event ends. Its methods may be
// called from any goroutine.
type ender struct {
	mu     sync.Mutex
	ending bool // a stream that breaks off now has ended, not failed
	midway bool // what went by last is not a whole event
}

// begin says that the stream shall end, and reports whether it may end at once.
func (e *ender) begin() (now bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ending = true
	return !e.midway
}

// at says whether what went by last is whole, and reports whether to end there.
func (e *ender) at(whole bool) (end bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.midway = !whole
	return e.ending && whole
}

// ended reports whether the stream was told to end.
func (e *ender) ended() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ending
}

// Drain makes the proxy say on /readyz, to clients and administrators, that it is
// about to leave, so that load balancers send new clients elsewhere. Requests are
// still answered. It is the first step of a shutdown.
func (s *Server) Drain() { s.draining.Store(true) }

// EndStreams ends every watch, followed log and proxied request: their clients
// see the end of the answer and come back elsewhere. A watch in the middle of an
// event ends after it.
func (s *Server) EndStreams() {
	s.streams.mu.Lock()
	defer s.streams.mu.Unlock()
	for x := range s.streams.all {
		if x.ending.begin() {
			x.cancel()
		}
	}
}
