package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mixed-version-proxy/mvp/bench/lab/clients"
)

// widgetVerbs are what people do with kubectl. What only later ones have is in `knows`
// within: subresources came with 1.24, kubectl wait for a field with 1.23 and for a
// creation with 1.31.
var widgetVerbs = []struct {
	name string
	run  func(user)
}{
	{"create", testCreateVerb},
	{"apply", testApplyVerb},
	{"apply server-side", testServerSideApplyVerb},
	{"diff", testDiffVerb},
	{"edit", testEditVerb},
	{"patch", testPatchVerb},
	{"label and annotate", testLabelVerb},
	{"scale", testScaleVerb},
	{"get", testGetVerb},
	{"get of many", testGetManyVerb},
	{"get and watch", testGetWatchVerb},
	{"explain", testExplainVerb},
	{"wait", testWaitVerb},
	{"replace", testReplaceVerb},
	{"delete", testDeleteVerb},
}

// TestKubectlVerbs has kubectl of every age do all that it can do with objects of a
// version that no server has, by rules and by programs, and looks at what it prints and
// at what the server has then: in its own version, with the fields that only that one
// has.
func TestKubectlVerbs(t *testing.T) {
	t.Parallel()
	l := startWidgets(t)
	all := clients.KubectlVersions()
	for _, form := range []struct {
		name     string
		policies map[string]string
		kubectls []string
	}{
		{"rules", widgetRules(t), all},
		{"programs", files(t, "testdata/widgets/files"), []string{all[0], all[len(all)-1]}}, // the oldest and the newest: each takes its time
	} {
		m := l.serve(t, form.policies)
		for _, version := range form.kubectls {
			name := "kubectl " + version + " by " + form.name
			t.Run(name, func(t *testing.T) {
				t.Parallel() // with objects of its own
				u := m.user(t, version, strings.NewReplacer(" ", "-", ".", "-").Replace(name))
				u.byRules = form.name == "rules"
				for _, verb := range widgetVerbs {
					t.Run(verb.name, func(t *testing.T) { verb.run(u.in(t)) })
				}
			})
		}
	}
}

func testCreateVerb(u user) {
	file := u.v1alpha1("created", oldSpec)
	u.says(`legacyTimeout: "30"`, "create", "--dry-run=server", "-o", "yaml", "-f", file)
	u.gone(widgetKind, "created")
	u.says("widget.shop.example.com/created created", "create", "--field-manager=me", "-f", file)
	u.holds("created", `{"color":null,"limits":null}`)
	if managers := u.stored(widgetKind, "created").GetManagedFields(); len(managers) != 1 || managers[0].Manager != "me" {
		u.t.Errorf("with kubectl %s its managers are %v, want me", u.version, managers)
	}
	u.fails(`widgets.shop.example.com "created" already exists`, "create", "-f", file)
	u.fails("spec.tier: Unsupported value", "create", "-f", u.v1alpha1("wrong", "{tier: wrong}"))
	u.gone(widgetKind, "wrong")
}

func testApplyVerb(u user) {
	file := u.v1alpha1("applied", oldSpec)
	u.says("created", "apply", "-f", file)
	u.holds("applied", `{"color":null,"limits":null}`)
	u.changes(widgetKind, "applied", `{"spec":{"color":"red","limits":{"cpu":"1"}}}`)
	u.says("unchanged", "apply", "-f", file)

	// A field less and another list, which a client finds out from what it applied last.
	changed := u.v1alpha1("applied", `{legacyTimeout: "45", tier: ephemeral, note: m, parts: [{id: b, weight: "8"}]}`)
	u.says("configured (server dry run)", "apply", "--dry-run=server", "-f", changed)
	u.holds("applied", `{}`)
	u.says("configured", "apply", "-f", changed)
	u.holds("applied", `{"timeoutSeconds":45,"replicas":null,"note":"m","parts":[{"id":"b","grams":8}]}`)
	u.says("unchanged", "apply", "-f", changed)
	u.says(`legacyTimeout: "45"`, "apply", "view-last-applied", "-f", changed)

	u.says("configured", "apply", "-f", u.v1alpha1("applied", `{note: m}`))
	u.holds("applied", `{"timeoutSeconds":null,"replicas":null,"tier":null,"note":"m","parts":null}`)
}

