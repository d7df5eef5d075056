package objects

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/policies"
)

// prefer is a spec whose only policy prefers a server.
func prefer(version string) map[string]any {
	return map[string]any{"spec": map[string]any{"apiRoutingRules": []any{map[string]any{
		"apiGroup": "apps", "resource": "deployments", "clientVersion": "v1", "preferApiServerVersion": version,
	}}}}
}

// converts is a spec whose only policy converts a resource.
func converts(resource string) map[string]any {
	return map[string]any{"spec": map[string]any{"apiMigrationRules": []any{map[string]any{
		"apiGroup": "example.com", "resource": resource, "fromVersion": "v1", "toVersion": "v2",
	}}}}
}

func configMap(label string, data map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": map[string]any{"mvp": label}}, "data": data}
}

// condition is the one of an object as it is stored: its status, reason and message.
func (s *apiserver) condition(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[rulesPath+"/"+name]
	status, _ := o["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	if len(conditions) != 1 {
		return fmt.Sprintf("%d conditions", len(conditions))
	}
	c := conditions[0].(map[string]any)
	if fmt.Sprint(c["observedGeneration"]) != fmt.Sprint(o["metadata"].(map[string]any)["generation"]) {
		return "of another generation"
	}
	return fmt.Sprintf("%v %v %v: %v", c["type"], c["status"], c["reason"], c["message"])
}

func (r *replica) waitCondition(s *apiserver, name, want string) {
	r.t.Helper()
	got := ""
	defer func() {
		if r.t.Failed() {
			r.t.Logf("the condition of %s is %s", name, got)
		}
	}()
	r.waitFor(name+" has the condition "+want, func() bool { got = s.condition(name); return got == want })
}

func TestTransformationRules(t *testing.T) {
	s := newAPIServer(t)
	r := s.start(t, nil)

	// A cluster without the definition has no objects, which is known then.
	r.waitFor("ready", func() bool { return r.Ready() == nil })
	r.waitFor("the log tells", func() bool { return strings.Contains(r.log.String(), "install its CustomResourceDefinition") })
	s.install()
	s.put(rulesPath+"/a", prefer("v1.32.y"))
	r.waitFor("the object is found", func() bool { r.Look(); return r.store.Status().Policies == 1 })
	r.waitLive("transformationrules/a/apiRoutingRules[0]")
	r.waitCondition(s, "a", "Accepted True Accepted: 1 policy is live")
	write := s.writes("PATCH", rulesPath)
	if len(write) != 1 || !strings.HasPrefix(write[0], "PATCH "+rulesPath+"/a/status?fieldManager=mvp&force=true {") {
		t.Errorf("writes are %q", write)
	}
	if n := strings.Count(r.log.String(), "install its"); n != 1 {
		t.Errorf("that there is no definition is logged %d times", n)
	}

	// What is not accepted changes nothing, and is told at its place.
	s.put(rulesPath+"/b", prefer("newest"))
	r.waitCondition(s, "b", `Accepted False Invalid: spec.apiRoutingRules[0].preferApiServerVersion: cannot read server version "newest": want "v1.32.y", "v1.32" or "v1.32.4"`+
		"\nUntil that is mended, nothing of the object is live.")
	r.waitLive("transformationrules/a/apiRoutingRules[0]")
	s.put(rulesPath+"/b", prefer("v1.31"))
	r.waitCondition(s, "b", "Accepted True Accepted: 1 policy is live")
	r.waitLive("transformationrules/a/apiRoutingRules[0]", "transformationrules/b/apiRoutingRules[0]")
	generation := r.store.Status().Generation

	// What was accepted stays.
	s.put(rulesPath+"/a", prefer("oldest"))
	r.waitCondition(s, "a", `Accepted False Invalid: spec.apiRoutingRules[0].preferApiServerVersion: cannot read server version "oldest": want "v1.32.y", "v1.32" or "v1.32.4"`+
		"\nUntil that is mended, what was accepted before stays: 1 policy is live.")
	r.waitLive("transformationrules/a/apiRoutingRules[0]", "transformationrules/b/apiRoutingRules[0]")
	if got := r.store.Status().Generation; got != generation {
		t.Errorf("an object that is not accepted makes generation %d of %d", got, generation)
	}

	// Neither the condition nor an unrelated change is a cause to write again.
	before := len(s.writes("PATCH", rulesPath))
	s.put(mapsPath+"/m", configMap("yes", map[string]any{"m.deny.cel": "''"}))
	r.waitFor("the ConfigMap is live", func() bool { return r.store.Status().Policies == 3 })
	r.waitFor("nothing is left to do", func() bool { return len(r.changed)+len(r.dirty) == 0 })
	s.put(rulesPath+"/c", prefer("v1.30")) // written after whatever was to be written before
	r.waitCondition(s, "c", "Accepted True Accepted: 1 policy is live")
	if writes := s.writes("PATCH", rulesPath); len(writes) != before+1 {
		t.Errorf("%d writes, want %d and one: %q", len(writes), before, writes[before:])
	}

	s.remove(rulesPath + "/a")
	s.remove(rulesPath + "/b")
	s.remove(rulesPath + "/c")
	r.waitLive("configmaps/kube-system/m/m")
	s.remove(crdPath)
}

