package proxy_test

import (
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/proxy"
)

// allowing answers SubjectAccessReviews: yes to the rights in allowed, written as
// group resource/subresource namespace/name.
func allowing(allowed ...string) func(request) string {
	return func(req request) string {
		if req.target != accessReviewPath {
			return ok("{}")
		}
		return created("SubjectAccessReview", fmt.Sprintf(`{"allowed":%v,"reason":"as RBAC says"}`, slices.Contains(allowed, right(req))))
	}
}

type accessReview struct {
	Kind, APIVersion string
	Spec             struct {
		User, UID          string
		Groups             []string
		Extra              map[string][]string
		ResourceAttributes struct{ Verb, Group, Version, Resource, Subresource, Namespace, Name string }
	}
}

func right(req request) string {
	var review accessReview
	if err := json.Unmarshal([]byte(req.body), &review); err != nil {
		return err.Error()
	}
	a := review.Spec.ResourceAttributes
	return fmt.Sprintf("%s %s/%s %s/%s", a.Group, a.Resource, a.Subresource, a.Namespace, a.Name)
}

// TestImpersonationByClient: where MVP's own credential would carry a client's
// impersonation, the client must have the right to each part of it.
func TestImpersonationByClient(t *testing.T) {
	ca := newAuthority(t)
	alice := ca.client(pkix.Name{CommonName: "alice", Organization: []string{"dev"}})
	const all = "Impersonate-User: bob\r\nImpersonate-Group: ops\r\nimpersonate-uid: 7\r\nImpersonate-Extra-Acme.io%2Fproject: p1\r\nImpersonate-Extra-acme.io%2fproject: p2\r\n"
	rights := []string{
		" users/ /bob", " groups/ /ops", "authentication.k8s.io uids/ /7",
		"authentication.k8s.io userextras/acme.io/project /p1", "authentication.k8s.io userextras/acme.io/project /p2",
	}
	tests := []struct {
		name    string
		allowed []string
		lines   string
		code    int
		want    string // in the refusal
		reviews int
	}{
		{"all is allowed", rights, all, 200, "", 5},
		{"not the user", rights[1:], all, 403, `users \"bob\" is forbidden: User \"alice\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope: as RBAC says`, 5},
		{"not the group", slices.Delete(slices.Clone(rights), 1, 2), all, 403, `groups \"ops\" is forbidden`, 5},
		{"not the uid", slices.Delete(slices.Clone(rights), 2, 3), all, 403, `cannot impersonate resource \"uids\" in API group \"authentication.k8s.io\"`, 5},
		{"not one value", rights[:4], all, 403, `userextras \"p2\" is forbidden: User \"alice\" cannot impersonate resource \"userextras/acme.io/project\"`, 5},
		{"nothing", nil, all, 403, `users \"bob\" is forbidden`, 5},
		{"oneself is somebody, too", nil, "Impersonate-User: alice\r\n", 403, `users \"alice\" is forbidden`, 1},
		{"a service account", []string{" serviceaccounts/ ns/robot"}, "Impersonate-User: system:serviceaccount:ns:robot\r\n", 200, "", 1},
		{"a service account as a user", []string{" users/ /system:serviceaccount:ns:robot"}, "Impersonate-User: system:serviceaccount:ns:robot\r\n", 403, `in the namespace \"ns\"`, 1},
		{"no user", rights, "Impersonate-Group: ops\r\n", 403, "there is no Impersonate-User", 0},
		{"an empty user", rights, "Impersonate-User:\r\n", 403, "Impersonate-User is empty", 0},
		{"an empty user before another", rights, "Impersonate-User:\r\nImpersonate-User: bob\r\n", 403, "Impersonate-User is empty", 0},
		{"two users", rights, "Impersonate-User: bob\r\nImpersonate-User: admin\r\n", 403, "Impersonate-User is unknown or repeated", 0},
		{"an unknown line", rights, "Impersonate-User: bob\r\nImpersonate-Rank: 1\r\n", 403, "Impersonate-Rank is unknown or repeated", 0},
		{"an extra without a name", rights, "Impersonate-User: bob\r\nImpersonate-Extra-: 1\r\n", 403, "Impersonate-Extra- is unknown or repeated", 0},
		{"no text", rights, "Impersonate-User: b\xffb\r\n", 403, "is empty or no text", 0},
		{"dropped by Connection", rights[:1], "Connection: Impersonate-Group\r\nImpersonate-User: bob\r\nImpersonate-Group: ops\r\n", 403, `groups \"ops\" is forbidden`, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u := recordTLS(t, ca, "a", allowing(tt.allowed...))
			r := startTLS(t, ca, identitySetup{
				identity: proxy.Identity{Certificates: proxy.CertificatesImpersonated}, token: "own", upstreams: []*recorder{u},
			})
			reply := r.ask(&alice, "/api/v1/pods", tt.lines)
			if reply.code != tt.code || !strings.Contains(reply.body, tt.want) {
				t.Errorf("answered %d %s, want %d with %q", reply.code, reply.body, tt.code, tt.want)
			}
			reviews, clients := split(u)
			if len(reviews) != tt.reviews {
				t.Errorf("%d reviews, want %d", len(reviews), tt.reviews)
			}
			for _, review := range reviews {
				checkReview(t, review)
			}
			if tt.code != 200 {
				if len(clients) != 0 {
					t.Errorf("a refused request passed:\n%s", seen(clients[0]))
				}
				return
			}
			if len(clients) != 1 {
				t.Fatalf("%d requests passed, want 1", len(clients))
			}
			want := "nobody: GET /api/v1/pods\nHost: mvp\n" + strings.ReplaceAll(tt.lines, "\r\n", "\n") + "X-Forwarded-For: 127.0.0.1\nAuthorization: Bearer own\n"
			if got := seen(clients[0]); got != want {
				t.Errorf("the upstream saw\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// checkReview checks that a review is about alice, with all that her certificate says.
func checkReview(t *testing.T, req request) {
	t.Helper()
	var got accessReview
	if err := json.Unmarshal([]byte(req.body), &got); err != nil {
		t.Fatal(err)
	}
	if got.Kind != "SubjectAccessReview" || got.APIVersion != "authorization.k8s.io/v1" || got.Spec.ResourceAttributes.Verb != "impersonate" {
		t.Errorf("the review is %s", req.body)
	}
	if got.Spec.User != "alice" || !reflect.DeepEqual(got.Spec.Groups, []string{"dev", "system:authenticated"}) ||
		len(got.Spec.Extra["authentication.kubernetes.io/credential-id"]) != 1 {
		t.Errorf("the review is about %s", req.body)
	}
	if auth := "Authorization: Bearer own\n"; !strings.Contains(seen(req), auth) {
		t.Errorf("the review has not MVP's own credential:\n%s", seen(req))
	}
}

// Two thousand lines cause no review at all, and the most that are allowed are asked
// for once (report 1.32).
func TestImpersonationIsBounded(t *testing.T) {
	ca := newAuthority(t)
	u := recordTLS(t, ca, "a", func(req request) string {
		if req.target == accessReviewPath {
			return created("SubjectAccessReview", `{"allowed":true}`)
		}
		return ok("{}")
	})
	r := startTLS(t, ca, identitySetup{
		identity: proxy.Identity{Certificates: proxy.CertificatesImpersonated}, token: "own", upstreams: []*recorder{u},
	})
	alice := certOf(ca, "alice")
	groups := func(n int) string {
		var b strings.Builder
		b.WriteString("Impersonate-User: bob\r\n")
		for i := range n {
			fmt.Fprintf(&b, "Impersonate-Group: g%d\r\n", i)
		}
		return b.String()
	}
	if reply := r.ask(alice, "/api/v1/pods", groups(2000)); reply.code != 403 || !strings.Contains(reply.body, "more than 64 lines of impersonation") {
		t.Errorf("2000 groups: answered %d %s", reply.code, reply.body)
	}
	if n := len(u.got()); n != 0 {
		t.Errorf("2000 groups caused %d requests", n)
	}
	for range 2 { // the second time from memory
		if reply := r.ask(alice, "/api/v1/pods", groups(63)); reply.code != 200 {
			t.Errorf("63 groups: answered %d %s", reply.code, reply.body)
		}
	}
	if reviews, clients := split(u); len(reviews) != 64 || len(clients) != 2 {
		t.Errorf("%d reviews for %d requests, want 64 for 2", len(reviews), len(clients))
	}
}

// A server that cannot say yes has not said yes.
func TestImpersonationWhenReviewsFail(t *testing.T) {
	ca := newAuthority(t)
	f := func(answer string, code int, want string) {
		t.Helper()
		u := recordTLS(t, ca, "a", func(request) string { return answer })
		r := startTLS(t, ca, identitySetup{
			identity: proxy.Identity{Certificates: proxy.CertificatesImpersonated}, token: "own", upstreams: []*recorder{u},
		})
		reply := r.ask(certOf(ca, "alice"), "/api/v1/pods", "Impersonate-User: bob\r\n")
		if reply.code != code || !strings.Contains(reply.body, want) {
			t.Errorf("answered %d %s, want %d with %q", reply.code, reply.body, code, want)
		}
		if _, clients := split(u); len(clients) != 0 {
			t.Errorf("the request passed:\n%s", seen(clients[0]))
		}
	}

	f(respond(403, "application/json", `{"kind":"Status"}`), 500, "cannot create a SubjectAccessReview: a answered 403")
	f(respond(500, "application/json", `{"kind":"Status"}`), 503, "cannot create a SubjectAccessReview: a answered 500")
	f(created("SubjectAccessReview", `{"allowed":true,"denied":true}`), 403, "is forbidden")
	f(created("SubjectAccessReview", `{}`), 403, "is forbidden")
	f(respond(201, "application/json", `{"kind":"SubjectAccessReview"`), 500, "cannot read the answer")
	f(respond(201, "application/json", `{"kind":"TokenReview","status":{"allowed":true}}`), 500, "want a SubjectAccessReview")
}