func testServerSideApplyVerb(u user) {
	apply := []string{"apply", "--server-side"}
	u.says("serverside-applied", append(apply, "-f", u.v1alpha1("ssa", `{legacyTimeout: "30", tier: ephemeral}`))...)
	u.specOf(widgetKind, "ssa", `{"timeoutSeconds":30,"tier":"stateless"}`)

	other := u.v1alpha1("ssa", `{legacyTimeout: "60", parts: [{id: a, weight: "7"}]}`)
	field := u.called("legacyTimeout", "timeoutSeconds")
	u.fails(`conflict with "kubectl": .spec.`+field, append(apply, "--field-manager=other", "-f", other)...)
	u.specOf(widgetKind, "ssa", `{"timeoutSeconds":30,"tier":"stateless"}`)
	u.says("serverside-applied", append(apply, "--field-manager=other", "--force-conflicts", "-f", other)...)
	u.specOf(widgetKind, "ssa", `{"timeoutSeconds":60,"tier":"stateless","parts":[{"id":"a","grams":7}]}`)

	// What a manager applies no more goes, unless it is another one's.
	u.says("serverside-applied", append(apply, "-f", u.v1alpha1("ssa", `{count: 3}`))...)
	u.specOf(widgetKind, "ssa", `{"timeoutSeconds":60,"replicas":3,"parts":[{"id":"a","grams":7}]}`)
	before := u.stored(widgetKind, "ssa").GetResourceVersion()
	u.says("serverside-applied", append(apply, "-f", u.v1alpha1("ssa", `{count: 3}`))...)
	if after := u.stored(widgetKind, "ssa").GetResourceVersion(); after != before {
		u.t.Errorf("with kubectl %s applying the same again changed resourceVersion %s to %s", u.version, before, after)
	}
}

func testDiffVerb(u user) {
	file := u.v1alpha1("differs", oldSpec)
	u.ok("apply", "-f", file)
	u.exits(0, "diff", "-f", file)
	changed := u.v1alpha1("differs", strings.Replace(oldSpec, `"30"`, `"45"`, 1))
	want := regexp.MustCompile(`(?m)^-  legacyTimeout: "30"\n(?s:.*)^\+  legacyTimeout: "45"$`)
	for _, args := range [][]string{{"diff", "-f", changed}, {"diff", "--server-side", "--force-conflicts", "-f", changed}} {
		if out := u.exits(1, args...); !want.MatchString(out) {
			u.t.Errorf("kubectl %s %s printed\n%s\nwant %s", u.version, strings.Join(args, " "), out, want)
		}
	}
	u.exits(1, "diff", "-f", u.v1alpha1("differs-new", oldSpec))
	u.gone(widgetKind, "differs-new")
	u.holds("differs", `{"color":null,"limits":null}`)
}

func testEditVerb(u user) {
	u.new("edited")
	edit := []string{widget, "edited"}
	u.edits("edited", `s/legacyTimeout:.*/legacyTimeout:\ "50"/`, edit...)
	u.holds("edited", `{"timeoutSeconds":50}`)
	u.edits("no changes made", "s/nothing/nobody/", edit...)
	u.edits("edited", `/note/d`, append(edit, "-o", "json")...)
	u.holds("edited", `{"timeoutSeconds":50,"note":null}`)
	if u.knows("1.24") {
		u.changes(widgetKind, "edited", `{"status":{"readyReplicas":1}}`, "status")
		u.edits("edited", `s/ready:.*/ready:\ 2/`, append(edit, "--subresource=status")...)
		u.sameJSON("edited has the status", u.stored(widgetKind, "edited").Object["status"], `{"readyReplicas":2}`)
	}
}

