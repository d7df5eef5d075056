package proxy

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

func TestBearerToken(t *testing.T) {
	f := func(want string, lines ...string) {
		t.Helper()
		var h wire.Header
		for _, line := range lines {
			name, value, _ := strings.Cut(line, ": ")
			h.Add(name, value)
		}
		upgrade := h.HasToken("Connection", "upgrade") && h.Has("Upgrade")
		if got := bearerToken(h, upgrade); got != want {
			t.Errorf("bearerToken(%q) = %q, want %q", lines, got, want)
		}
	}

	f("")
	f("t", "Authorization: Bearer t")
	f("t", "authorization: BEARER t")
	f("t", "Authorization:  Bearer t ")
	f("t", "Authorization: Bearer t more")
	f("", "Authorization: Bearer")
	f("", "Authorization: Bearer  t") // an empty token, says kube-apiserver
	f("", "Authorization: Basic YTpi")
	f("", "Authorization: Bearert")
	f("", "Authorization: Basic YTpi", "Authorization: Bearer t") // it reads the first line

	const connection, websocket = "Connection: Upgrade", "Upgrade: websocket"
	f("t", connection, websocket, "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.dA, v4.channel.k8s.io")
	f("t", connection, websocket, "Sec-WebSocket-Protocol: v4.channel.k8s.io", "sec-websocket-protocol:  base64url.bearer.authorization.k8s.io.dA")
	f("h", connection, websocket, "Authorization: Bearer h", "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.dA, v4")
	f("", connection, "Upgrade: SPDY/3.1", "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.dA, v4")
	f("", websocket, "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.dA, v4")
	f("", connection, websocket, "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.dA")
	f("", connection, websocket, "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.dA, base64url.bearer.authorization.k8s.io.dQ, v4")
	f("", connection, websocket, "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.dA==, v4")
	f("", connection, websocket, "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io._w, v4") // no UTF-8
	f("", connection, websocket, "Sec-WebSocket-Protocol: v4")
}

func TestCertificateUser(t *testing.T) {
	now := time.Now()
	const valid = time.Hour
	uid := func(values ...any) (attributes []pkix.AttributeTypeAndValue) {
		for _, value := range values {
			attributes = append(attributes, pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, Value: value})
		}
		return attributes
	}
	tests := []struct {
		name    string
		subject pkix.Name
		left    time.Duration
		want    string // name uid groups
		wantErr string
	}{
		{"a name", pkix.Name{CommonName: "alice"}, valid, `alice "" [system:authenticated]`, ""},
		{"groups", pkix.Name{CommonName: "alice", Organization: []string{"dev", "", "ops"}}, valid, `alice "" [dev ops system:authenticated]`, ""},
		{"a group that all have", pkix.Name{CommonName: "alice", Organization: []string{"system:authenticated", "dev"}}, valid, `alice "" [system:authenticated dev]`, ""},
		{"a UID", pkix.Name{CommonName: "alice", Names: uid("u-1")}, valid, `alice "u-1" [system:authenticated]`, ""},
		{"letters", pkix.Name{CommonName: "zoë"}, valid, `zoë "" [system:authenticated]`, ""},
		{"no name", pkix.Name{Organization: []string{"system:masters"}}, valid, "", "the client certificate has no common name, which would be the user's"},
		{"two UIDs", pkix.Name{CommonName: "alice", Names: uid("1", "2")}, valid, "", "the client certificate must have one UID, as text, if it has any"},
		{"an empty UID", pkix.Name{CommonName: "alice", Names: uid("")}, valid, "", "the client certificate must have one UID, as text, if it has any"},
		{"a UID that is no text", pkix.Name{CommonName: "alice", Names: uid(1)}, valid, "", "the client certificate must have one UID, as text, if it has any"},
		{"a name that a header line would make another's", pkix.Name{CommonName: " admin"}, valid, "", `the client certificate names " admin", which no header line can carry`},
		{"a group that a header line would make another", pkix.Name{CommonName: "a", Organization: []string{"system:masters\t"}}, valid, "", `names "system:masters\t", which`},
		{"a name with a line of its own", pkix.Name{CommonName: "a\r\nX-Remote-Group: system:masters"}, valid, "", `which no header line can carry`},
		{"a name that is no text", pkix.Name{CommonName: "a\xff"}, valid, "", `which no header line can carry`},
		{"expired", pkix.Name{CommonName: "alice"}, -time.Second, "", `the certificate of "alice" expired on `},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			leaf := &x509.Certificate{Subject: tt.subject, NotAfter: now.Add(tt.left), Raw: []byte("raw")}
			user, err := certificateUser([]*x509.Certificate{leaf, {NotAfter: now.Add(valid)}}, now)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) || toStatus(err).code != 401 {
					t.Errorf("error %v, want 401 with %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%s %q %v", user.Name, user.UID, user.Groups); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			// The SHA-256 of "raw".
			want := map[string][]string{credentialID: {"X509SHA256=d7439bee24773bcbfa2d0a97947ee36227b10d1022b1a55847e928965bb6bfde"}}
			if !reflect.DeepEqual(user.Extra, want) {
				t.Errorf("extra is %v, want %v", user.Extra, want)
			}
		})
	}
	if _, err := certificateUser([]*x509.Certificate{
		{Subject: pkix.Name{CommonName: "alice"}, NotAfter: now.Add(valid)},
		{Subject: pkix.Name{CommonName: "the CA"}, NotAfter: now.Add(-valid)},
	}, now); err == nil || !strings.Contains(err.Error(), `the certificate of "the CA" expired`) {
		t.Errorf("an expired authority: %v", err)
	}
}

