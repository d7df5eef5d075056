package proxy

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	authn "k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// FuzzBearerToken compares the token that MVP finds with the one that kube-apiserver
// does.
func FuzzBearerToken(f *testing.F) {
	f.Add("Bearer t")
	f.Add("bearer  t")
	f.Add("BEARER t t")
	f.Add("Basic YTpi")
	f.Add("Bearer\tt")
	f.Fuzz(func(t *testing.T, authorization string) {
		authorization = strings.Trim(authorization, " \t") // as lines are read
		want := ""
		authenticate := bearertoken.New(authn.TokenFunc(func(_ context.Context, token string) (*authn.Response, bool, error) {
			want = token
			return nil, false, nil
		}))
		req := &http.Request{Header: http.Header{"Authorization": {authorization}}}
		_, _, _ = authenticate.AuthenticateRequest(req.WithContext(t.Context()))
		if got := bearerToken(wire.Header{{Name: "authorization", Value: authorization}}, true); got != want {
			t.Errorf("Authorization %q: token %q, kube-apiserver finds %q", authorization, got, want)
		}
	})
}

// FuzzImpersonation checks that a client is asked for the right to all that a server
// would read in its lines, and that what it is not asked for does not pass.
func FuzzImpersonation(f *testing.F) {
	f.Add("Impersonate-User: bob")
	f.Add("Impersonate-User: system:serviceaccount:ns:a:b")
	f.Add("Impersonate-User: system:serviceaccount:NS:robot")
	f.Add("impersonate-user: system:serviceaccount:ns:robot\nIMPERSONATE-GROUP: g\nImpersonate-Group: h")
	f.Add("Impersonate-User: bob\nImpersonate-Uid: 7\nImpersonate-Extra-acme.io%2Fproject: p1\nimpersonate-extra-ACME.io%2fproject: p2")
	f.Add("Impersonate-User: \nImpersonate-User: admin")
	f.Add("Impersonate-Extra-%zz: 1\nImpersonate-User: x\nImpersonate-Extra-%ff: y")
	f.Fuzz(func(t *testing.T, text string) {
		var lines wire.Header
		header := http.Header{}
		for line := range strings.SplitSeq(text, "\n") {
			name, value, _ := strings.Cut(line, ":")
			if !validName(name) {
				continue
			}
			value = strings.Trim(value, " \t\r")
			lines.Add(name, value)
			header.Add(name, value)
		}
		target, err := parseImpersonation(lines)
		if err != nil {
			return // nothing is sent
		}
		want := readByServer(header)
		if target == nil {
			if len(want) != 0 {
				t.Errorf("%q passes as no impersonation, a server reads %q", lines, want)
			}
			return
		}
		var got []string
		for _, n := range target.needs {
			got = append(got, strings.Join([]string{n.Group, n.Resource, n.Subresource, n.Namespace, n.Name}, "|"))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || target.user != header.Get("Impersonate-User") || len(got) > maxImpersonationValues {
			t.Errorf("%q: asked for %q, a server reads %q", lines, got, want)
		}
	})
}

// readByServer is what kube-apiserver asks for, in order.
func readByServer(header http.Header) []string {
	var rights []string
	if user := header.Get("Impersonate-User"); user != "" {
		right := "|users|||" + user
		if namespace, name, err := serviceaccount.SplitUsername(user); err == nil {
			right = "|serviceaccounts||" + namespace + "|" + name
		}
		rights = append(rights, right)
	}
	for _, group := range header["Impersonate-Group"] {
		rights = append(rights, "|groups|||"+group)
	}
	if uid := header.Get("Impersonate-Uid"); uid != "" {
		rights = append(rights, "authentication.k8s.io|uids|||"+uid)
	}
	for name, values := range header {
		suffix, ok := strings.CutPrefix(name, "Impersonate-Extra-")
		if !ok {
			continue
		}
		key, err := url.PathUnescape(strings.ToLower(suffix))
		if err != nil {
			key = strings.ToLower(suffix)
		}
		for _, value := range values {
			rights = append(rights, "authentication.k8s.io|userextras|"+key+"||"+value)
		}
	}
	slices.Sort(rights)
	return rights
}
