package proxy_test

import (
	"fmt"
	"strings"
	"testing"
)

// The access log names upstream, policies and conversion, and where a policy
// failed; nothing that a client sent as a query, a credential or a body.
func TestAccessLog(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(request) string { return ok(newThing) })
	r := start(t, map[string]string{
		"things.yaml": strings.Replace(rules, "{path: spec.old, action: rename, targetPath: spec.new}",
			"{path: spec.old, action: rename, targetPath: spec.new, type: integer}", 1),
		"warn.match.cel":  `request.verb == 'create' && int(object.spec.old) >= 0`,
		"warn.warn.cel":   `'seen'`,
		"heard.match.cel": `request.name == 'told'`,
		"heard.deny.cel":  `'I saw ' + string(object.spec.x)`,
		"heard.mode.cel":  `'audit'`,
		"told.match.cel":  `request.name == 'told'`,
		"told.deny.cel":   `'I saw ' + string(object.spec.x)`,
	}, nil, u)

	r.do("GET", "/apis/acme.io/v1beta1/namespaces/d/things/t?x=hush", "", "", "Authorization", "Bearer hush", "User-Agent", "kubectl/v1.20")
	record := r.lastAccess("/apis/acme.io/v1beta1/namespaces/d/things/t")
	for key, want := range map[string]any{
		"method": "GET", "verb": "get", "status": 200.0, "upstream": "a", "userAgent": "kubectl/v1.20",
		"conversion": "acme.io/v1beta1 to acme.io/v1",
	} {
		if record[key] != want {
			t.Errorf("the record's %s is %v, want %v", key, record[key], want)
		}
	}
	if policies, ok := record["policies"].([]any); !ok || len(policies) != 1 || policies[0] != "things/apiMigrationRules[0]" {
		t.Errorf("the record's policies are %v", record["policies"])
	}

	r.do("PUT", "/apis/acme.io/v1beta1/namespaces/d/things/bad", "application/json",
		`{"apiVersion":"acme.io/v1beta1","kind":"Thing","spec":{"old":"hush"}}`)
	if got := r.lastAccess("/apis/acme.io/v1beta1/namespaces/d/things/bad")["error"].(string); !strings.Contains(got, "things.yaml:11:") || !strings.Contains(got, "spec.old") {
		t.Errorf("the log does not say where the conversion failed: %s", got)
	}
	r.do("POST", "/apis/acme.io/v1beta1/namespaces/d/things", "application/json",
		`{"apiVersion":"acme.io/v1beta1","kind":"Thing","spec":{"old":"hush"}}`)
	if got := r.lastAccess("/apis/acme.io/v1beta1/namespaces/d/things")["error"].(string); !strings.Contains(got, "warn.match.cel:1:") {
		t.Errorf("the log does not say where the policy failed: %s", got)
	}
	r.do("GET", "/apis/acme.io/v1/namespaces/d/things/t", "", "")
	r.do("PUT", "/apis/acme.io/v1/namespaces/d/things/told", "application/json", `{"spec":{"x":"hush"}}`)
	if got := r.lastAccess("/apis/acme.io/v1/namespaces/d/things/told"); !strings.Contains(got["error"].(string), `denied by policy "told"`) ||
		!strings.Contains(fmt.Sprint(got["audited"]), "heard: deny") {
		t.Errorf("the record of a denial is %v", got)
	}
	if strings.Contains(r.access.String(), "hush") {
		t.Errorf("the log shows what a client sent:\n%s", r.access.String())
	}
}
