package proxy

import (
	"io"
	"slices"
	"sync"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// streams are the exchanges that may last for ever, so that a shutdown can end
// them. The zero streams is empty.
type streams struct {
	mu    sync.Mutex
	all   map[*exchange]placed
	ended bool // what comes now is to end at once
}

// placed is where a stream is.
type placed struct {
	server string    // that answers; "" before it does
	body   io.Closer // of the answer; closing it makes the stream go on elsewhere; nil: it cannot
}

func (s *streams) add(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		x.endStream()
		return
	}
	if s.all == nil {
		s.all = map[*exchange]placed{}
	}
	s.all[x] = placed{}
}

// on says where the stream is.
func (s *streams) on(x *exchange, on placed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.all[x]; ok {
		s.all[x] = on
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

// endStreamsOf takes the streams away from a server that has them: it hangs, or is
// one no more, and their clients would wait for ever. A watch that is followed goes
// on elsewhere; another stream ends.
func (s *Server) endStreamsOf(server string) {
	s.streams.mu.Lock()
	defer s.streams.mu.Unlock()
	moved, ended := 0, 0
	for x, on := range s.streams.all {
		switch {
		case on.server != server:
		case x.takeAway(on):
			moved++
		default:
			ended++
		}
	}
	if moved+ended > 0 {
		s.cfg.Log.Warn("took the watches away from a server that does not answer, or was removed", "upstream", server, "moved", moved, "ended", ended)
	}
}

// takeAway takes the stream away from its server, and reports whether it goes on
// elsewhere.
func (x *exchange) takeAway(on placed) (moved bool) {
	if on.body == nil {
		x.endStream()
		return false
	}
	go func() { _ = on.body.Close() }() // TLS may wait for the peer to take its farewell
	return true
}

// place notes which server answers the stream. That server may have been removed since
// it was chosen, and its streams taken away: then this one is, too.
func (x *exchange) place() {
	on := placed{x.server.Name, x.movable()}
	x.s.streams.on(x, on)
	present := slices.ContainsFunc(x.s.state.Load().view.Servers, func(s *upstream.State) bool { return s.Server == x.server.Server })
	if !present {
		x.takeAway(on)
	}
}

// movable is what ends the answer so that the watch goes on elsewhere; nil if it
// cannot.
func (x *exchange) movable() io.Closer {
	if !x.watch.follows(x.answer) {
		return nil
	}
	return x.answer.Body
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
