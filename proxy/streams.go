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

// EndStreams ends every watch, followed log and proxied request: their clients
// see the end of the answer and come back elsewhere. It is the first step of a
// shutdown.
func (s *Server) EndStreams() {
	s.streams.mu.Lock()
	defer s.streams.mu.Unlock()
	for x := range s.streams.all {
		x.ending.Store(true)
		x.cancel()
	}
}
