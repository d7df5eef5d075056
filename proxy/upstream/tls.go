package upstream

import (
	"crypto/tls"
	"sync"
)

// tlsConfig is for one handshake.
func (s *Server) tlsConfig(m *material, credential Credential) *tls.Config {
	config := &tls.Config{
		RootCAs:            m.roots,
		ServerName:         orDefault(m.serverName, s.end.host),
		InsecureSkipVerify: m.insecure,
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"http/1.1"},
		ClientSessionCache: s.sessions.of(m.era, credential),
	}
	if cert := m.certificate(credential); cert != nil {
		config.Certificates = []tls.Certificate{*cert}
	}
	return config
}

// certificate is what a connection presents; nil for none.
func (m *material) certificate(credential Credential) *tls.Certificate {
	switch credential {
	case OwnCredential:
		return m.cert
	case FrontProxyCredential:
		return m.frontProxy
	}
	return nil
}

// sessions holds what resumes TLS sessions with one server. Each credential has a
// cache of its own, because a resumed session has the identity of the first one. New
// material starts anew, because a resumed session was verified by the old.
type sessions struct {
	mu     sync.Mutex
	era    uint64
	caches [numCredentials]tls.ClientSessionCache
}

// sessionsKept is how many sessions one cache holds. One server needs one name.
const sessionsKept = 8

func (ss *sessions) of(era uint64, credential Credential) tls.ClientSessionCache {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.era != era {
		ss.era, ss.caches = era, [numCredentials]tls.ClientSessionCache{}
	}
	if ss.caches[credential] == nil {
		ss.caches[credential] = tls.NewLRUClientSessionCache(sessionsKept)
	}
	return ss.caches[credential]
}
