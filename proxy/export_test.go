package proxy

import "time"

// SetServerTimeout sets after how long a server's own end of a watch is taken for
// one, which nobody would wait for. Before any request.
func (s *Server) SetServerTimeout(d time.Duration) { s.watches.serverTimeout = d }