func testPatchVerb(u user) {
	u.new("patched")
	patch := []string{"patch", widget, "patched"}
	u.says("patched", append(patch, "--type=merge", "-p", `{"spec":{"legacyTimeout":"45","note":null,"tier":"stateful"}}`)...)
	u.holds("patched", `{"timeoutSeconds":45,"note":null,"tier":"stateful"}`)
	u.says("patched", append(patch, "--type=json", "-p", `[
		{"op":"test","path":"/spec/legacyTimeout","value":"45"},
		{"op":"replace","path":"/spec/legacyTimeout","value":"50"},
		{"op":"replace","path":"/spec/parts/0/weight","value":"8"},
		{"op":"add","path":"/spec/parts/-","value":{"id":"b","weight":"9"}},
		{"op":"remove","path":"/spec/count"},
		{"op":"replace","path":"/spec/tier","value":"ephemeral"}]`)...)
	const want = `{"timeoutSeconds":50,"note":null,"replicas":null,"parts":[{"id":"a","grams":8},{"id":"b","grams":9}]}`
	u.holds("patched", want)
	u.fails("is invalid", append(patch, "--type=json", "-p", `[{"op":"test","path":"/spec/legacyTimeout","value":"1"}]`)...)
	u.says(`legacyTimeout: "51"`, append(patch, "--type=merge", "--dry-run=server", "-o", "yaml", "-p", `{"spec":{"legacyTimeout":"51"}}`)...)
	u.holds("patched", want)

	u.fails("the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
		append(patch, "--type=strategic", "-p", `{"spec":{"note":"x"}}`)...)
	u.holds("patched", want)
	if u.knows("1.24") {
		u.says("patched", append(patch, "--subresource=status", "--type=merge", "-p", `{"status":{"ready":2}}`)...)
		u.sameJSON("patched has the status", u.stored(widgetKind, "patched").Object["status"], `{"readyReplicas":2}`)
		u.holds("patched", want)
	}
}

func testLabelVerb(u user) {
	u.new("labelled")
	for _, verb := range []struct{ verb, done, field string }{{"label", "labeled", "labels"}, {"annotate", "annotated", "annotations"}} {
		const key = "example.com/env"
		is := func(want string) {
			u.t.Helper()
			u.metadata(widgetKind, "labelled", verb.field, key, want)
		}
		u.says(verb.done, verb.verb, widget, "labelled", key+"=dev")
		is("dev")
		u.fails("--overwrite is false", verb.verb, widget, "labelled", key+"=prod")
		is("dev")
		u.says(verb.done, verb.verb, widget, "labelled", key+"=prod", "--overwrite")
		is("prod")
		u.says(verb.done, verb.verb, widget, "-l", "app=labelled", key+"=test", "--overwrite")
		is("test")
		u.says(key+"=test", verb.verb, widget, "labelled", "--list")
		u.ok(verb.verb, widget, "labelled", key+"-")
		is("")
	}
	u.holds("labelled", `{}`)
}

func testScaleVerb(u user) {
	u.new("scaled")
	u.says("scaled", "scale", widget, "scaled", "--replicas=5")
	u.holds("scaled", `{"replicas":5}`)
	u.says("scaled", "scale", widget, "-l", "app=scaled", "--current-replicas=5", "--replicas=6")
	u.holds("scaled", `{"replicas":6}`)
	u.fails("xpected replicas to be 3, was 6", "scale", widget, "scaled", "--current-replicas=3", "--replicas=7")
	u.says("6", "get", widget, "scaled", "-o", "jsonpath={.spec.count}")
	if u.knows("1.24") {
		u.says("Scale 6", "get", widget, "scaled", "--subresource=scale", "-o", "jsonpath={.kind} {.spec.replicas}")
		u.says("patched", "patch", widget, "scaled", "--subresource=scale", "--type=merge", "-p", `{"spec":{"replicas":0}}`)
		u.holds("scaled", `{"replicas":0}`)
	}
}

