package proxy

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// identity is who sends a request, and how a server is told.
type identity struct {
	// user is who it is, nil while that is not known: a token tells it to servers
	// only.
	user *engine.User

	// token is the bearer token; "" without one.
	token string

	// credential is what MVP presents of itself, and lines are what it adds to the
	// request. Both are zero unless the client presented a certificate.
	credential upstream.Credential
	lines      wire.Header

	// impersonates is whom the client asked, and was allowed, to be taken for, where
	// it was MVP who allowed it.
	impersonates string
}

// certified reports whether MVP vouches for the client.
func (who *identity) certified() bool { return who.credential != upstream.ClientCredential }

// The users and groups that kube-apiserver itself gives.
const (
	userAnonymous        = "system:anonymous"
	groupAuthenticated   = "system:authenticated"
	groupUnauthenticated = "system:unauthenticated"
)

// anonymous is who sends a request without a credential.
var anonymous = &engine.User{Name: userAnonymous, Groups: []string{groupUnauthenticated}}

// authenticate finds out who sends the request. A bearer token goes before a
// certificate: the server can judge the token itself, so MVP does not vouch for
// anybody it need not. (kube-apiserver, to whom a client presents both, takes the
// certificate.)
func (x *exchange) authenticate() error {
	if token := bearerToken(x.in.Header, x.upgrade()); token != "" {
		x.who = identity{token: token}
		return nil
	}
	if len(x.in.PeerCertificates) == 0 {
		x.who = identity{user: anonymous}
		return nil
	}
	return x.authenticateCertificate()
}

// authenticateCertificate makes MVP vouch for the user that the certificate names,
// and for nothing else: whatever stands in the way is a 401, never another identity.
func (x *exchange) authenticateCertificate() error {
	auth := x.s.auth
	if auth.mode == RefuseCertificates {
		return unauthorized("MVP has no way to tell the kube-apiservers who presents a client certificate: " +
			"start mvp serve with --proxy-client-cert-file and --proxy-client-key-file, or with --impersonate; or use a token")
	}
	user, err := certificateUser(x.in.PeerCertificates, time.Now())
	if err != nil {
		return err
	}
	if auth.mode == CertificatesAsRequestHeaders {
		x.who = identity{user: user, credential: upstream.FrontProxyCredential, lines: auth.headers.lines(user)}
		return nil
	}
	who := identity{user: user, credential: upstream.OwnCredential}
	target, err := parseImpersonation(x.in.Header)
	switch {
	case err != nil:
		return err
	case target == nil:
		who.lines = impersonationLines(user)
	default:
		if err := auth.access.impersonate(x.ctx, user, target); err != nil {
			return err
		}
		who.impersonates = target.user // its lines are the client's own, and pass
	}
	x.who = who
	return nil
}

func unauthorized(format string, args ...any) *statusError {
	return &statusError{
		code: http.StatusUnauthorized, reason: metav1.StatusReasonUnauthorized,
		message: "Unauthorized: " + fmt.Sprintf(format, args...),
	}
}

func forbidden(format string, args ...any) *statusError {
	return &statusError{code: http.StatusForbidden, reason: metav1.StatusReasonForbidden, message: fmt.Sprintf(format, args...)}
}

// user says who sends the request, to policies. It is the one who authenticated, not
// whom it wants to be taken for, which only the server can allow. Nil: it is not
// known.
func (x *exchange) user() (*engine.User, error) {
	if x.who.user != nil || x.s.auth.tokens == nil {
		return x.who.user, nil
	}
	user, err := x.s.auth.tokens.user(x.ctx, x.who.token)
	x.who.user = user
	return user, err
}

// websocketProtocols is where a browser, which cannot set Authorization for a
// WebSocket, puts its token.
const (
	websocketProtocols     = "Sec-WebSocket-Protocol"
	websocketTokenProtocol = "base64url.bearer.authorization.k8s.io."
)

// bearerToken is the token that kube-apiserver would find in the request, "" without
// one. Authorization of another scheme is nothing to it.
func bearerToken(h wire.Header, upgrade bool) string {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(h.Get("Authorization")), " ")
	if strings.EqualFold(scheme, "Bearer") {
		if token, _, _ := strings.Cut(rest, " "); token != "" {
			return token
		}
	}
	if upgrade && strings.EqualFold(h.Get("Upgrade"), "websocket") {
		return websocketToken(h)
	}
	return ""
}

