package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mixed-version-proxy/mvp/bench/lab/clients"
	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
)

// budget is a built-in kind in a version that only MVP has, budgetKind in the servers'.
const budget = "poddisruptionbudgets.v1beta1.policy"

var budgetKind = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}

// TestKubectlVerbsBuiltIn has kubectl of every age use policy/v1beta1 by the shipped
// policy. Other than a custom resource, a built-in kind has strategic merge patches,
// which kubectl apply, label and edit send for what they know.
func TestKubectlVerbsBuiltIn(t *testing.T) {
	t.Parallel()
	l := startLabWith(t, controlplane.Config{Versions: []string{newVersion}})
	m := l.serve(t, nil, "policy-v1beta1")
	for _, version := range clients.KubectlVersions() {
		t.Run("kubectl "+version, func(t *testing.T) {
			t.Parallel() // with objects of its own
			u := m.user(t, version, "budgets-"+strings.ReplaceAll(version, ".", "-"))
			t.Run("apply", func(t *testing.T) { testApplyBudget(u.in(t)) })
			t.Run("change", func(t *testing.T) { testChangeBudget(u.in(t)) })
			t.Run("read", func(t *testing.T) { testReadBudget(u.in(t)) })
			t.Run("delete", func(t *testing.T) { testDeleteBudget(u.in(t)) })
		})
	}
}

// budgetFile writes a manifest of a budget.
func (u user) budgetFile(name, spec string) string {
	u.t.Helper()
	const object = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: %s, labels: {app: %[1]s}}\nspec: %s\n"
	return write(u.t, name+".yaml", fmt.Sprintf(object, name, spec))
}

func testApplyBudget(u user) {
	first := u.budgetFile("applied", "{minAvailable: 1, selector: {matchLabels: {app: shop}}}")
	u.says("created (server dry run)", "apply", "--dry-run=server", "-f", first)
	u.says("created", "apply", "-f", first)
	u.specOf(budgetKind, "applied", `{"minAvailable":1,"selector":{"matchLabels":{"app":"shop"}}}`)
	u.exits(0, "diff", "-f", first)
	before := u.stored(budgetKind, "applied").GetResourceVersion()
	u.ok("apply", "-f", first) // may say that it has changed something: of a selector kubectl cannot tell
	if after := u.stored(budgetKind, "applied").GetResourceVersion(); after != before {
		u.t.Errorf("with kubectl %s applying the same again changed resourceVersion %s to %s", u.version, before, after)
	}
	second := u.budgetFile("applied", "{maxUnavailable: 10%, selector: {matchLabels: {app: shop}}}")
	if out := u.exits(1, "diff", "-f", second); !strings.Contains(out, "\n-  minAvailable: 1\n") || !strings.Contains(out, "\n+  maxUnavailable: 10%\n") {
		u.t.Errorf("kubectl %s diff printed\n%s", u.version, out)
	}
	u.says("configured", "apply", "-f", second)
	u.specOf(budgetKind, "applied", `{"maxUnavailable":"10%","selector":{"matchLabels":{"app":"shop"}}}`)

	apply := []string{"apply", "--server-side"}
	u.says("serverside-applied", append(apply, "-f", u.budgetFile("ssa", "{minAvailable: 1, selector: {matchLabels: {app: shop}}}"))...)
	other := u.budgetFile("ssa", "{minAvailable: 2}")
	u.fails(`conflict with "kubectl": .spec.minAvailable`, append(apply, "--field-manager=other", "-f", other)...)
	u.says("serverside-applied", append(apply, "--field-manager=other", "--force-conflicts", "-f", other)...)
	u.specOf(budgetKind, "ssa", `{"minAvailable":2,"selector":{"matchLabels":{"app":"shop"}}}`)
}

