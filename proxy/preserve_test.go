package proxy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// keeper is a server that holds one object, as kube-apiserver does: an update of
// another resourceVersion than its own is a conflict.
type keeper struct {
	mu      sync.Mutex
	object  string // "": there is none
	version int
	between func() // runs once, after the next read
	denied  bool   // reads are forbidden
	lax     bool   // takes an update without a resourceVersion, as of Kubernetes' own kinds
}

func (k *keeper) answer(q request) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case q.method == http.MethodGet && k.denied:
		return respond(403, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"may not get"}`)
	case q.method == http.MethodPost:
		k.set(q.body)
		return ok(k.object)
	case k.object == "":
		return respond(404, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	case q.method == http.MethodGet:
		reply := ok(k.object)
		if k.between != nil {
			k.between()
			k.between = nil
		}
		return reply
	case q.method == http.MethodPut:
		return k.write(q.body, q.body)
	}
	patched, err := convert.MergePatchApply([]byte(k.object), []byte(q.body))
	if list, isList := jsonpatch.DecodePatch([]byte(q.body)); isList == nil {
		if patched, err = list.Apply([]byte(k.object)); err == nil {
			k.set(string(patched))
			return ok(k.object)
		}
	}
	if err != nil {
		return respond(400, "text/plain", err.Error())
	}
	return k.write(string(patched), q.body)
}

// write stores object unless the condition in sent does not hold.
func (k *keeper) write(object, sent string) string {
	var meta struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal([]byte(sent), &meta); err != nil {
		return respond(400, "text/plain", err.Error())
	}
	switch v := meta.Metadata.ResourceVersion; {
	case v == "" && !k.lax && object == sent:
		return respond(422, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	case v != "" && v != strconv.Itoa(k.version):
		return respond(409, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`)
	}
	k.set(object)
	return ok(k.object)
}

// set stores object under the next resourceVersion.
func (k *keeper) set(object string) {
	k.version++
	stored, err := convert.MergePatchApply([]byte(object), fmt.Appendf(nil, `{"metadata":{"resourceVersion":"%d"}}`, k.version))
	if err != nil {
		panic(err)
	}
	k.object = string(stored)
}

// spec is the spec of the object that the server holds.
func (k *keeper) spec(t *testing.T) string {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	var object struct{ Spec json.RawMessage }
	if err := json.Unmarshal([]byte(k.object), &object); err != nil {
		t.Fatal(err)
	}
	return string(object.Spec)
}

const preservingRules = `apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: things}
spec:
  apiMigrationRules:
    - apiGroup: acme.io
      resource: things
      fromVersion: v1beta1
      toVersion: v1
      preserve: [spec.tier, spec.limits.burst, status.phase]
      transformations:
        - {path: spec.old, action: rename, targetPath: spec.new}
        - {path: spec.tier, action: ensureFieldExistence, defaultValue: basic}
`

// preserving runs MVP with these policies before a keeper of spec.
func preserving(t *testing.T, k *keeper, spec string) (*rig, *recorder) {
	t.Helper()
	k.version = 4
	k.set(`{"apiVersion":"acme.io/v1","kind":"Thing","metadata":{"name":"t"},"spec":` + spec + `,"status":{"phase":"Up"}}`)
	u := record(t, "a", "1.32.13", things, k.answer)
	return start(t, map[string]string{"things.yaml": preservingRules}, nil, u), u
}

const thingPath = "/apis/acme.io/v1beta1/namespaces/d/things/t"

// put is what a typed client of the old version sends: only what its type has.
func put(version, spec string) string {
	return `{"apiVersion":"acme.io/v1beta1","kind":"Thing","metadata":{"name":"t"` + version + `},"spec":` + spec + `}`
}

