package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
)

// library is what MVP is told to bring along before servers of newVersion.
const library = "kubernetes-1.32"

// oldKubectl and oldHelm are the clients of the age of the old chart.
const (
	oldKubectl = "1.20"
	oldHelm    = "3.8"
)

// TestOldChart has clients of Kubernetes 1.20 bring what was written for it onto a server
// that has none of those versions any more.
func TestOldChart(t *testing.T) {
	t.Parallel()
	l := startLabWith(t, controlplane.Config{Versions: []string{newVersion}})
	m := l.serve(t, nil, library)
	t.Run("helm", func(t *testing.T) { testOldChart(t, m) })
	t.Run("helm takes the release to a new chart", func(t *testing.T) { testOldRelease(t, m) })
	t.Run("kubectl", func(t *testing.T) { testOldManifests(t, m) })
	t.Run("drain", func(t *testing.T) { testOldDrain(t, m) })
}

// chartObjects are the objects of the charts, as the server has them, each with a field
// that tells the turn, and what that says in turn 0 and 1. Those with a namespace are in
// that of the release.
var chartObjects = []struct {
	resource, name string
	turn           string // a JSON path
	zero, one      string
}{
	{"customresourcedefinitions.v1.apiextensions.k8s.io", "parts.shop2020.example.com", "{.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.turn.description}", "of turn 0", "of turn 1"},
	{"clusterroles.v1.rbac.authorization.k8s.io", "shop2020", "{.rules[0].resources[0]}", "parts", "parts"},
	{"clusterrolebindings.v1.rbac.authorization.k8s.io", "shop2020", "{.metadata.labels.turn}", "0", "1"},
	{"roles.v1.rbac.authorization.k8s.io", "shop", "{.rules[0].resourceNames[0]}", "turn-0", "turn-1"},
	{"rolebindings.v1.rbac.authorization.k8s.io", "shop", "{.metadata.labels.turn}", "0", "1"},
	{"mutatingwebhookconfigurations.v1.admissionregistration.k8s.io", "shop2020", "{.metadata.labels.turn} {.webhooks[0].failurePolicy}", "0 Ignore", "1 Ignore"},
	{"validatingwebhookconfigurations.v1.admissionregistration.k8s.io", "shop2020", "{.metadata.labels.turn} {.webhooks[0].failurePolicy}", "0 Ignore", "1 Ignore"},
	{"ingresses.v1.networking.k8s.io", "shop", "{.spec.rules[0].http.paths[0].path} {.spec.rules[0].http.paths[0].backend.service.port.name}", "/turn-0 web", "/turn-1 web"},
	{"poddisruptionbudgets.v1.policy", "shop", "{.spec.minAvailable}", "1", "2"},
	{"cronjobs.v1.batch", "shop", "{.spec.jobTemplate.spec.template.metadata.annotations.turn}", "0", "1"},
	{"horizontalpodautoscalers.v2.autoscaling", "shop", "{.spec.maxReplicas}", "3", "5"},
	{"deployments.v1.apps", "shop", "{.spec.template.metadata.annotations.turn}", "0", "1"},
}

// turnOne are helm's arguments for turn 1.
var turnOne = []string{"--set-string", "turn=1", "--set", "maxReplicas=5,minAvailable=2"}

// release is a release of the chart, in a namespace of its own.
type release struct {
	t         *testing.T
	m         *mvp
	namespace string
	home      string
}

func newRelease(t *testing.T, m *mvp, namespace string) release {
	t.Helper()
	m.lab.direct(t, "a").ok("create", "namespace", namespace)
	return release{t, m, namespace, t.TempDir()}
}

