package proxy_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

const labelRules = `apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: labels}
spec:
  apiMigrationRules:
    - apiGroup: acme.io
      resource: things
      fromVersion: v1beta1
      toVersion: v1
      transformations:
        - {path: 'metadata.labels["acme.io/tier"]', action: rename, targetPath: 'metadata.labels["acme.io/level"]'}
        - {path: 'metadata.labels["acme.io/level"]', action: modify, matchValue: gold, replaceValue: high}
        - {path: metadata.labels.plain, action: rename, targetPath: metadata.labels.simple}
        - {path: metadata.labels.env, action: modify, matchValue: prod, replaceValue: production}
        - {path: metadata.labels.moved, action: move, targetPath: spec.moved}
        - {path: metadata.labels.first, action: rename, targetPath: metadata.labels.second}
        - {path: metadata.labels.second, action: rename, targetPath: metadata.labels.third}
        - {path: metadata.labels.rank, action: modify, type: integer}
        - {path: metadata.labels.odd, action: rename, targetPath: 'metadata.labels["no label"]'}
        - {path: metadata.labels.list, action: modify, matchValue: 'a,b', replaceValue: c}
`

// A selector on a label that a policy renames, or whose values it changes, selects the
// same objects under the server's names; what cannot be said so is refused, and nothing
// is sent.
func TestLabelSelectors(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(request) string {
		return ok(`{"apiVersion":"acme.io/v1","kind":"ThingList","items":[]}`)
	})
	r := start(t, map[string]string{"labels.yaml": labelRules}, nil, u)
	const path = "/apis/acme.io/v1beta1/namespaces/d/things"
	ask := func(method, selector string) answer {
		u.forget()
		return r.do(method, path+"?limit=5&labelSelector="+url.QueryEscape(selector)+"&x=%41", "", "")
	}
	f := func(client, server string) {
		t.Helper()
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			if got := ask(method, client); got.code != 200 {
				t.Errorf("%s of %s was answered %d: %s", method, client, got.code, got.body)
				continue
			}
			want := "/apis/acme.io/v1/namespaces/d/things?limit=5&labelSelector=" + url.QueryEscape(server) + "&x=%41"
			if sent := u.only().target; sent != want {
				t.Errorf("%s of %s was sent as\n%s, want\n%s", method, client, sent, want)
			}
		}
	}
	refused := func(client, want string) {
		t.Helper()
		want = fmt.Sprintf("cannot select by the label %s in acme.io/v1beta1: the policy labels/apiMigrationRules[0] %s; select in acme.io/v1", strings.Fields(client)[0], want)
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			if got := ask(method, client); got.code != 400 || !strings.Contains(got.body, `"message":"`+want+`"`) || len(u.got()) > 0 {
				t.Errorf("%s of %s was answered %d and sent %d times: %s\nwant %s", method, client, got.code, len(u.got()), got.body, want)
			}
		}
	}

	// No rule touches it: the bytes stay, in their order, and what is no selector too.
	f("b=x, a!=y,c in (z , y)", "b=x, a!=y,c in (z , y)")
	f("a=$", "a=$")
	f("", "")

	// Renamed. A value under the old name on the server is what the client sees only
	// where there is none under the new one.
	f("plain=x", "simple=x")
	f("app=x,plain", "app=x,simple")
	f("plain in (b,a)", "simple in (a,b)")
	f("plain notin (b,a)", "simple notin (a,b),plain notin (a,b)")
	f("plain!=x", "simple!=x,plain!=x")
	f("!plain", "!simple,!plain")
	f("plain>3", "simple>3")

	// The new name: the client sees it where the server has both, exchanged.
	f("simple in (a,b)", "plain in (a,b),simple")
	f("simple", "plain,simple")
	f("simple!=x", "plain!=x")
	f("!simple", "!plain")

	// Values. The server may have either value where the client sees the old one, and
	// never shows it the new one.
	f("env=prod", "env in (prod,production)")
	f("env in (prod,test)", "env in (prod,production,test)")
	f("env!=prod", "env notin (prod,production)")
	f("env notin (production,test)", "env!=test")
	f("env!=production", "")
	f("env=production", "env,!env")
	f("env=test", "env=test")
	f("env", "env")
	f("!env", "!env")
	f("list=c", "list,!list")
	f("list!=c,list=x", "list=x")

	// Both.
	f("acme.io/tier=gold", "acme.io/level in (gold,high)")
	f("acme.io/tier!=gold,app=x", "acme.io/level notin (gold,high),acme.io/tier!=gold,app=x")

	refused("env > 3", "changes its values, which then have another order")
	refused("moved = x", "makes spec.moved of metadata.labels.moved")
	refused("first = x", "renames it more than once")
	refused("second != x", "renames it more than once")
	refused("third", "renames it more than once")
	refused("rank = 1", "makes it an integer")
	refused("odd", "takes it for no label, which is no label's name")
}

// A watch selects as a list does, and a read of one object asks for nothing.
func TestLabelSelectorOfAWatch(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(request) string {
		return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n"
	})
	r := start(t, map[string]string{"labels.yaml": labelRules}, nil, u)
	r.do("GET", "/apis/acme.io/v1beta1/namespaces/d/things?watch=1&timeoutSeconds=0&labelSelector=plain%3Dx", "", "")
	if sent := u.got(); len(sent) == 0 || !strings.Contains(sent[0].target, "&labelSelector=simple%3Dx") {
		t.Errorf("the watch was sent as %q", sent)
	}
}