// A condition keeps the time of its last transition, and what another writes there is
// put right.
func TestConditionTimes(t *testing.T) {
	s := newAPIServer(t)
	s.install()
	o := prefer("newest")
	const since = "2026-01-02T03:04:05Z"
	o["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Accepted", "status": "False", "reason": "Invalid", "message": "Something else.", "observedGeneration": 1, "lastTransitionTime": since,
	}}}
	s.put(rulesPath+"/a", o)
	r := s.start(t, nil)
	r.waitFor("the message is right", func() bool { return strings.Contains(s.condition("a"), "cannot read server version") })
	if got := s.object(rulesPath + "/a"); !strings.Contains(got, since) {
		t.Errorf("the time of the last transition changed: %s", got)
	}
	s.put(rulesPath+"/a", prefer("v1.32"))
	r.waitCondition(s, "a", "Accepted True Accepted: 1 policy is live")
	if got := s.object(rulesPath + "/a"); strings.Contains(got, since) {
		t.Errorf("the time of the last transition did not change: %s", got)
	}
}

// Files win over objects, and older objects over newer ones.
func TestConflicts(t *testing.T) {
	s := newAPIServer(t)
	s.install()
	s.put(rulesPath+"/z-old", converts("things"))
	s.put(rulesPath+"/a-new", converts("things"))
	var dir string
	r := s.start(t, func(cfg *Config) {
		dir = t.TempDir()
		cfg.Store = newStore(t, dir)
	})
	r.store = r.cfg.Store
	stop := follow(t, r.store)
	defer stop()
	r.waitLive("transformationrules/z-old/apiMigrationRules[0]")
	r.waitCondition(s, "a-new", `Accepted False Conflict: spec.apiMigrationRules[0]: policy "transformationrules/z-old/apiMigrationRules[0]" at transformationrules/z-old: spec.apiMigrationRules[0] already converts example.com/v1 things; give the two different matches, or remove one`+
		"\nUntil that is mended, nothing of the object is live.")

	file := filepath.Join(dir, "zz.yaml")
	document := "apiVersion: mvp.k8s.io/v1\nkind: TransformationRules\nmetadata: {name: zz}\nspec: {apiMigrationRules: [{apiGroup: example.com, resource: things, fromVersion: v1, toVersion: v3}]}\n"
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	r.waitLive("zz/apiMigrationRules[0]")
	r.waitFor("the older object is in conflict, too", func() bool {
		return strings.HasPrefix(s.condition("z-old"), `Accepted False Conflict: spec.apiMigrationRules[0]: policy "zz/apiMigrationRules[0]" at `+file+":4:28 already converts")
	})

	// Where a file has a mistake, objects go on.
	if err := os.WriteFile(file, []byte(strings.Replace(document, "things", "Things", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	r.waitFor("an event tells of the file", func() bool {
		events := s.writes("POST", eventsPath+"kube-system/events")
		return strings.Contains(strings.Join(events, "\n"), `"reason":"ReloadFailed"`) && strings.Contains(strings.Join(events, "\n"), "zz.yaml:4:")
	})
	s.put(rulesPath+"/other", converts("others"))
	r.waitLive("zz/apiMigrationRules[0]", "transformationrules/other/apiMigrationRules[0]")
	if r.store.Status().Err == nil {
		t.Error("a good object makes the mistake of a file forgotten")
	}
	if err := os.WriteFile(file, []byte(strings.Replace(document, "things", "sheep", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	r.waitLive("zz/apiMigrationRules[0]", "transformationrules/other/apiMigrationRules[0]", "transformationrules/z-old/apiMigrationRules[0]")
	r.waitCondition(s, "z-old", "Accepted True Accepted: 1 policy is live")
	if err := r.store.Status().Err; err != nil {
		t.Errorf("the files are right and the store says %v", err)
	}
}

func TestConfigMaps(t *testing.T) {
	s := newAPIServer(t)
	s.put(mapsPath+"/unlabelled", configMap("no", map[string]any{"x.deny.cel": "'x'"}))
	s.put(mapsPath+"/rules", configMap("yes", map[string]any{
		"10-a.deny.cel": "'no'", "10-a.match.cel": "request.verb == 'get'", "README.md": "Some words.",
		"rules.yaml": "apiVersion: mvp.k8s.io/v1\nkind: TransformationRules\nmetadata: {name: doc}\nspec: {apiRoutingRules: [{apiGroup: apps, resource: deployments, clientVersion: v1, preferApiServerVersion: v1.32}]}\n",
	}))
	r := s.start(t, func(cfg *Config) { cfg.Rules = false })
	r.waitLive("configmaps/kube-system/rules/10-a", "configmaps/kube-system/rules/doc/apiRoutingRules[0]")

	// A mistake is told by an event about the ConfigMap, at its line.
	s.put(mapsPath+"/rules", configMap("yes", map[string]any{"10-a.deny.cel": "'no'\n+ x"}))
	r.waitFor("an event tells", func() bool { return len(s.writes("POST", eventsPath)) == 1 })
	event := s.writes("POST", eventsPath)[0]
	for _, want := range []string{
		eventsPath + "kube-system/events", `"reason":"Invalid"`, `"type":"Warning"`, `"kind":"ConfigMap","namespace":"kube-system","name":"rules"`,
		`10-a.deny.cel:2:3: undeclared reference to \"x\"`,
	} {
		if !strings.Contains(event, want) {
			t.Errorf("the event %s\nhas no %s", event, want)
		}
	}
	r.waitLive("configmaps/kube-system/rules/10-a", "configmaps/kube-system/rules/doc/apiRoutingRules[0]")
	s.put(mapsPath+"/rules", configMap("yes", map[string]any{"10-a.deny.cel": "'mended'"}))
	r.waitLive("configmaps/kube-system/rules/10-a")
	r.waitFor("an event tells that it is mended", func() bool {
		events := s.writes("POST", eventsPath)
		return len(events) == 2 && strings.Contains(events[1], `"type":"Normal"`)
	})
	if writes := s.writes("PATCH", ""); len(writes) != 0 {
		t.Errorf("ConfigMaps were written: %q", writes)
	}
	s.put(mapsPath+"/rules", map[string]any{"metadata": map[string]any{"labels": map[string]any{"mvp": "yes"}}, "binaryData": map[string]any{"10-a.deny.cel": "/w=="}})
	r.waitFor("what is no text is refused", func() bool {
		o := r.store.Status().Objects
		return len(o) == 1 && !o[0].Accepted() && strings.Contains(o[0].Err.Error(), "configmaps/kube-system/rules/10-a.deny.cel:1:1: byte 0xff is not text")
	})
}

// One replica writes. When it is cut off, another one does.
func TestLease(t *testing.T) {
	s := newAPIServer(t)
	s.install()
	s.put(rulesPath+"/a", prefer("v1.32"))
	cut := &cuttable{}
	first := s.start(t, func(cfg *Config) { cut.next, cfg.Cluster = cfg.Cluster, cut })
	first.waitFor("the first replica leads", first.Leads)
	first.waitCondition(s, "a", "Accepted True Accepted: 1 policy is live")
	second := s.start(t, nil)
	second.waitLive("transformationrules/a/apiRoutingRules[0]")
	if second.Leads() {
		t.Error("two replicas lead")
	}
	cut.off.Store(true)
	first.waitFor("the first replica does not lead any more", func() bool { return !first.Leads() })
	second.waitFor("the second replica leads", second.Leads)
	s.put(rulesPath+"/b", prefer("v1.31"))
	second.waitCondition(s, "b", "Accepted True Accepted: 1 policy is live")

	// A replica that is stopped gives the Lease away.
	cut.off.Store(false)
	second.stop()
	first.waitFor("the first replica leads again", first.Leads)
	first.waitLive("transformationrules/a/apiRoutingRules[0]", "transformationrules/b/apiRoutingRules[0]")
}

// cuttable is a way to the cluster that can be cut.
type cuttable struct {
	next http.RoundTripper
	off  atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (c *cuttable) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.off.Load() {
		return nil, errors.New("the way is cut")
	}
	return c.next.RoundTrip(r)
}

// Without an API server MVP is not ready, for a while; what is known stays.
func TestServerAway(t *testing.T) {
	s := newAPIServer(t)
	s.install()
	s.put(rulesPath+"/a", prefer("v1.32"))
	s.refuse("GET", "/", http.StatusServiceUnavailable)
	r := s.start(t, func(cfg *Config) { cfg.Timeout = time.Hour })
	r.waitFor("the reason is told", func() bool {
		err := r.Ready()
		return err != nil && strings.Contains(err.Error(), "the policy objects of the cluster are not known yet: cannot list ") &&
			strings.Contains(err.Error(), "the test says ServiceUnavailable")
	})
	s.refuse("GET", "/", 0)
	r.waitLive("transformationrules/a/apiRoutingRules[0]")
	r.waitFor("ready", func() bool { return r.Ready() == nil })

	s.refuse("GET", "/", http.StatusForbidden)
	r.waitFor("the log tells", func() bool {
		s.CloseClientConnections() // again: a watch may just have begun on one that was not open yet
		return strings.Contains(r.log.String(), "cannot list TransformationRules")
	})
	r.waitLive("transformationrules/a/apiRoutingRules[0]")

	// It does not wait for ever.
	late := s.start(t, func(cfg *Config) { cfg.Timeout = 10 * time.Millisecond })
	late.waitFor("ready without the objects", func() bool { return late.Ready() == nil })
	late.waitFor("the log tells", func() bool { return strings.Contains(late.log.String(), "MVP is ready without them") })
}

// Rights that are missing are told once each, and cost nothing else.
func TestForbidden(t *testing.T) {
	s := newAPIServer(t)
	s.install()
	s.put(rulesPath+"/a", prefer("newest"))
	s.put(rulesPath+"/b", prefer("v1.32"))
	s.refuse("PATCH", rulesPath, http.StatusForbidden)
	s.refuse("POST", leasesPath, http.StatusForbidden)
	r := s.start(t, nil)
	r.waitLive("transformationrules/b/apiRoutingRules[0]")
	r.waitFor("it tried to have the Lease, and again", func() bool { return len(s.writes("POST", leasesPath)) > 2 })
	s.refuse("POST", leasesPath, 0)
	r.waitFor("it tried to write both", func() bool { return len(s.writes("PATCH", rulesPath)) >= 2 })
	for _, what := range []string{"cannot hold the Lease kube-system/mvp-policy-objects", "cannot write the status of TransformationRules"} {
		if n := strings.Count(r.log.String(), what); n != 1 {
			t.Errorf("%q is logged %d times:\n%s", what, n, r.log)
		}
	}
	s.refuse("PATCH", rulesPath, 0)
	r.waitCondition(s, "b", "Accepted True Accepted: 1 policy is live")
}

func TestParseConfigMaps(t *testing.T) {
	f := func(s string, want ConfigMaps, wantErr string) {
		t.Helper()
		got, err := ParseConfigMaps(s)
		if got != want || (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("ParseConfigMaps(%q) = %v, %v; want %v, %q", s, got, err, want, wantErr)
		}
	}
	f("kube-system/mvp.k8s.io/policies=true", ConfigMaps{"kube-system", "mvp.k8s.io/policies=true"}, "")
	f("a/b", ConfigMaps{"a", "b"}, "")
	f("kube-system", ConfigMaps{}, "want NAMESPACE/SELECTOR")
	f("/a=b", ConfigMaps{}, "want NAMESPACE/SELECTOR")
	f("a/", ConfigMaps{}, "want NAMESPACE/SELECTOR")
	f("a/b=c=d", ConfigMaps{}, `the selector "b=c=d"`)
	f("a/ ", ConfigMaps{}, "takes every ConfigMap")
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	store, log := newStore(t), discard()
	f := func(cfg Config, want string) {
		t.Helper()
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f(Config{Store: store, Log: log}, "must be set")
	f(Config{Store: store, Log: log, Cluster: http.DefaultTransport}, "LeaseNamespace")
	f(Config{Store: store, Log: log, Cluster: http.DefaultTransport, LeaseNamespace: "a"}, "neither TransformationRules nor ConfigMaps")
}

// An event's note and a condition's message fit into what the API takes.
func TestBounds(t *testing.T) {
	s := &policies.ObjectStatus{Name: "transformationrules/a", Reason: policies.ObjectInvalid}
	for i := range 1000 {
		s.Err = append(s.Err, mistakeAt(fmt.Sprintf("transformationrules/a: spec.é[%d]", i), strings.Repeat("é", 50)))
	}
	text := message(s)
	if len(text) > 32<<10 || !strings.Contains(text, " more mistakes\n") {
		t.Errorf("the message has %d bytes", len(text))
	}
	if note := cut(text); len(note) > 1024 || !strings.HasSuffix(note, "é…") && !strings.HasSuffix(note, "…") {
		t.Errorf("the note has %d bytes", len(note))
	}
}