// run runs a helm with a kubeconfig.
func (r release) run(kubeconfig, version string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.m.lab.clients.Helm(version), append([]string{"-n", r.namespace, "--kubeconfig", kubeconfig}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+r.home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// helm runs a helm through MVP, which must succeed.
func (r release) helm(version string, args ...string) {
	r.t.Helper()
	if out, err := r.run(r.m.kubectl(newKubectl).kubeconfig, version, args...); err != nil {
		r.t.Fatalf("helm %s %s: %v\n%s", version, strings.Join(args, " "), err, out)
	}
}

// isAt wants the server to have all objects at the turn.
func (r release) isAt(turn int) {
	r.t.Helper()
	direct := r.m.lab.direct(r.t, "a")
	for _, o := range chartObjects {
		want := o.zero
		if turn == 1 {
			want = o.one
		}
		got, err := direct.run("-n", r.namespace, "get", o.resource, o.name, "-o", "jsonpath="+o.turn)
		if err != nil || got != want {
			r.t.Errorf("%s %s says %q (%v), want %q", o.resource, o.name, got, err, want)
		}
	}
}

// isGone wants the server to have none of the objects.
func (r release) isGone() {
	r.t.Helper()
	direct := r.m.lab.direct(r.t, "a")
	for _, o := range chartObjects {
		direct.ok("-n", r.namespace, "wait", "--for=delete", o.resource, o.name, "--timeout=30s")
	}
}

// testOldChart takes a release of the old chart from its beginning to its end.
func testOldChart(t *testing.T, m *mvp) {
	r := newRelease(t, m, "helm")
	old := filepath.Join("testdata", "chart-2020")
	out, err := r.run(m.lab.KubeconfigPath(controlplane.Admin, "a"), oldHelm, "install", "shop", old)
	if err == nil || !strings.Contains(out, "no matches for kind") {
		t.Fatalf("without mvp, helm %s install ended with %v:\n%s", oldHelm, err, out)
	}
	r.helm(oldHelm, "install", "shop", old)
	r.isAt(0)
	r.helm(oldHelm, append([]string{"upgrade", "shop", old}, turnOne...)...)
	r.isAt(1)
	r.helm(oldHelm, "rollback", "shop", "1")
	r.isAt(0)
	r.helm(oldHelm, "uninstall", "shop")
	r.isGone()
}

// testOldRelease has a helm of today take a release whose record names removed versions
// to a chart that names their successors.
func testOldRelease(t *testing.T, m *mvp) {
	old, current := filepath.Join("testdata", "chart-2020"), filepath.Join("testdata", "chart-2024")
	for _, version := range []string{"3.17", "4.1"} {
		t.Run(version, func(t *testing.T) {
			r := newRelease(t, m, "helm-"+strings.ReplaceAll(version, ".", "-"))
			upgrade := append([]string{"upgrade", "shop", current}, turnOne...)
			r.helm(oldHelm, "install", "shop", old)
			out, err := r.run(m.lab.KubeconfigPath(controlplane.Admin, "a"), version, upgrade...)
			if err == nil || !strings.Contains(out, "no matches for kind") {
				t.Fatalf("without mvp, helm %s upgrade ended with %v:\n%s", version, err, out)
			}
			r.isAt(0)
			r.helm(version, upgrade...)
			r.isAt(1)
			r.helm(version, "uninstall", "shop")
			r.isGone()
		})
	}
}

// oldKinds are the kinds of the old chart as kubectl is asked for them, each with a sed
// program that takes its object from turn 0 to turn 1.
var oldKinds = []struct{ resource, name, edit string }{
	{"customresourcedefinitions.v1beta1.apiextensions.k8s.io", "parts.shop2020.example.com", `s/of.turn.0/of\ turn\ 1/`},
	{"clusterrolebindings.v1beta1.rbac.authorization.k8s.io", "shop2020", `s/turn:.\"0\"/turn:\ \"1\"/`},
	{"roles.v1beta1.rbac.authorization.k8s.io", "shop", "s/turn-0/turn-1/"},
	{"rolebindings.v1beta1.rbac.authorization.k8s.io", "shop", `s/turn:.\"0\"/turn:\ \"1\"/`},
	{"mutatingwebhookconfigurations.v1beta1.admissionregistration.k8s.io", "shop2020", `s/turn:.\"0\"/turn:\ \"1\"/`},
	{"validatingwebhookconfigurations.v1beta1.admissionregistration.k8s.io", "shop2020", `s/turn:.\"0\"/turn:\ \"1\"/`},
	{"ingresses.v1beta1.networking.k8s.io", "shop", "s/turn-0/turn-1/"},
	{"poddisruptionbudgets.v1beta1.policy", "shop", `s/minAvailable:.*/minAvailable:\ 2/`},
	{"cronjobs.v1beta1.batch", "shop", `s/turn:.\"0\"/turn:\ \"1\"/`},
	{"horizontalpodautoscalers.v2beta2.autoscaling", "shop", `s/maxReplicas:.*/maxReplicas:\ 5/`},
	{"deployments.v1.apps", "shop", `s/turn:.\"0\"/turn:\ \"1\"/`},
}

// testOldManifests has kubectl of that age do by hand what helm does, and read and edit
// each object.
func testOldManifests(t *testing.T, m *mvp) {
	r := newRelease(t, m, "kubectl")
	rendered := func(args ...string) string {
		t.Helper()
		out, err := r.run(m.kubectl(newKubectl).kubeconfig, oldHelm, append([]string{"template", "shop", filepath.Join("testdata", "chart-2020")}, args...)...)
		if err != nil {
			t.Fatalf("helm %s template: %v\n%s", oldHelm, err, out)
		}
		return write(t, "shop.yaml", out)
	}
	k := m.kubectl(oldKubectl).in(t)
	in := func(args ...string) []string { return append([]string{"-n", r.namespace}, args...) }
	file := rendered()
	direct := m.lab.direct(t, "a")
	direct.version = oldKubectl
	direct.fails("no matches for kind", in("apply", "-f", file)...)
	direct.ok(in("delete", "deployment", "shop", "--ignore-not-found")...)

	k.ok(in("apply", "-f", file)...)
	r.isAt(0)
	// What has defaults in lists that a patch replaces whole is written anew each time, as
	// it was on servers of that age.
	for line := range strings.Lines(k.ok(in("apply", "-f", file)...)) {
		kind, _, _ := strings.Cut(line, ".")
		again := kind == "ingress" || strings.HasSuffix(kind, "webhookconfiguration")
		if !again && !strings.HasSuffix(strings.TrimSpace(line), " unchanged") && !strings.HasPrefix(line, "Warning: ") {
			t.Errorf("kubectl %s apply of the same file says %s", oldKubectl, line)
		}
	}
	k.ok(in("apply", "-f", rendered(turnOne...))...)
	r.isAt(1)
	k.ok(in("apply", "-f", file)...)
	r.isAt(0)
	for _, o := range oldKinds {
		version := strings.SplitN(o.resource, ".", 3)[1]
		if got := field(k.object(in(o.resource, o.name)...), "apiVersion"); !strings.HasSuffix(got, "/"+version) {
			t.Errorf("kubectl %s get %s is answered %s", oldKubectl, o.resource, got)
		}
		cmd := k.command(t.Context(), in("edit", o.resource, o.name)...)
		cmd.Env = append(cmd.Env, "KUBE_EDITOR=sed -i "+o.edit)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "edited") {
			t.Errorf("kubectl %s edit %s: %v\n%s", oldKubectl, o.resource, err, out)
		}
	}
	r.isAt(1)
	k.ok(in("delete", "-f", file)...)
	r.isGone()
}

// testOldDrain drains a node of a pod that a budget of policy/v1beta1 protects at first.
func testOldDrain(t *testing.T, m *mvp) {
	k, direct := m.kubectl(oldKubectl).in(t), m.lab.direct(t, "a")
	direct.ok("create", "namespace", "drain")
	budget := func(allowed int) string {
		return fmt.Sprintf(`{"apiVersion":"policy/v1beta1","kind":"PodDisruptionBudget","metadata":{"name":"shop","namespace":"drain"},
"status":{"observedGeneration":1,"disruptionsAllowed":%d,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1}}`, allowed)
	}
	k.ok("apply", "-f", write(t, "drain.yaml", `apiVersion: v1
kind: Node
metadata: {name: drained}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: drain}
---
apiVersion: policy/v1beta1
kind: PodDisruptionBudget
metadata: {name: shop, namespace: drain}
spec: {minAvailable: 1, selector: {matchLabels: {app: shop}}}
---
apiVersion: v1
kind: Pod
metadata: {name: shop, namespace: drain, labels: {app: shop}}
spec: {nodeName: drained, containers: [{name: main, image: busybox}], automountServiceAccountToken: false}
`))
	direct.ok("-n", "drain", "patch", "pod", "shop", "--subresource=status", "-p",
		`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	through := m.kubectl(newKubectl).in(t)
	through.ok("patch", "-n", "drain", "poddisruptionbudgets.v1beta1.policy", "shop", "--subresource=status", "--type=merge", "-p", budget(0))
	drain := []string{"drain", "drained", "--force", "--grace-period=0", "--timeout=4s"}
	k.fails("Cannot evict pod as it would violate the pod's disruption budget.", drain...)
	direct.ok("-n", "drain", "get", "pod", "shop")
	through.ok("patch", "-n", "drain", "poddisruptionbudgets.v1beta1.policy", "shop", "--subresource=status", "--type=merge", "-p", budget(1))
	k.says("pod/shop evicted", drain...)
	direct.ok("-n", "drain", "wait", "--for=delete", "pod/shop", "--timeout=30s")
}