// A server works groups out of a service account's name unless it is told some.
func TestImpersonatedServiceAccount(t *testing.T) {
	got := impersonationLines(&engine.User{Name: "system:serviceaccount:ns:robot", Groups: []string{groupAuthenticated}})
	want := wire.Header{{Name: "Impersonate-User", Value: "system:serviceaccount:ns:robot"}, {Name: "Impersonate-Group", Value: "system:authenticated"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A client stays itself when its token is on another connection or its certificate
// was renewed; others are others.
func TestCaller(t *testing.T) {
	caller := func(who identity, addr string) uint64 {
		x := &exchange{who: who, in: &front.Request{RemoteAddr: netip.MustParseAddrPort(addr)}}
		return x.caller()
	}
	certified := func(name, id string) identity {
		return identity{
			user:       &engine.User{Name: name, Extra: map[string][]string{credentialID: {id}}},
			credential: upstream.FrontProxyCredential,
		}
	}
	same := [][2]uint64{
		{caller(identity{token: "t"}, "1.1.1.1:1"), caller(identity{token: "t", user: &engine.User{Name: "found"}}, "2.2.2.2:2")},
		{caller(certified("a", "old"), "1.1.1.1:1"), caller(certified("a", "new"), "2.2.2.2:2")},
		{caller(identity{user: anonymous}, "1.1.1.1:1"), caller(identity{user: anonymous}, "1.1.1.1:2")},
	}
	seen := map[uint64]bool{}
	for i, pair := range same {
		if pair[0] != pair[1] || seen[pair[0]] {
			t.Errorf("%d: %v", i, pair)
		}
		seen[pair[0]] = true
	}
	if seen[caller(certified("b", "old"), "1.1.1.1:1")] || seen[caller(identity{token: "a"}, "1.1.1.1:1")] || seen[caller(identity{user: anonymous}, "3.3.3.3:1")] {
		t.Error("different callers are the same")
	}
}

func TestIdentityConfig(t *testing.T) {
	f := func(identity Identity, change func(*upstream.Config), want string) {
		t.Helper()
		cfg := upstream.Config{Servers: []upstream.ServerConfig{{URL: "https://127.0.0.1:1"}}}
		if change != nil {
			change(&cfg)
		}
		pool, err := upstream.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = newAuthenticator(identity, pool)
		switch {
		case want == "" && err != nil:
			t.Errorf("%+v: %v", identity, err)
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%+v: error %v, want %q", identity, err, want)
		}
	}
	token := func(c *upstream.Config) { c.Token = "t" }
	user := func(name string) Identity { return Identity{RequestHeaders: RequestHeaders{Username: []string{name}}} }

	f(Identity{}, nil, "")
	f(Identity{Certificates: CertificatesAsRequestHeaders}, token, "cannot tell the kube-apiservers who presents a client certificate: there is no front-proxy certificate")
	f(Identity{Certificates: CertificatesImpersonated}, nil, "cannot impersonate clients: MVP has no credential of its own")
	f(Identity{Certificates: CertificatesImpersonated, TokenReview: true}, token, "")
	f(Identity{TokenReview: true}, nil, "cannot ask whose a bearer token is: MVP has no credential of its own")
	f(user("X-Acme-User"), nil, "")
	f(user(""), nil, `cannot use "" as a request header for identities: want a name such as X-Remote-User`)
	f(user("X User"), nil, `cannot use "X User" as a request header for identities: want a name such as X-Remote-User`)
	f(user("authorization"), nil, `cannot use "authorization" as a request header for identities: want a name such as X-Remote-User`)
	f(user("Impersonate-User"), nil, `cannot use "Impersonate-User" as a request header for identities: want a name such as X-Remote-User`)
	f(Identity{RequestHeaders: RequestHeaders{ExtraPrefix: []string{"A"}}}, nil, `cannot use "A" as a request header for identities: want a name such as X-Remote-Extra-`)
}

// fakeClock is a time that a test moves.
type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Answers are remembered for a while, failures not at all, and no more than there is
// room for.
func TestMemo(t *testing.T) {
	clock := &fakeClock{now: time.Now()}
	m := newMemo[string]()
	m.answers = cache.NewLRUExpireCacheWithClock(maxRemembered, clock)
	asked := 0
	get := func(question string, err error) (string, error) {
		return m.get(t.Context(), question, func(context.Context) (string, error) {
			asked++
			return fmt.Sprint(question, asked), err
		})
	}
	f := func(question, want string) {
		t.Helper()
		if got, err := get(question, nil); got != want || err != nil {
			t.Errorf("get(%s) = %q, %v, want %q", question, got, err, want)
		}
	}

	f("a", "a1")
	f("a", "a1")
	f("b", "b2")
	clock.advance(reviewTTL - time.Millisecond)
	f("a", "a1")
	clock.advance(2 * time.Millisecond)
	f("a", "a3")

	failed := errors.New("away")
	if _, err := get("c", failed); !errors.Is(err, failed) {
		t.Errorf("error %v, want %v", err, failed)
	}
	f("c", "c5")
	for i := range maxRemembered + 10 {
		f(fmt.Sprintf("q%d-", i), fmt.Sprintf("q%d-%d", i, 6+i))
	}
	if n := len(m.answers.Keys()); n != maxRemembered {
		t.Errorf("%d answers are remembered, want %d", n, maxRemembered)
	}
	for _, key := range m.answers.Keys() {
		if strings.Contains(key.(string), "q4100") {
			t.Error("a question can be read in memory")
		}
	}
}

// The one who asks for all goes on when its client leaves, but not beyond its time.
func TestMemoDeadline(t *testing.T) {
	m := newMemo[string]()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	cancel()
	_, err := m.get(ctx, "q", func(asking context.Context) (string, error) {
		deadline, ok := asking.Deadline()
		want, _ := ctx.Deadline()
		if !ok || !deadline.Equal(want) || asking.Err() != nil {
			t.Errorf("asked with deadline %v and %v, want %v and nil", deadline, asking.Err(), want)
		}
		return "", nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A review that gets no turn in time is a 503, whoever holds the others up.
func TestReviewsAreBounded(t *testing.T) {
	r := newReviewer(nil)
	for range maxReviews {
		r.slots <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := r.create(ctx, review{kind: "TokenReview", object: struct{}{}})
	if err == nil || err.Error() != "cannot create a TokenReview: 64 reviews are under way already" || toStatus(err).code != 503 {
		t.Errorf("error %v", err)
	}
}
