package proxy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/proxy"
)

// bothThings are served in both versions.
var bothThings = []served{{"acme.io", "v1", "things", "Thing"}, {"acme.io", "v1beta1", "things", "Thing"}}

// heardRules are rules in audit mode that would always take place.
const heardRules = `apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: heard}
spec:
  apiMigrationRules:
    - apiGroup: acme.io
      resource: things
      fromVersion: v1beta1
      toVersion: v1
      when: always
      mode: audit
      transformations:
        - {path: spec.old, action: rename, targetPath: spec.new}
        - {path: spec.mode, action: modify, matchValue: a, replaceValue: b}
`

const heardPolicy = "heard/apiMigrationRules[0]"

// audited are the access log's words on the last request for path.
func (r *rig) audited(path string) (list []string) {
	r.t.Helper()
	for _, item := range r.lastAccess(path)["audited"].([]any) {
		list = append(list, item.(string))
	}
	return list
}

// What a conversion in audit mode would change is told by its paths. Not a byte of
// the request or the answer changes, and no value is told.
func TestAuditOfConversions(t *testing.T) {
	item := func(i int) string {
		return fmt.Sprintf(`{"metadata":{"name":"t%d"},"spec":{"mode":"b","secret":"hush-%d","late%d":{}}}`, i, i, i)
	}
	var items []string
	for i := range 12 {
		items = append(items, item(i))
	}
	list := `{"kind":"ThingList","apiVersion":"acme.io/v1beta1","metadata":{"resourceVersion":"9"},"items":[` + strings.Join(items, ",") + `]}`
	object := `{"apiVersion":"acme.io/v1beta1","kind":"Thing","metadata":{"name":"t"},"spec":{"mode":"b","secret":"hush"}}`
	var reply string
	u := record(t, "a", "1.32.13", bothThings, func(request) string { return reply })
	o := observe(t, map[string]string{"heard.yaml": heardRules}, u)

	const things = "/apis/acme.io/v1beta1/namespaces/d/things"
	for _, tt := range []struct {
		name, method, path, mediaType, body, reply string
		want                                       []string
	}{
		{
			"update", "PUT", things + "/update", "application/json", `{"apiVersion":"acme.io/v1beta1", "kind":"Thing","spec":{"old":"hush","mode":"a"}}`, ok(object),
			[]string{heardPolicy + ": change request spec.old, request spec.mode, request spec.new, answer spec.mode"},
		},
		{
			"merge patch", "PATCH", things + "/merge", mergePatchType, `{"spec":{"old":null}}`, ok(object),
			[]string{heardPolicy + ": change request spec.old, request spec.new, answer spec.mode"},
		},
		{
			"JSON patch", "PATCH", things + "/json", "application/json-patch+json", `[{"op":"remove","path":"/spec/old"}]`, ok(object),
			[]string{heardPolicy + ": change request [0].path, answer spec.mode"},
		},
		{"list", "GET", things, "", "", ok(list), []string{heardPolicy + ": change answer spec.mode"}},
		{"a body that stays", "PUT", things + "/stays", "application/json", `{"spec":{"x":1}}`, ok(`{"spec":{"x":1}}`), nil},
		{
			"chunked", "GET", things + "/chunked", "", "", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(object[:40]) + chunked(object[40:]) + "0\r\n\r\n",
			[]string{heardPolicy + ": change answer spec.mode"},
		},
		{"an answer of another form", "GET", things + "/text", "", "", respond(200, "text/plain", "hush"), []string{heardPolicy + ": unexamined"}},
		{"what cannot be converted", "PUT", things + "/both", "application/json", `{"spec":{"old":1,"new":2}}`, ok(`{}`), []string{heardPolicy + ": error"}},
		{"a huge answer", "GET", things + "/huge", "", "", ok(`{"x":"` + strings.Repeat("x", 300<<10) + `"}`), []string{heardPolicy + ": unexamined"}},
		{"delete", "DELETE", things + "/delete", "", "", ok(`{"kind":"Status","apiVersion":"v1","status":"Success"}`), nil},
		{"another kind", "PUT", things + "/t/scale", "application/json", `{"spec":{"mode":"a"}}`, ok(`{"spec":{"mode":"b"}}`), nil},
	} {
		u.forget()
		reply = tt.reply
		got := o.do(tt.method, tt.path, tt.mediaType, tt.body)
		if sent := u.only(); sent.body != tt.body || sent.target != tt.path {
			t.Errorf("%s: the server got %s %s", tt.name, sent.target, sent.body)
		}
		if !strings.Contains(tt.reply, "chunked") && !strings.HasSuffix(tt.reply, "\r\n\r\n"+got.body) || got.header.Get("Warning") != "" {
			t.Errorf("%s: the client got %.200s with warning %q", tt.name, got.body, got.header.Get("Warning"))
		}
		want := append([]string{heardPolicy + ": convert"}, tt.want...)
		if list := o.audited(tt.path); !slices.Equal(list, want) {
			t.Errorf("%s: audited %q, want %q", tt.name, list, want)
		}
	}
	if log := o.access.String(); strings.Contains(log, "hush") {
		t.Errorf("the access log has a value: %s", log)
	}

	o.shows(`mvp_policy_audit_effects_total{effect="change",policy="`+heardPolicy+`"} 5
mvp_policy_audit_effects_total{effect="convert",policy="`+heardPolicy+`"} 11
mvp_policy_audit_effects_total{effect="error",policy="`+heardPolicy+`"} 1
mvp_policy_audit_effects_total{effect="unexamined",policy="`+heardPolicy+`"} 2
`, "mvp_policy_audit_effects_total")
	counts, err := json.Marshal(o.proxy.PolicyCounts(heardPolicy, "file"))
	const want = `"wouldChange":["request spec.old","request spec.mode","request spec.new","answer spec.mode","request [0].path"]`
	if err != nil || !strings.Contains(string(counts), want) {
		t.Errorf("/policies would show %s, want %s", counts, want)
	}
}