func testGetVerb(u user) {
	u.new("got")
	get := func(want string, args ...string) {
		u.t.Helper()
		if out := withoutConversion(u.ok(append([]string{"get"}, args...)...)); !regexp.MustCompile(want).MatchString(out) {
			u.t.Errorf("kubectl %s get %s printed\n%s\nwant %s", u.version, strings.Join(args, " "), out, want)
		}
	}
	// The cells are of the server's version.
	get(`(?m)^NAME +REPLICAS +TIER\ngot +2 +stateless$`, widget, "got")
	get(`(?m)^NAME +REPLICAS +TIER +COLOR\ngot +2 +stateless +red$`, widget, "got", "-o", "wide")
	get(`(?m)^got +2 +stateless +got +app=got$`, widget, "got", "-L", "app", "--show-labels")
	get(`(?m)^widget.shop.example.com/got$`, widget, "got", "-o", "name")
	get(`(?s)^apiVersion: shop.example.com/v1alpha1\nkind: Widget\n.*\n  legacyTimeout: "30"\n.*\n  - id: a\n    weight: "7"\n  tier: ephemeral\n`,
		widget, "got", "-o", "yaml")
	get(`(?s)"apiVersion": "shop.example.com/v1alpha1".*"legacyTimeout": "30"`, widget, "got", "-o", "json")
	get(`(?m)^30 2 ephemeral 7$`, widget, "got", "-o", "jsonpath={.spec.legacyTimeout} {.spec.count} {.spec.tier} {.spec.parts[0].weight}")
	get(`(?m)^30 2$`, widget, "got", "-o", "go-template={{.spec.legacyTimeout}} {{.spec.count}}")
	get(`(?m)^NAME +T +W\ngot +30 +7$`, widget, "got", "-o", "custom-columns=NAME:.metadata.name,T:.spec.legacyTimeout,W:.spec.parts[*].weight")
	get(`^{"apiVersion":"shop.example.com/v1alpha1","kind":"Widget"`, "--raw", "/apis/shop.example.com/v1alpha1/namespaces/"+u.namespace+"/widgets/got")
	get(`(?m)^30$`, "-f", u.v1alpha1("got", "{}"), "-o", "jsonpath={.spec.legacyTimeout}")
	if out := u.ok("describe", widget, "got"); !regexp.MustCompile(`(?m)^API Version: +shop.example.com/v1alpha1$(?s:.*)^  Legacy Timeout: +30$`).MatchString(out) {
		u.t.Errorf("kubectl %s describe printed\n%s", u.version, out)
	}
	u.fails(`widgets.shop.example.com "nobody" not found`, "get", widget, "nobody")

	// Without a version it is the one that servers have. Newer kubectls do not look at the
	// version beside a short name.
	version := "v1alpha1"
	if u.knows("1.31") {
		version = "v1"
	}
	get(`^shop.example.com/`+version+`$`, "wdg.v1alpha1.shop.example.com", "got", "-o", "jsonpath={.apiVersion}")
	get(`^shop.example.com/v1$`, "wdg", "got", "-o", "jsonpath={.apiVersion}")
	get(`^NAME +REPLICAS +TIER\n(.*\n)*got +2 +stateless\n`, "catalog")
	if out := u.ok("get", "catalog", "-o", "name"); strings.Count(out, "/got\n") != 1 {
		u.t.Errorf("kubectl %s get catalog printed\n%s\nwant got once", u.version, out)
	}
}

func testGetManyVerb(u user) {
	const many = 3
	for i := range many {
		name := fmt.Sprint("many-", i)
		u.new(name)
		u.changes(widgetKind, name, fmt.Sprintf(`{"metadata":{"labels":{"of":"many"}},"spec":{"timeoutSeconds":%d}}`, 900+many-i))
	}
	get := func(want string, args ...string) {
		u.t.Helper()
		out := strings.TrimSpace(u.ok(append([]string{"get", widget, "-o", "jsonpath={.items[*].metadata.name}"}, args...)...))
		if out = strings.TrimSpace(withoutConversion(out + "\n")); out != want {
			u.t.Errorf("kubectl %s get %s printed %q, want %q", u.version, strings.Join(args, " "), out, want)
		}
	}
	get("many-0 many-1 many-2", "-l", "of=many")
	get("many-0 many-2", "-l", "of=many,app notin (many-1)")
	get("many-0 many-1 many-2", "-l", "of=many", "--chunk-size=1")
	get("many-1", "--field-selector=metadata.name=many-1")
	get("many-1", "--field-selector=spec."+u.called("legacyTimeout", "timeoutSeconds")+"=902")
	get("many-2 many-1 many-0", "-l", "of=many", "--sort-by=.spec.legacyTimeout")
	out := u.ok("get", widget, "-l", "of=many", "--sort-by=.spec.legacyTimeout")
	if !regexp.MustCompile(`(?s)many-2 .*many-1 .*many-0 `).MatchString(out) {
		u.t.Errorf("kubectl %s get --sort-by=.spec.legacyTimeout printed\n%s", u.version, out)
	}
	u.says(u.namespace, "get", widget, "-A", "-l", "of=many")
	u.fails("spec.unknown", "get", widget, "--field-selector=spec.unknown=1")
}

