package proxy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// Identity says how the servers learn who a client is. A bearer token always passes
// as it came, and a client that presents nothing is anonymous to the servers: the zero
// Identity is enough for these.
type Identity struct {
	// Certificates is what becomes of a request whose client presented a
	// certificate, verified by the front, and no bearer token. A certificate cannot
	// be passed on, so a server has to be told what it said. Default: it is refused.
	Certificates CertificateMode

	// RequestHeaders are the lines by which a front proxy tells a server who a client
	// is. They must be the servers' own. Nobody but MVP may send them: what clients
	// send is removed, X-Remote-* in any case.
	RequestHeaders RequestHeaders

	// TokenReview lets policies know the user of a bearer token, by asking a server.
	// Without it, a policy that reads user fails for such a request. MVP's own
	// credential must be allowed to create tokenreviews.
	TokenReview bool
}

// CertificateMode is how a server is told what a client's certificate says.
type CertificateMode int

const (
	// RefuseCertificates answers 401.
	RefuseCertificates CertificateMode = iota

	// CertificatesAsRequestHeaders sends RequestHeaders over a connection that
	// presents the front-proxy certificate. Impersonate-* lines pass, for the server
	// to authorise.
	CertificatesAsRequestHeaders

	// CertificatesImpersonated sends Impersonate-* lines with MVP's own credential,
	// which must be allowed to impersonate. Impersonate-* lines of the client's own
	// are refused unless a SubjectAccessReview allows that client each of them.
	CertificatesImpersonated
)

// RequestHeaders are names of header lines, as kube-apiserver's --requestheader-*
// flags have them. All of them are removed from what clients send; the first of each
// is the one that MVP writes. Empty: the defaults.
type RequestHeaders struct {
	Username    []string // default X-Remote-User
	Group       []string // default X-Remote-Group
	UID         []string // default X-Remote-Uid
	ExtraPrefix []string // default X-Remote-Extra-
}

// DefaultRequestHeaders are the names that kube-apiserver's documentation suggests.
func DefaultRequestHeaders() RequestHeaders {
	return RequestHeaders{
		Username: []string{"X-Remote-User"}, Group: []string{"X-Remote-Group"},
		UID: []string{"X-Remote-Uid"}, ExtraPrefix: []string{"X-Remote-Extra-"},
	}
}

// complete returns h with its defaults, or says which name cannot be used.
func (h RequestHeaders) complete() (RequestHeaders, error) {
	defaults := DefaultRequestHeaders()
	for _, list := range []struct{ names, fallback *[]string }{
		{&h.Username, &defaults.Username},
		{&h.Group, &defaults.Group},
		{&h.UID, &defaults.UID},
		{&h.ExtraPrefix, &defaults.ExtraPrefix},
	} {
		if len(*list.names) == 0 {
			*list.names = *list.fallback
		}
		for _, name := range *list.names {
			if !validName(name) || reservedName(name) {
				return h, fmt.Errorf("cannot use %q as a request header for identities: want a name such as %s", clip(name), (*list.fallback)[0])
			}
		}
	}
	return h, nil
}

// validName reports whether name can be a header's (RFC 9110 section 5.6.2).
func validName(name string) bool {
	for i := range len(name) {
		c := name[i]
		alphanumeric := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alphanumeric && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}

// reservedName reports whether name is, or as a prefix begins, a header with another
// meaning, which must not be lost when clients' lines of that name are removed.
func reservedName(name string) bool {
	return hasPrefixFold(name, "Impersonate-") || slices.ContainsFunc(
		[]string{"Accept", "Authorization", "Connection", "Content-Type", "Host", "Impersonate-", "Upgrade", "X-Forwarded-For"},
		func(reserved string) bool { return hasPrefixFold(reserved, name) })
}

// authenticator finds out who sends a request. Its methods may be called by any
// number of goroutines.
type authenticator struct {
	mode     CertificateMode
	headers  RequestHeaders
	names    []string // that clients must not send
	prefixes []string // of such
	tokens   *tokenReviews
	access   *accessReviews // in CertificatesImpersonated only
}

// newAuthenticator checks that the pool has the credentials that cfg needs.
func newAuthenticator(cfg Identity, pool *upstream.Pool) (*authenticator, error) {
	headers, err := cfg.RequestHeaders.complete()
	if err != nil {
		return nil, err
	}
	a := &authenticator{
		mode: cfg.Certificates, headers: headers,
		names:    slices.Concat(headers.Username, headers.Group, headers.UID),
		prefixes: headers.ExtraPrefix,
	}
	if a.mode == CertificatesAsRequestHeaders && !pool.Has(upstream.FrontProxyCredential) {
		return nil, errors.New("cannot tell the kube-apiservers who presents a client certificate: there is no front-proxy certificate")
	}
	reviews := newReviewer(pool)
	if a.mode == CertificatesImpersonated {
		if !pool.Has(upstream.OwnCredential) {
			return nil, errors.New("cannot impersonate clients: MVP has no credential of its own")
		}
		a.access = newAccessReviews(reviews)
	}
	if cfg.TokenReview {
		if !pool.Has(upstream.OwnCredential) {
			return nil, errors.New("cannot ask whose a bearer token is: MVP has no credential of its own")
		}
		a.tokens = newTokenReviews(reviews)
	}
	return a, nil
}