func testChangeBudget(u user) {
	u.ok("create", "-f", u.budgetFile("changed", "{minAvailable: 1, selector: {matchLabels: {app: shop}}}"))
	holds := func(least int, labels string) {
		u.t.Helper()
		u.specOf(budgetKind, "changed", fmt.Sprintf(`{"minAvailable":%d,"selector":{"matchLabels":%s}}`, least, labels))
	}
	patch := []string{"patch", budget, "changed"}
	u.says("patched", append(patch, "-p", `{"spec":{"minAvailable":2,"selector":{"matchLabels":{"tier":"front"}}}}`)...)
	holds(2, `{"app":"shop","tier":"front"}`) // merged, as v1beta1 says; v1 says that it is replaced
	u.says("patched", append(patch, "--type=merge", "-p", `{"spec":{"minAvailable":3,"selector":{"matchLabels":{"tier":null}}}}`)...)
	holds(3, `{"app":"shop"}`)
	u.says("patched", append(patch, "--type=json", "-p", `[{"op":"test","path":"/spec/minAvailable","value":3},{"op":"replace","path":"/spec/minAvailable","value":4}]`)...)
	holds(4, `{"app":"shop"}`)
	u.edits("edited", `s/minAvailable:.*/minAvailable:\ 5/`, budget, "changed")
	holds(5, `{"app":"shop"}`)

	for _, verb := range []struct{ verb, field string }{{"label", "labels"}, {"annotate", "annotations"}} {
		u.ok(verb.verb, budget, "changed", "example.com/env=dev")
		u.ok(verb.verb, budget, "changed", "example.com/env=prod", "--overwrite")
		u.metadata(budgetKind, "changed", verb.field, "example.com/env", "prod")
		u.ok(verb.verb, budget, "changed", "example.com/env-")
		u.metadata(budgetKind, "changed", verb.field, "example.com/env", "")
	}
	u.says("replaced", "replace", "-f", u.budgetFile("changed", "{minAvailable: 6, selector: {}}"))
	if got := field(u.stored(budgetKind, "changed").Object, "spec.selector.matchExpressions"); !strings.Contains(got, "deprecated-v1beta1-empty-selector-match") {
		u.t.Errorf("with kubectl %s an empty selector, which selects nothing in v1beta1, is stored as %s", u.version, got)
	}
	u.says("[map[]]", "get", budget, "changed", "-o", "go-template=[{{.spec.selector}}]")
	u.fails("spec.minAvailable: Invalid value: -1", append(patch, "--type=merge", "-p", `{"spec":{"minAvailable":-1}}`)...)
}

func testReadBudget(u user) {
	u.ok("create", "-f", u.budgetFile("read", "{minAvailable: 1, selector: {matchLabels: {app: shop}}}"))
	u.says("policy/v1beta1 1\n", "get", budget, "read", "-o", `jsonpath={.apiVersion} {.spec.minAvailable}{"\n"}`)
	u.says("apiVersion: policy/v1beta1\n", "get", budget, "read", "-o", "yaml")
	u.says("MIN AVAILABLE", "get", budget, "-l", "app=read", "-o", "wide")
	u.says("poddisruptionbudget.policy/read", "get", "pdb.v1beta1.policy", "--field-selector=metadata.name=read", "-o", "name")
	u.says("read", "describe", budget, "read")
	explain := []string{"explain", "--api-version=policy/v1beta1"}
	u.says("minAvailable", append(explain, "poddisruptionbudgets", "--recursive")...)
	u.says("FIELD", append(explain, "pdb.spec.maxUnavailable")...)

	rows := u.watches("get", budget, "read", "-w", "-o", `jsonpath={.apiVersion}{" "}{.spec.minAvailable}{"\n"}`)
	rows.sees(u.t, `(?m)^policy/v1beta1 1$`)
	u.changes(budgetKind, "read", `{"spec":{"minAvailable":2}}`)
	rows.sees(u.t, `(?m)^policy/v1beta1 2$`)
	u.changes(budgetKind, "read", `{"status":{"disruptionsAllowed":0,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1,"conditions":[
		{"type":"DisruptionAllowed","status":"True","reason":"Test","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "status")
	u.says("condition met", "wait", "--for=condition=DisruptionAllowed", budget+"/read", "--timeout=60s")
}

func testDeleteBudget(u user) {
	u.says("created", "create", "pdb", "made", "--selector=app=shop", "--min-available=50%")
	u.says(`"made" deleted`, "delete", budget, "made")
	u.gone(budgetKind, "made")
	u.ok("create", "-f", u.budgetFile("last", "{minAvailable: 1}"))
	ended := u.watches("wait", "--for=delete", budget+"/last", "--timeout=60s")
	u.says("deleted", "delete", budget, "-l", "app=last", "--cascade=background")
	if code := ended.code(u.t); code != 0 {
		u.t.Errorf("kubectl %s wait --for=delete ended with %d: %s", u.version, code, ended.out)
	}
	u.ok("delete", budget, "--all")
	u.says("No resources found", "get", budget)
}
