package proxy_test

import (
	"net/http"
	"strings"
	"testing"
)

// ignored is what the access log says of policies that were passed over for the last
// request for path.
func (r *rig) ignored(path string) string {
	r.t.Helper()
	list, _ := r.lastAccess(path)["ignored"].([]any)
	texts := make([]string, len(list))
	for i, item := range list {
		texts[i] = item.(string)
	}
	return strings.Join(texts, "; ")
}

// A policy that fails on a request and says ignore is passed over as a whole; what
// the client did wrong stays the client's error.
func TestFailurePolicyOfExpressions(t *testing.T) {
	a, b := record(t, "a", "1.32.13", pods, nil), record(t, "b", "1.31.14", pods, nil)
	o := observe(t, map[string]string{
		"deny.failure.cel":  `'ignore'`,
		"deny.match.cel":    `request.verb in ['create', 'get']`,
		"deny.deny.cel":     `object.spec.forbidden ? 'forbidden' : ''`,
		"fails.match.cel":   `request.name == 'fails'`,
		"fails.deny.cel":    `request.query['x'][0]`,
		"route.failure.cel": `'ignore'`,
		"route.match.cel":   `request.name == 'route'`,
		"route.warn.cel":    `'not to be seen'`,
		"route.route.cel":   `upstream.name == 'a' ? 1 : int(request.userAgent)`,
		"where.route.cel":   `upstream.name == 'b' ? 2 : 1`,
	}, a, b)
	const path = "/api/v1/namespaces/" // each has one of its own, for the access log
	for _, tt := range []struct {
		name, method, path, body string
		code                     int
		ignored, want            string
	}{
		{"denied", "POST", path + "a/pods", `{"spec":{"forbidden":true}}`, 403, "", "forbidden"},
		{"allowed", "POST", path + "b/pods", `{"spec":{"forbidden":false}}`, 200, "", ""},
		{"passed over", "POST", path + "c/pods", `{}`, 200, "deny: expression at deny.deny.cel:1:12", ""},
		{"without a body it says nothing", "GET", path + "d/pods/p", "", 200, "", ""},
		{"a body that is none", "POST", path + "e/pods", `{"spec":`, 400, "", "not valid JSON"},
		{"a key that stands twice", "POST", path + "f/pods", `{"spec":{"forbidden":true},"spec":{}}`, 400, "", "stands twice"},
		{"the default", "GET", path + "d/pods/fails", "", 500, "", `cannot evaluate deny of policy \"fails\"`},
		{"a route", "GET", path + "d/pods/route", "", 200, "route: expression at route.route.cel:1:31", ""},
	} {
		a.forget()
		b.forget()
		got := o.do(tt.method, tt.path, "application/json", tt.body)
		if got.code != tt.code || !strings.Contains(got.body, tt.want) || got.header.Get("Warning") != "" {
			t.Errorf("%s: answered %d %s, warning %q, want %d with %q", tt.name, got.code, got.body, got.header.Get("Warning"), tt.code, tt.want)
		}
		if tt.code == 200 && b.only().body != tt.body || len(a.got()) > 0 {
			t.Errorf("%s: a got %q, b %q", tt.name, a.got(), b.got())
		}
		if log := strings.ReplaceAll(o.ignored(tt.path), dirOf(o.ignored(tt.path)), ""); log != tt.ignored {
			t.Errorf("%s: the access log says %q of what was passed over, want %q", tt.name, log, tt.ignored)
		}
	}
	o.shows(`mvp_policy_ignored_total{policy="deny",reason="expression"} 1
mvp_policy_ignored_total{policy="route",reason="expression"} 1
`, "mvp_policy_ignored_total")
}

// dirOf is the directory that a position in text has.
func dirOf(text string) string {
	_, pos, _ := strings.Cut(text, " at ")
	return pos[:strings.LastIndex(pos, "/")+1]
}

// A conversion that fails on the way there is passed over where the request can be
// answered without it: by another policy, or by a server as it is.
func TestFailurePolicyOfConversions(t *testing.T) {
	u := record(t, "a", "1.32.13", bothThings, func(q request) string {
		if strings.HasSuffix(q.target, "/answer") {
			return ok(newThing)
		}
		return ok("{}")
	})
	old := record(t, "b", "1.32.13", things, nil)
	files := map[string]string{
		"10-fails.failure.cel":  `'ignore'`,
		"10-fails.match.cel":    `request.name != 'second'`,
		"10-fails.convert.cel":  `{'resource': 'things', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1', 'when': 'always'}`,
		"10-fails.request.jq":   `if .spec.n then . else error("hush") end`,
		"10-fails.response.jq":  `error("hush")`,
		"20-second.match.cel":   `request.name in ['second', 'both']`,
		"20-second.convert.cel": `{'resource': 'things', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1', 'when': 'always'}`,
		"20-second.request.jq":  `.spec.second = true`,
	}
	const path, body = "/apis/acme.io/v1beta1/namespaces/d/things/", `{"apiVersion":"acme.io/v1beta1", "kind":"Thing","spec":{"x":1}}`
	served, unserved := observe(t, files, u), start(t, files, nil, old)

	for _, tt := range []struct {
		name, body string
		sent, want string
		code       int
		ignored    string
	}{
		{"as-it-is", body, path + "as-it-is " + body, "{}", 200, "10-fails: program"},
		{"both", body, strings.Replace(path, "v1beta1", "v1", 1) + `both {"apiVersion":"acme.io/v1", "kind":"Thing","spec":{"x":1,"second":true}}`, "", 200, "10-fails: program"},
		{"client", `{"apiVersion":"acme.io/v2"}`, "", "does not match the expected API version", 400, ""},
		{"answer", strings.Replace(body, "x", "n", 1), "-", "PolicyFailed", 500, ""}, // a server has executed it
	} {
		u.forget()
		got := served.do("PUT", path+tt.name, "application/json", tt.body)
		sent := ""
		for _, q := range u.got() {
			sent += q.target + " " + q.body
		}
		if got.code != tt.code || !strings.Contains(got.body, tt.want) || tt.sent != "-" && sent != tt.sent {
			t.Errorf("%s: answered %d %s, sent %s, want %d, %s", tt.name, got.code, got.body, sent, tt.code, tt.sent)
		}
		if log, _, _ := strings.Cut(served.ignored(path+tt.name), " at "); log != tt.ignored {
			t.Errorf("%s: the access log says %q of what was passed over, want %q", tt.name, log, tt.ignored)
		}
	}
	served.shows("mvp_policy_ignored_total{policy=\"10-fails\",reason=\"program\"} 2\n", "mvp_policy_ignored_total")

	// Nobody serves the version: there is nothing to go on with.
	got := unserved.do("PUT", path+"as-it-is", "application/json", body)
	if got.code != http.StatusInternalServerError || !strings.Contains(got.body, `10-fails.request.jq:1:1: policy 10-fails`) || len(old.got()) > 0 {
		t.Errorf("unserved: answered %d %s, and sent %q", got.code, got.body, old.got())
	}
	if log := unserved.ignored(path + "as-it-is"); log != "" {
		t.Errorf("unserved: the access log says %q of what was passed over", log)
	}
	if log := served.access.String() + unserved.access.String(); strings.Contains(log, "hush") {
		t.Errorf("the access log has what the program said: %s", log)
	}
}