// websocketToken is the token among the subprotocols. What kube-apiserver refuses is
// none: several, one alone, or one that is not text in base64.
func websocketToken(h wire.Header) string {
	token, others := "", false
	for _, line := range h.Values(websocketProtocols) {
		for protocol := range strings.SplitSeq(line, ",") {
			encoded, ok := strings.CutPrefix(strings.TrimSpace(protocol), websocketTokenProtocol)
			if !ok {
				others = true
				continue
			}
			decoded, err := base64.RawURLEncoding.DecodeString(encoded)
			if err != nil || token != "" || !utf8.Valid(decoded) {
				return ""
			}
			token = string(decoded)
		}
	}
	if !others {
		return ""
	}
	return token
}

// credentialID is the extra attribute by which audit logs know a credential
// (KEP-4193).
const credentialID = "authentication.kubernetes.io/credential-id"

// certificateUser is the user that kube-apiserver sees in a client certificate: its
// common name, its organizations as groups, a UID if it has one, its fingerprint.
// The front verified the chain when the connection began, which may be long ago.
func certificateUser(chain []*x509.Certificate, now time.Time) (*engine.User, error) {
	for _, cert := range chain {
		if now.After(cert.NotAfter) {
			return nil, unauthorized("the certificate of %q expired on %s", cert.Subject.CommonName, cert.NotAfter.UTC().Format(time.RFC3339))
		}
	}
	leaf := chain[0]
	fingerprint := sha256.Sum256(leaf.Raw)
	user := &engine.User{
		Name:   leaf.Subject.CommonName,
		Groups: slices.DeleteFunc(slices.Clone(leaf.Subject.Organization), func(g string) bool { return g == "" }),
		Extra:  map[string][]string{credentialID: {"X509SHA256=" + hex.EncodeToString(fingerprint[:])}},
	}
	var err error
	if user.UID, err = certificateUID(leaf); err != nil {
		return nil, err
	}
	for _, value := range append([]string{user.Name, user.UID}, user.Groups...) {
		if !unchangedInHeader(value) {
			return nil, unauthorized("the client certificate names %q, which no header line can carry", value)
		}
	}
	if user.Name == "" {
		return nil, unauthorized("the client certificate has no common name, which would be the user's")
	}
	if !slices.Contains(user.Groups, groupAuthenticated) {
		user.Groups = append(user.Groups, groupAuthenticated)
	}
	return user, nil
}

// uidAttribute is 1.3.6.1.4.1.57683.2, Kubernetes' attribute of a subject for a
// user's UID.
const uidAttribute = "1.3.6.1.4.1.57683.2"

func certificateUID(leaf *x509.Certificate) (string, error) {
	uid := ""
	for _, attribute := range leaf.Subject.Names {
		if attribute.Type.String() != uidAttribute {
			continue
		}
		value, ok := attribute.Value.(string)
		if !ok || value == "" || uid != "" {
			return "", unauthorized("the client certificate must have one UID, as text, if it has any")
		}
		uid = value
	}
	return uid, nil
}

// unchangedInHeader reports whether a server reads value from a header line as it is
// here: white space around it would be lost, and with it the difference from
// somebody else's name.
func unchangedInHeader(value string) bool {
	if strings.TrimSpace(value) != value || !utf8.ValidString(value) {
		return false
	}
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// credentialIDSuffix is credentialID in the name of a header line, where a slash
// cannot stand.
const credentialIDSuffix = "Authentication.kubernetes.io%2Fcredential-id"

// lines tell a server, as a front proxy does, who the client is.
func (h *RequestHeaders) lines(user *engine.User) wire.Header {
	return identityLines(user, h.Username[0], h.Group[0], h.UID[0], h.ExtraPrefix[0])
}

// impersonationLines ask a server to take MVP for the client.
func impersonationLines(user *engine.User) wire.Header {
	h := identityLines(user, impersonateUser, impersonateGroup, impersonateUID, impersonateExtra)
	if strings.HasPrefix(user.Name, serviceAccountPrefix) && !h.Has(impersonateGroup) {
		// A server that is told no group works some out of such a name.
		h.Add(impersonateGroup, groupAuthenticated)
	}
	return h
}

// identityLines leave out system:authenticated, which servers add themselves.
func identityLines(user *engine.User, name, group, uid, extraPrefix string) wire.Header {
	h := make(wire.Header, 0, len(user.Groups)+3)
	h.Add(name, user.Name)
	for _, g := range user.Groups {
		if g != groupAuthenticated {
			h.Add(group, g)
		}
	}
	if user.UID != "" {
		h.Add(uid, user.UID)
	}
	for _, id := range user.Extra[credentialID] {
		h.Add(extraPrefix+credentialIDSuffix, id)
	}
	return h
}
