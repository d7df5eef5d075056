package proxy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mixed-version-proxy/mvp/proxy"
)

const (
	tokenReviewPath  = "/apis/authentication.k8s.io/v1/tokenreviews"
	accessReviewPath = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
)

// split tells MVP's own reviews from the clients' requests.
func split(u *recorder) (reviews, clients []request) {
	for _, req := range u.got() {
		if req.target == tokenReviewPath || req.target == accessReviewPath {
			reviews = append(reviews, req)
			continue
		}
		clients = append(clients, req)
	}
	return reviews, clients
}

// reviewing answers TokenReviews with review, and everything else with {}.
func reviewing(review func(token string) string) func(request) string {
	return func(req request) string {
		if req.target != tokenReviewPath {
			return ok("{}")
		}
		var body struct{ Spec struct{ Token string } }
		if err := json.Unmarshal([]byte(req.body), &body); err != nil {
			return respond(400, "text/plain", err.Error())
		}
		return review(body.Spec.Token)
	}
}

func created(kind, status string) string {
	return respond(201, "application/json", fmt.Sprintf(`{"kind":%q,"status":%s}`, kind, status))
}

// whoIs knows the token of alice.
func whoIs(token string) string {
	if token != "alice's" {
		return created("TokenReview", `{"authenticated":false,"error":"invalid bearer token"}`)
	}
	return created("TokenReview", `{"authenticated":true,"user":{"username":"alice","uid":"7","groups":["dev"],"extra":{"acme.io/project":["p1"]}}}`)
}

// denyAlice reads all of user, for pods only.
var denyAlice = map[string]string{
	"a.match.cel": `request.resource == 'pods'`,
	"a.deny.cel":  `user.name == 'alice' && user.uid == '7' && user.groups == ['dev', 'system:authenticated'] && user.extra['acme.io/project'] == ['p1'] ? 'not alice' : ''`,
	"b.match.cel": `request.resource == 'pods'`,
	"b.warn.cel":  `user.name`,
}

// TestTokenReview shows what policies know of whom, what it costs, and that a request
// whose user cannot be found out is not taken for anybody's.
func TestTokenReview(t *testing.T) {
	ca := newAuthority(t)
	tests := []struct {
		name    string
		review  func(token string) string
		certify bool
		lines   string
		path    string
		code    int
		want    string // in the answer's body
		warning string
		reviews int // of three requests
	}{
		{"a known token", whoIs, false, "Authorization: Bearer alice's\r\n", "pods", 403, "not alice", "", 1},
		{"nobody's token", whoIs, false, "Authorization: Bearer bob's\r\n", "pods", 401, "does not know the bearer token", "", 1},
		{"no policy wants to know", whoIs, false, "Authorization: Bearer alice's\r\n", "services", 200, "{}", "", 0},
		{"no token", whoIs, false, "", "pods", 200, "{}", `299 - "system:anonymous"`, 0},
		{"a certificate", whoIs, true, "", "pods", 200, "{}", `299 - "carol"`, 0},
		{"a token in a subprotocol", whoIs, false, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.YWxpY2Uncw, v4\r\n", "pods", 403, "not alice", "", 1},
		{
			"MVP may not ask", func(string) string { return respond(403, "application/json", "{}") }, false, "Authorization: Bearer t\r\n", "pods",
			500, "mvp: cannot create a TokenReview: a answered 403 to MVP's own credential, which needs the right to; see examples/kubernetes", "", 3,
		},
		{
			"no server can answer", func(string) string { return respond(503, "application/json", "{}") }, false, "Authorization: Bearer t\r\n", "pods",
			503, "cannot create a TokenReview: a answered 503", "", 3,
		},
		{
			"no answer at all", func(string) string { return "garbage\r\n\r\n" }, false, "Authorization: Bearer t\r\n", "pods",
			503, "cannot create a TokenReview: upstream a: cannot read the head of the answer", "", 3,
		},
		{
			"no status", func(string) string { return respond(201, "application/json", `{"kind":"TokenReview"}`) }, false, "Authorization: Bearer t\r\n", "pods",
			500, `cannot read the answer of a: it is a \"TokenReview\", want a TokenReview with a status`, "", 3,
		},
		{
			"something else", func(string) string { return ok(`{"kind":"Status","status":"Success"}`) }, false, "Authorization: Bearer t\r\n", "pods",
			500, `cannot read the answer of a: it is a \"Status\", want a TokenReview with a status`, "", 3,
		},
		{
			"nobody is authenticated", func(string) string { return created("TokenReview", `{"authenticated":true,"user":{}}`) }, false, "Authorization: Bearer t\r\n", "pods",
			500, "names no user", "", 3,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u := recordTLS(t, ca, "a", reviewing(tt.review))
			r := startTLS(t, ca, identitySetup{
				identity: proxy.Identity{Certificates: proxy.CertificatesAsRequestHeaders, TokenReview: true},
				policies: denyAlice, token: "own", upstreams: []*recorder{u},
			})
			for range 3 {
				cert := certOf(ca, "carol")
				if !tt.certify {
					cert = nil
				}
				reply := r.ask(cert, "/api/v1/namespaces/d/"+tt.path, tt.lines)
				if reply.code != tt.code || !strings.Contains(reply.body, tt.want) || reply.header.Get("Warning") != tt.warning {
					t.Errorf("answered %d %s %q, want %d with %q and the warning %q", reply.code, reply.body, reply.header.Get("Warning"), tt.code, tt.want, tt.warning)
				}
			}
			reviews, clients := split(u)
			if passed := map[bool]int{true: 3, false: 0}[tt.code == 200]; len(clients) != passed {
				t.Errorf("%d requests of clients passed, want %d", len(clients), passed)
			}
			if len(reviews) != tt.reviews {
				t.Errorf("%d reviews, want %d", len(reviews), tt.reviews)
			}
			if strings.Contains(r.access.String(), "alice's") {
				t.Errorf("the log shows a token:\n%s", r.access.String())
			}
		})
	}
}