func testGetWatchVerb(u user) {
	u.new("watched")
	rows := u.watches("get", widget, "watched", "-w")
	objects := u.watches("get", widget, "--watch-only", "-l", "app=watched", "-o", `jsonpath={"saw "}{.spec.legacyTimeout}{"\n"}`)
	rows.sees(u.t, `(?m)^watched +2 +stateless$`)
	u.changes(widgetKind, "watched", `{"spec":{"timeoutSeconds":31,"replicas":3}}`)
	rows.sees(u.t, `(?m)^watched +3 +stateless$`)
	objects.sees(u.t, `(?m)^saw 31$`)
	if strings.Contains(objects.out.String(), "saw 30") {
		u.t.Errorf("kubectl %s get --watch-only printed what was there before:\n%s", u.version, objects.out)
	}
}

func testExplainVerb(u user) {
	explain := []string{"explain", "--api-version=shop.example.com/v1alpha1"}
	u.says("What the widget shall be.", append(explain, "widgets")...)
	u.says("How long it may take, in seconds.", append(explain, "widgets.spec.legacyTimeout")...)
	u.says("In grams.", append(explain, "wdg.spec.parts")...)
	out := u.ok(append(explain, "widgets", "--recursive")...)
	for _, field := range []string{"legacyTimeout", "count", "weight", "ready"} {
		if !strings.Contains(out, field+"\t<") {
			u.t.Errorf("kubectl %s explain --recursive does not tell of %s:\n%s", u.version, field, out)
		}
	}
	for _, field := range []string{"timeoutSeconds", "replicas", "grams", "color"} {
		if strings.Contains(out, field) {
			u.t.Errorf("kubectl %s explain --recursive tells of %s, which the version does not have:\n%s", u.version, field, out)
		}
	}
}

func testWaitVerb(u user) {
	u.new("awaited")
	ends := func(r *running, want string) {
		u.t.Helper()
		if code := r.code(u.t); code != 0 || !strings.Contains(r.out.String(), want) {
			u.t.Errorf("%s ended with %d and printed\n%s\nwant %q in it", r.cmd, code, r.out, want)
		}
	}
	wait := func(condition string) *running {
		u.t.Helper()
		return u.watches("wait", "--for="+condition, widget+"/awaited", "--timeout=60s")
	}
	ready := wait("condition=Ready")
	u.changes(widgetKind, "awaited", `{"status":{"readyReplicas":1,"conditions":[{"type":"Ready","status":"True"}]}}`, "status")
	ends(ready, "widget.shop.example.com/awaited condition met")
	if u.knows("1.24") {
		field := wait("jsonpath={.status.ready}=2")
		u.changes(widgetKind, "awaited", `{"status":{"readyReplicas":2}}`, "status")
		ends(field, "condition met")
	}
	deleted := wait("delete")
	if err := u.of(widgetKind).Delete(u.t.Context(), "awaited", metav1.DeleteOptions{}); err != nil {
		u.t.Fatal(err)
	}
	ends(deleted, "condition met")
	if u.knows("1.31") {
		created := startCommand(u.t, func(ctx context.Context) *exec.Cmd {
			return u.command(ctx, "wait", "--for=create", widget+"/awaited", "--timeout=60s", "-v=6")
		})
		created.sees(u.t, "404 Not Found") // it looks again and again
		u.new("awaited")
		ends(created, "condition met")
	}
}

