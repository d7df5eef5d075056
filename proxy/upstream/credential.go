package upstream

import (
	"errors"
	"strings"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// Credential is what MVP presents of itself with a request. Requests with different
// ones never share a connection, nor a TLS session.
type Credential byte

const (
	// ClientCredential is nothing of MVP's: the request carries what its client
	// presented, or nothing.
	ClientCredential Credential = iota

	// FrontProxyCredential is the front-proxy certificate, at the sight of which a
	// server believes who a request says that it comes from (X-Remote-User). Whoever
	// uses it must have removed what the client itself said of that.
	FrontProxyCredential

	// OwnCredential is MVP's own bearer token and client certificate, as far as there
	// are any. The server takes the request for MVP's, so one that is a client's must
	// say in Impersonate-User on whose behalf it is made, or it is not sent.
	OwnCredential

	numCredentials
)

var (
	errNoOwnCredential = errors.New("MVP has no credential of its own: neither a token nor a client certificate")
	errNoFrontProxy    = errors.New("MVP has no front-proxy certificate")
	errAuthorization   = errors.New("a request with MVP's own credential must not bring an Authorization of its own")
	errNobody          = errors.New("a client's request with MVP's own credential must name one user in Impersonate-User")
)

// Has reports whether MVP has that credential for every server.
func (p *Pool) Has(c Credential) bool {
	for _, m := range p.current() {
		if m.server.secrets.current().check(c) != nil {
			return false
		}
	}
	return len(p.current()) > 0 || p.secrets.current().check(c) == nil
}

func (m *material) check(c Credential) error {
	switch {
	case c == FrontProxyCredential && m.frontProxy == nil:
		return errNoFrontProxy
	case c == OwnCredential && m.cert == nil && m.token == "":
		return errNoOwnCredential
	}
	return nil
}

// checkCredential refuses a request that would run with more than its client's
// rights. Its sender has seen to that before; this is the last line.
func (r *Request) checkCredential(m *material) error {
	if r.probe { // MVP's own, also without any credential
		return nil
	}
	if r.Credential == OwnCredential {
		switch {
		case r.Header.Has("Authorization"):
			return errAuthorization
		case !namesOneUser(r.Header):
			return errNobody
		}
	}
	return m.check(r.Credential)
}

// namesOneUser reports whether there is exactly one Impersonate-User, and it is not
// empty: a server takes an empty one for none.
func namesOneUser(h wire.Header) bool {
	users := 0
	for i := range h {
		if strings.EqualFold(h[i].Name, "Impersonate-User") {
			if h[i].Value == "" {
				return false
			}
			users++
		}
	}
	return users == 1
}