// What a TokenReview looks like, whole.
func TestTokenReviewRequest(t *testing.T) {
	ca := newAuthority(t)
	u := recordTLS(t, ca, "a", reviewing(whoIs))
	r := startTLS(t, ca, identitySetup{identity: proxy.Identity{TokenReview: true}, policies: denyAlice, token: "own", upstreams: []*recorder{u}})
	r.ask(nil, "/api/v1/pods", "Authorization: Bearer alice's\r\nX-Mine: 1\r\n")
	reviews, _ := split(u)
	if len(reviews) != 1 {
		t.Fatalf("%d reviews, want 1", len(reviews))
	}
	want := fmt.Sprintf("nobody: POST %s\nHost: %s\nContent-Type: application/json\nAccept: application/json\nUser-Agent: mvp\nAuthorization: Bearer own\nContent-Length: %d\n",
		tokenReviewPath, u.listener.Addr(), len(reviews[0].body))
	if got := seen(reviews[0]); got != want {
		t.Errorf("the upstream saw\n%s\nwant\n%s", got, want)
	}
	if got := reviews[0].body; !strings.Contains(got, `"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1"`) || !strings.Contains(got, `"spec":{"token":"alice's"}`) {
		t.Errorf("the review is %s", got)
	}
	(&rig{t: t, access: r.access}).eventually("the log names the user", func() bool { return strings.Contains(r.access.String(), `"user":"alice"`) })
}

// Many at once with one token share one question, and another server is asked when
// the first cannot answer.
func TestTokenReviewIsShared(t *testing.T) {
	ca := newAuthority(t)
	release := make(chan struct{})
	away := recordTLS(t, ca, "a", reviewing(func(string) string { return respond(503, "application/json", "{}") }))
	u := recordTLS(t, ca, "b", reviewing(func(token string) string { <-release; return whoIs(token) }))
	r := startTLS(t, ca, identitySetup{identity: proxy.Identity{TokenReview: true}, policies: denyAlice, token: "own", upstreams: []*recorder{away, u}})
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if reply := r.ask(nil, "/api/v1/pods", "Authorization: Bearer alice's\r\n"); reply.code != 403 {
				t.Errorf("answered %d %s", reply.code, reply.body)
			}
		})
	}
	(&rig{t: t}).eventually("a review has come", func() bool { reviews, _ := split(u); return len(reviews) > 0 })
	close(release)
	all.Wait()
	if reviews, _ := split(u); len(reviews) != 1 {
		t.Errorf("%d reviews, want 1", len(reviews))
	}
}

// Without the flag, a policy that reads user fails a request with a token, and says
// what to do; it is never taken for nobody's.
func TestUserIsNotKnown(t *testing.T) {
	ca := newAuthority(t)
	u := recordTLS(t, ca, "a", nil)
	r := startTLS(t, ca, identitySetup{policies: denyAlice, token: "own", upstreams: []*recorder{u}})
	reply := r.ask(nil, "/api/v1/pods", "Authorization: Bearer t\r\n")
	if reply.code != 500 || !strings.Contains(reply.body, "--authentication-token-review") || len(u.got()) != 0 {
		t.Errorf("answered %d %s, %d requests passed", reply.code, reply.body, len(u.got()))
	}
}
