package upstream

import (
	"crypto/tls"
	"sync"
)

// tlsConfig is for one handshake.
func (s *Server) tlsConfig(m *material, own bool) *tls.Config {
	config := &tls.Config{
		RootCAs:            m.roots,
		ServerName:         orDefault(s.cfg.ServerName, s.end.host),
		InsecureSkipVerify: s.cfg.InsecureSkipTLSVerify,
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"http/1.1"},
		ClientSessionCache: s.sessions.of(m.era, own),
	}
	if own && m.cert != nil {
		config.Certificates = []tls.Certificate{*m.cert}
	}
	return config
}

// sessions holds what resumes TLS sessions with one server. Connections with and
// without MVP's certificate have caches of their own, because a resumed session has
// the identity of the first one. New material starts anew, because a resumed session
// was verified by the old.
type sessions struct {
	mu     sync.Mutex
	era    uint64
	caches [2]tls.ClientSessionCache
}

// sessionsKept is how many sessions one cache holds. One server needs one name.
const sessionsKept = 8

func (ss *sessions) of(era uint64, own bool) tls.ClientSessionCache {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.era != era {
		ss.era, ss.caches = era, [2]tls.ClientSessionCache{}
	}
	i := 0
	if own {
		i = 1
	}
	if ss.caches[i] == nil {
		ss.caches[i] = tls.NewLRUClientSessionCache(sessionsKept)
	}
	return ss.caches[i]
}
