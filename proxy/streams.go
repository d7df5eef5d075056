package proxy

import (
	"sync"
	"time"
)

// streams are the exchanges that may last for ever, so that a shutdown can end
// them. The zero streams is empty.
type streams struct {
	mu    sync.Mutex
	all   map[*exchange]string // and the server that each is on, "" before it answers
	ended bool                 // what comes now is to end at once
}

func (s *streams) add(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		x.endStream()
		return
	}
	if s.all == nil {
		s.all = map[*exchange]string{}
	}
	s.all[x] = ""
}

// on says which server answers.
func (s *streams) on(x *exchange, server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.all[x]; ok {
		s.all[x] = server
	}
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
	midway bool // what went out last did not end an event
}

// begin says that the stream shall end, and reports whether it may end at once.
func (e *ender) begin() (now bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ending = true
	return !e.midway
}

// at says whether what goes out next ends an event, and reports whether to end
// there.
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

// EndStreams ends every watch, and those that come later: their clients see the
// end of the answer and come back elsewhere. A watch in the middle of an event
// ends after it. Followed logs and tunnels (exec, port-forward) are left alone:
// they go on until the front breaks them off.
func (s *Server) EndStreams() {
	s.streams.mu.Lock()
	defer s.streams.mu.Unlock()
	s.streams.ended = true
	for x := range s.streams.all {
		x.endStream()
	}
}

// endStreamsOf ends the streams that a server has: it hangs, and their clients
// would wait for ever.
func (s *Server) endStreamsOf(server string) {
	s.streams.mu.Lock()
	defer s.streams.mu.Unlock()
	ended := 0
	for x, on := range s.streams.all {
		if on == server {
			x.endStream()
			ended++
		}
	}
	if ended > 0 {
		s.cfg.Log.Warn("ended the watches of a server that does not answer", "upstream", server, "watches", ended)
	}
}

// midwayTime is how long a stream that is told to end may wait for the rest of an
// event.
const midwayTime = 2 * time.Second

// endStream makes the stream end where an event does.
func (x *exchange) endStream() {
	if x.ending.begin() {
		x.cancel()
		return
	}
	time.AfterFunc(midwayTime, x.cancel)
}