const mergePatchType = "application/merge-patch+json"

// A route in audit mode tells where the request would have gone.
func TestAuditOfRoutes(t *testing.T) {
	a, b := record(t, "a", "1.32.13", pods, nil), record(t, "b", "1.31.14", pods, nil)
	o := observe(t, map[string]string{
		"10-enforced.route.cel": `upstream.name == 'a' ? 2 : 1`,
		"20-moves.mode.cel":     `'audit'`,
		"20-moves.route.cel":    `upstream.name == 'b' ? 5 : 0`,
		"30-stays.mode.cel":     `'audit'`,
		"30-stays.route.cel":    `upstream.name == 'a'`,
		"40-none.mode.cel":      `'audit'`,
		"40-none.match.cel":     `request.name == 'none'`,
		"40-none.route.cel":     `false`,
		"50-fails.mode.cel":     `'audit'`,
		"50-fails.match.cel":    `request.name == 'fails'`,
		"50-fails.route.cel":    `int(request.userAgent) > 0`,
	}, a, b)
	const path = "/api/v1/namespaces/d/pods/"
	always := []string{"20-moves: route", "30-stays: route", "20-moves: move to b"}
	for name, more := range map[string][]string{
		"p":     {},
		"none":  {"40-none: route", "40-none: move to none"},
		"fails": {"50-fails: route", "50-fails: error"},
	} {
		if got := o.do("GET", path+name, "", ""); got.code != http.StatusOK {
			t.Errorf("%s was answered %d %s", name, got.code, got.body)
		}
		got, want := o.audited(path+name), slices.Sorted(slices.Values(slices.Concat(always, more)))
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: audited %q, want %q", name, got, want)
		}
	}
	if n := len(b.got()); n > 0 {
		t.Errorf("%d requests went to b", n)
	}
}

// A body that is too large for an expression in audit mode goes through whole, also
// where its length shows only when the limit has been read.
func TestAuditOfHugeBody(t *testing.T) {
	u := record(t, "a", "1.32.13", things, nil)
	r := startWith(t, proxy.Config{MaxBody: 10_000}, map[string]string{
		"a.mode.cel": `'audit'`, "a.deny.cel": `object.x == 1 ? 'no' : ''`,
		"b.mode.cel": `'audit'`, "b.warn.cel": `object.y`,
	}, nil, u)
	var body strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&body, "%d,", i)
	}
	head := "POST /apis/acme.io/v1/namespaces/d/things HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
	for name, sent := range map[string]string{
		"chunked":     head + "Transfer-Encoding: chunked\r\n\r\n" + chunked(body.String()[:7000]) + chunked(body.String()[7000:]) + "0\r\n\r\n",
		"with length": head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", body.Len(), body.String()),
	} {
		u.forget()
		_, in := r.raw(sent)
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: answered %v, %v", name, resp, err)
		}
		if got := u.only().body; got != body.String() {
			t.Errorf("%s: of a body of %d bytes the server got %d", name, body.Len(), len(got))
		}
	}
}
