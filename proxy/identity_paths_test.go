package proxy_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/proxy"
)

// identityOf is what a test below compares of what an upstream saw: who presented
// what, without the lines that are about something else.
func identityOf(req request) string {
	var kept []string
	for line := range strings.Lines(seen(req)) {
		name, _, _ := strings.Cut(line, ": ")
		switch {
		case strings.HasSuffix(name, "credential-id"), strings.HasPrefix(name, "X-Forwarded"), strings.HasPrefix(name, "Accept"),
			name == "Host", strings.HasPrefix(name, "Content-"):
			continue
		}
		kept = append(kept, strings.TrimSuffix(line, "\n"))
	}
	return strings.Join(kept, "; ")
}

// vouching are the modes in which MVP tells the server who presented a certificate,
// with what it then adds.
var vouching = []struct {
	name      string
	mode      proxy.CertificateMode
	presented string
	lines     string
}{
	{"headers", proxy.CertificatesAsRequestHeaders, "front-proxy", "X-Remote-User: alice; X-Remote-Group: dev"},
	{"impersonate", proxy.CertificatesImpersonated, "mvp", "Impersonate-User: alice; Impersonate-Group: dev"},
}

// Each way of a request through MVP, not the plain one only, tells the server the
// same: all requests that a patch takes, the question whether discovery may be seen,
// and a tunnel.
func TestIdentityOnEveryWay(t *testing.T) {
	for _, v := range vouching {
		t.Run(v.name, func(t *testing.T) {
			ca := newAuthority(t)
			alice := ca.client(pkix.Name{CommonName: "alice", Organization: []string{"dev"}})
			u := recordTLS(t, ca, "a", func(req request) string {
				if strings.HasSuffix(req.target, "/exec") {
					return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello"
				}
				return ok(newThing)
			})
			r := startTLS(t, ca, identitySetup{
				identity:  proxy.Identity{Certificates: v.mode},
				policies:  map[string]string{"t.convert.cel": `{'resource': 'things', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1'}`, "t.request.jq": ".", "t.response.jq": "."},
				upstreams: []*recorder{u},
			})
			f := func(raw string, code int, want ...string) {
				t.Helper()
				u.forget()
				reply := r.send(&alice, raw)
				if reply.code != code {
					t.Errorf("answered %d %s, want %d", reply.code, reply.body, code)
				}
				got := u.got()
				if len(got) != len(want) {
					t.Fatalf("the upstream got %d requests, want %d", len(got), len(want))
				}
				for i := range got {
					if identity, w := identityOf(got[i]), fmt.Sprintf("%s: %s; %s", v.presented, want[i], v.lines); identity != w {
						t.Errorf("the upstream saw\n%s\nwant\n%s", identity, w)
					}
				}
			}

			f("PATCH /apis/acme.io/v1beta1/namespaces/d/things/t HTTP/1.1\r\nHost: mvp\r\nX-Remote-User: root\r\n"+
				"Content-Type: application/merge-patch+json\r\nContent-Length: 22\r\n\r\n{\"spec\":{\"mode\":\"z\"} }", 200,
				"GET /apis/acme.io/v1/namespaces/d/things/t", "PATCH /apis/acme.io/v1/namespaces/d/things/t")
			f("GET /apis/acme.io/v1 HTTP/1.1\r\nHost: mvp\r\nX-Remote-User: root\r\n\r\n", 200, "GET /apis/acme.io/v1")

			u.forget()
			conn := r.dial(&alice)
			if _, err := io.WriteString(conn, "GET /api/v1/namespaces/d/pods/p/exec HTTP/1.1\r\nHost: mvp\r\nX-Remote-User: root\r\n"+
				"Connection: Upgrade, X-Remote-User, X-Remote-Group, Impersonate-User\r\nUpgrade: websocket\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(conn)
			resp, err := http.ReadResponse(in, nil)
			if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("the tunnel was answered %v, %v", resp, err)
			}
			defer resp.Body.Close()
			hello := make([]byte, 5)
			if _, err := io.ReadFull(in, hello); err != nil || string(hello) != "hello" {
				t.Errorf("through the tunnel came %q, %v", hello, err)
			}
			want := fmt.Sprintf("%s: GET /api/v1/namespaces/d/pods/p/exec; %s; Connection: Upgrade; Upgrade: websocket", v.presented, v.lines)
			if got := identityOf(u.only()); got != want {
				t.Errorf("the upstream saw\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// A request that is tried again on another server has each line once.
func TestIdentityOnRetry(t *testing.T) {
	for _, v := range vouching {
		t.Run(v.name, func(t *testing.T) {
			ca := newAuthority(t)
			alice := ca.client(pkix.Name{CommonName: "alice", Organization: []string{"dev"}})
			a, b := recordTLS(t, ca, "a", nil), recordTLS(t, ca, "b", nil)
			r := startTLS(t, ca, identitySetup{
				identity:  proxy.Identity{Certificates: v.mode},
				policies:  map[string]string{"r.match.cel": "true", "r.route.cel": "upstream.name == 'a' ? 2 : 1"},
				upstreams: []*recorder{a, b},
			})
			a.listener.Close()
			a.hangUp()
			if reply := r.ask(&alice, "/apis/acme.io/v1/namespaces/d/things", "X-Remote-User: root\r\n"); reply.code != 200 {
				t.Fatalf("answered %d %s", reply.code, reply.body)
			}
			want := fmt.Sprintf("%s: GET /apis/acme.io/v1/namespaces/d/things; %s", v.presented, v.lines)
			if got := identityOf(b.only()); got != want {
				t.Errorf("the second upstream saw\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// Requests of different clients that share the connections to an upstream do not
// share identities: what one presented is never seen with another's.
func TestIdentitiesDoNotMix(t *testing.T) {
	for _, v := range vouching {
		t.Run(v.name, func(t *testing.T) {
			ca := newAuthority(t)
			u := recordTLS(t, ca, "a", nil)
			r := startTLS(t, ca, identitySetup{identity: proxy.Identity{Certificates: v.mode}, upstreams: []*recorder{u}})
			prefix := "X-Remote"
			if v.mode == proxy.CertificatesImpersonated {
				prefix = "Impersonate"
			}
			clients := []struct {
				cert        *tls.Certificate
				lines, want string
			}{
				{certOf(ca, "alice"), "", v.presented + ": GET /api; " + prefix + "-User: alice"},
				{nil, "", "nobody: GET /api"},
				{certOf(ca, "bob"), "", v.presented + ": GET /api; " + prefix + "-User: bob"},
				{nil, "Authorization: Bearer t\r\n", "nobody: GET /api; Authorization: Bearer t"},
			}
			for range 5 {
				for _, c := range clients {
					u.forget()
					r.ask(c.cert, "/api/v1/pods", c.lines)
					if got := strings.Replace(identityOf(u.only()), "/api/v1/pods", "/api", 1); got != c.want {
						t.Errorf("the upstream saw\n%s\nwant\n%s", got, c.want)
					}
				}
			}
		})
	}
}

func certOf(ca *authority, name string) *tls.Certificate {
	cert := ca.client(pkix.Name{CommonName: name})
	return &cert
}

// A token that a browser hides in a subprotocol goes before a certificate, as one in
// Authorization does, and Connection cannot drop it.
func TestWebSocketToken(t *testing.T) {
	ca := newAuthority(t)
	u := recordTLS(t, ca, "a", func(request) string { return respond(403, "application/json", "{}") })
	r := startTLS(t, ca, identitySetup{
		identity: proxy.Identity{Certificates: proxy.CertificatesAsRequestHeaders}, upstreams: []*recorder{u},
	})
	const protocols = "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.dA, v4.channel.k8s.io"
	reply := r.ask(certOf(ca, "alice"), "/api/v1/namespaces/d/pods/p/exec",
		"Connection: Upgrade, Sec-WebSocket-Protocol\r\nUpgrade: websocket\r\n"+protocols+"\r\n")
	if reply.code != 403 {
		t.Errorf("answered %d, want the server's 403", reply.code)
	}
	want := "nobody: GET /api/v1/namespaces/d/pods/p/exec; " + protocols + "; Connection: Upgrade; Upgrade: websocket"
	if got := identityOf(u.only()); got != want {
		t.Errorf("the upstream saw\n%s\nwant\n%s", got, want)
	}
}