func testReplaceVerb(u user) {
	u.new("replaced")
	file := u.v1alpha1("replaced", `{legacyTimeout: "45", tier: stateful}`)
	const want = `{"timeoutSeconds":45,"replicas":null,"tier":"stateful","note":null,"parts":null}`
	u.says("replaced (server dry run)", "replace", "--dry-run=server", "-f", file)
	u.holds("replaced", `{}`)
	u.says("widget.shop.example.com/replaced replaced", "replace", "-f", file)
	u.holds("replaced", want) // the fields that the client does not know are kept

	got := write(u.t, "replaced.yaml", strings.Replace(withoutConversion(u.ok("get", widget, "replaced", "-o", "yaml")), `"45"`, `"46"`, 1))
	u.says("replaced", "replace", "-f", got)
	u.holds("replaced", strings.Replace(want, "45", "46", 1))
	u.fails("the object has been modified", "replace", "-f", got) // its resourceVersion is the one before
	if u.knows("1.24") {
		status := write(u.t, "status.yaml", read(u.t, os.DirFS("."), "testdata/widgets/status-v1alpha1.yaml"))
		u.says("replaced", "replace", "--subresource=status", "-f", status)
		u.sameJSON("replaced has the status", u.stored(widgetKind, "replaced").Object["status"], `{"readyReplicas":4}`)
		u.holds("replaced", strings.Replace(want, "45", "46", 1))
	}
	// To delete it and to create another one keeps nothing.
	u.says("replaced", "replace", "--force", "-f", file)
	u.holds("replaced", strings.Replace(want, "}", `,"color":null,"limits":null}`, 1))
}

func testDeleteVerb(u user) {
	for _, name := range []string{"by-name", "by-file", "by-label", "by-field", "orphan", "background", "foreground", "now"} {
		u.new(name)
	}
	u.says("deleted", "delete", widget, "by-name", "--dry-run=server")
	u.holds("by-name", `{}`)
	u.says(`"by-name" deleted`, "delete", widget, "by-name")
	u.gone(widgetKind, "by-name")
	u.fails(`widgets.shop.example.com "by-name" not found`, "delete", widget, "by-name")
	u.ok("delete", widget, "by-name", "--ignore-not-found")
	u.says("deleted", "delete", "-f", u.v1alpha1("by-file", "{}"))
	u.gone(widgetKind, "by-file")
	u.says(`"by-label" deleted`, "delete", widget, "-l", "app=by-label")
	u.gone(widgetKind, "by-label")
	u.changes(widgetKind, "by-field", `{"spec":{"timeoutSeconds":777}}`)
	u.says(`"by-field" deleted`, "delete", widget, "--field-selector=spec."+u.called("legacyTimeout", "timeoutSeconds")+"=777")
	u.gone(widgetKind, "by-field")
	u.says("deleted", "delete", widget, "background", "--cascade=background")
	u.gone(widgetKind, "background")
	u.says("deleted", "delete", widget, "now", "--now")
	u.gone(widgetKind, "now")

	// There is no garbage collector, so these stay until their finalizer is gone.
	for cascade, finalizer := range map[string]string{"orphan": "orphan", "foreground": "foregroundDeletion"} {
		u.says("deleted", "delete", widget, cascade, "--cascade="+cascade, "--wait=false")
		object := u.stored(widgetKind, cascade)
		if got := object.GetFinalizers(); object.GetDeletionTimestamp() == nil || len(got) != 1 || got[0] != finalizer {
			u.t.Errorf("with kubectl %s delete --cascade=%s left the finalizers %v", u.version, cascade, got)
		}
		u.says("patched", "patch", widget, cascade, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		u.gone(widgetKind, cascade)
	}
	u.ok("delete", widget, "--all")
	if left, err := u.of(widgetKind).List(u.t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) != 0 {
		u.t.Errorf("with kubectl %s delete --all left %d objects (%v)", u.version, len(left.Items), err)
	}
}