// An update by a client that cannot know a field keeps it, without hindering
// whoever does know it.
func TestUpdatePreserves(t *testing.T) {
	const has = `{"new":1.50,"tier":"gold","limits":{"rate":1,"burst":12345678901234567890}}`
	tests := []struct{ name, has, sends, want string }{
		{"what the client leaves out", has, `{"old":2.50,"limits":{"rate":2}}`, `{"new":2.50,"tier":"gold","limits":{"rate":2,"burst":12345678901234567890}}`},
		{"not in an object that the client took away", has, `{"old":2}`, `{"new":2,"tier":"gold"}`},
		{"in an object that holds nothing the client knows", `{"tier":"gold","limits":{"burst":7}}`, `{"old":2}`, `{"new":2,"tier":"gold","limits":{"burst":7}}`},
		{"in an object that is null", `{"tier":"gold","limits":{"burst":7}}`, `{"limits":null}`, `{"limits":{"burst":7},"tier":"gold"}`},
		{"not over a client's own value", has, `{"tier":"silver","limits":{"burst":1}}`, `{"tier":"silver","limits":{"burst":1}}`},
		{"null is a value", `{"tier":null}`, `{}`, `{"tier":null}`},
		{"nothing where there is nothing", `{}`, `{"old":2}`, `{"new":2,"tier":"basic"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := &keeper{}
			r, _ := preserving(t, k, tt.has)
			got := r.do("PUT", thingPath, "application/json", put(`,"resourceVersion":"5"`, tt.sends))
			if spec := k.spec(t); got.code != 200 || !sameJSON(spec, tt.want) {
				t.Errorf("answered %d %s\nstored %s\nwant   %s", got.code, got.body, spec, tt.want)
			}
		})
	}
}

// What another client changed since the old one has read is never undone: the
// update is a conflict, whether the change came before MVP's own read or after.
func TestUpdateRestoresNothingStale(t *testing.T) {
	const mine = `{"old":2}`
	t.Run("before the read", func(t *testing.T) {
		k := &keeper{}
		r, u := preserving(t, k, `{"tier":"gold"}`)
		got := r.do("PUT", thingPath, "application/json", put(`,"resourceVersion":"4"`, mine))
		wantStatus(t, got)
		if got.code != 409 || !strings.Contains(got.body, `Operation cannot be fulfilled on things.acme.io \"t\": the object has been modified`) {
			t.Errorf("answered %d %s", got.code, got.body)
		}
		if sent := u.only(); sent.method != "GET" {
			t.Errorf("sent %s %s", sent.method, sent.target)
		}
	})
	t.Run("after the read", func(t *testing.T) {
		k := &keeper{}
		r, _ := preserving(t, k, `{"tier":"gold"}`)
		k.between = func() { k.set(strings.Replace(k.object, "gold", "silver", 1)) }
		got := r.do("PUT", thingPath, "application/json", put(`,"resourceVersion":"5"`, mine))
		if spec := k.spec(t); got.code != 409 || spec != `{"tier":"silver"}` {
			t.Errorf("answered %d %s, stored %s", got.code, got.body, spec)
		}
	})
	t.Run("without a condition of the client's", func(t *testing.T) {
		k := &keeper{lax: true, version: 4}
		k.set(`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"t"},"spec":{"tier":"gold"}}`)
		k.between = func() { k.set(strings.Replace(k.object, "gold", "silver", 1)) }
		u := record(t, "a", "1.32.13", []served{{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"}}, k.answer)
		r := start(t, map[string]string{
			"pdb.convert.cel": `{'resource': 'poddisruptionbudgets', 'from': 'policy/v1beta1', 'to': 'policy/v1', 'preserve': ['spec.tier']}`,
		}, nil, u)
		got := r.do("PUT", "/apis/policy/v1beta1/namespaces/d/poddisruptionbudgets/t?fieldManager=x", "application/json",
			`{"apiVersion":"policy/v1beta1","kind":"PodDisruptionBudget","metadata":{"name":"t"},"spec":{"minAvailable":1}}`)
		if spec := k.spec(t); got.code != 200 || !sameJSON(spec, `{"minAvailable":1,"tier":"silver"}`) {
			t.Errorf("answered %d %s, stored %s", got.code, got.body, spec)
		}
	})
}

// What a server refuses, it refuses through the preservation, too.
func TestUpdatePreservesRefused(t *testing.T) {
	f := func(k *keeper, gone bool, version string, code int, methods string) {
		t.Helper()
		r, u := preserving(t, k, `{"tier":"gold"}`)
		if gone {
			k.object = ""
		}
		got := r.do("PUT", thingPath, "application/json", put(version, `{}`))
		sent := ""
		for _, q := range u.got() {
			sent += q.method + " "
		}
		if got.code != code || strings.TrimSpace(sent) != methods {
			t.Errorf("answered %d %s after %s, want %d after %s", got.code, got.body, sent, code, methods)
		}
	}

	// A custom resource is never updated without a condition.
	f(&keeper{}, false, ``, 422, "GET PUT")
	// Who may not read the object cannot have its fields preserved.
	f(&keeper{denied: true}, false, `,"resourceVersion":"5"`, 403, "GET")
	// There is nothing to preserve: the server may create it.
	f(&keeper{}, true, `,"resourceVersion":"5"`, 404, "GET PUT")
}

// The status is written through its subresource and read from the object.
func TestStatusUpdatePreserves(t *testing.T) {
	k := &keeper{}
	r, u := preserving(t, k, `{}`)
	r.do("PUT", thingPath+"/status", "application/json", strings.Replace(put(`,"resourceVersion":"5"`, `{}`), `"spec"`, `"status":{"n":1},"spec"`, 1))
	sent := u.got()
	if len(sent) != 2 || sent[0].target != "/apis/acme.io/v1/namespaces/d/things/t" || sent[1].target != sent[0].target+"/status" ||
		!strings.Contains(sent[1].body, `"status":{"n":1,"phase":"Up"}`) {
		t.Errorf("sent %v", raws(sent))
	}
}

// A patch keeps what it does not name, also where it replaces the object around it.
func TestPatchPreserves(t *testing.T) {
	const has = `{"new":1,"tier":"gold"}`
	tests := []struct{ name, mediaType, patch, want string }{
		{"merge patch", "application/merge-patch+json", `{"spec":{"old":2}}`, `{"new":2,"tier":"gold"}`},
		{"merge patch that deletes it", "application/merge-patch+json", `{"spec":{"tier":null}}`, `{"new":1}`},
		{"JSON patch around it", "application/json-patch+json", `[{"op":"replace","path":"/spec","value":{"old":2}}]`, `{"new":2,"tier":"gold"}`},
		{
			"JSON patch of the whole", "application/json-patch+json",
			`[{"op":"replace","path":"","value":` + put(`,"resourceVersion":"5"`, `{"old":3}`) + `}]`, `{"new":3,"tier":"gold"}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := &keeper{}
			r, _ := preserving(t, k, has)
			got := r.do("PATCH", thingPath, tt.mediaType, tt.patch)
			if spec := k.spec(t); got.code != 200 || !sameJSON(spec, tt.want) {
				t.Errorf("answered %d %s\nstored %s\nwant   %s", got.code, got.body, spec, tt.want)
			}
		})
	}
}
