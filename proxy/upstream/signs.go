package upstream

// Signs in the traffic of clients that what is known of a server may be old. They are
// cheap to give: a server is polled at most every 200 ms for them.

// signs is what a server's signs bring about.
type signs struct {
	probe *throttle // of /readyz
	poll  *throttle // of version and discovery
}

// NoticeGone tells that the server answered as for a path that it does not know
// ("404 page not found") to a request for a resource that it was thought to serve. Its
// discovery is read again.
func (s *Server) NoticeGone() {
	s.signs.poll.call()
}

// ProbeNow tells that the server showed signs of shutting down or of having been
// restarted. Its health is probed.
func (s *Server) ProbeNow() {
	s.signs.probe.call()
}

// closedIdle tells that the server has closed a connection on which nothing was under
// way, as one does that shuts down or has been restarted, perhaps as another version.
func (s *Server) closedIdle() {
	s.broke()
	s.NoticeGone()
}

// broke tells that a connection broke off, or was closed while it waited for reuse. A
// server that is killed breaks off all of them, and may be back as another version, or not
// ready for anything yet, before a probe was due: until one has said that it is well,
// the server is in doubt.
func (s *Server) broke() {
	s.doubts.Add(1)
	s.ProbeNow()
}

// Doubtful reports whether a connection to the server has broken off since it was last
// seen to be well. Whoever has the choice takes another server.
func (s *Server) Doubtful() bool { return s.doubts.Load() != s.settled.Load() }

// heed has the signs of the member's server wake its probes.
func (m *member) heed() {
	m.server.signs = signs{
		probe: &throttle{gap: signGap, f: func() { wake(m.probeNow) }},
		poll: &throttle{gap: signGap, f: func() {
			m.discovery.suspect.Store(true)
			wake(m.apisNow)
		}},
	}
}
