package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestConvertedController runs an operator with typed structs of a version that no server
// has. It must not lose what only the servers' version has: it writes whole objects with
// rules that preserve those fields, and patches with rules that do not.
func TestConvertedController(t *testing.T) {
	t.Parallel()
	l := startWidgets(t)
	bin := filepath.Join(t.TempDir(), "widgets")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./widgets")
	build.Dir = filepath.Join("modules", "controller")
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the operator: %v\n%s", err, out)
	}
	preserving := widgetRules(t)
	const preserve = "      preserve: [spec.color, spec.limits]\n"
	forgetful := map[string]string{"widgets.yaml": strings.Replace(preserving["widgets.yaml"], preserve, "", 1)}
	if forgetful["widgets.yaml"] == preserving["widgets.yaml"] {
		t.Fatalf("the rules do not have the line %q", preserve)
	}
	t.Run("updates", func(t *testing.T) { testWidgetsOperator(t, l.serve(t, preserving), bin, "updates", "--patch=false") })
	t.Run("patches", func(t *testing.T) { testWidgetsOperator(t, l.serve(t, forgetful), bin, "patches", "--patch=true") })
}

func testWidgetsOperator(t *testing.T, m *mvp, bin, namespace, mode string) {
	u := m.user(t, newKubectl, namespace)
	u.new("one")
	u.new("two")
	u.changes(widgetKind, "two", `{"spec":{"tier":"stateful"}}`)
	r := startCommand(t, func(ctx context.Context) *exec.Cmd {
		return exec.CommandContext(ctx, bin, "--kubeconfig", u.kubeconfig, "--namespace", namespace, mode)
	})
	r.sees(t, `(?m)^one is settled: 2 of 30 s, ephemeral$`)
	r.sees(t, `(?m)^two is settled: 2 of 30 s, stateful$`)
	u.holds("one", `{"note":"2 of 30 s","parts":[{"id":"a","grams":7},{"id":"screw","grams":30}]}`)
	u.isReconciled("one", "30")

	// Both versions' fields change under it.
	u.changes(widgetKind, "one", `{"spec":{"timeoutSeconds":45,"color":"blue","limits":{"cpu":"2"}}}`)
	r.sees(t, `(?m)^one is settled: 2 of 45 s, ephemeral$`)
	u.holds("one", `{"timeoutSeconds":45,"note":"2 of 45 s","color":"blue","limits":{"cpu":"2"},"parts":[{"id":"a","grams":7},{"id":"screw","grams":45}]}`)
	u.isReconciled("one", "45")

	r.types(t, "ephemeral\nstateful\n")
	r.sees(t, `(?m)^ephemeral are: one$`)
	r.sees(t, `(?m)^stateful are: two$`)

	u.deleteDirect("two")
	r.sees(t, `(?m)^saw the end of two$`)
	u.gone(widgetKind, "two")
	if _, err := u.of(corev1.SchemeGroupVersion.WithResource("configmaps")).Get(t.Context(), "two", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ConfigMap of two is there (%v)", err)
	}

	u.missed(m, r)
	r.types(t, "ephemeral\n")
	r.sees(t, `(?m)^ephemeral are: one three$`)
	if err := r.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if code := r.code(t); code != 0 {
		t.Errorf("the operator ended with %d and printed\n%s", code, r.out)
	}
}

// isReconciled wants the server to have all that the operator writes besides the spec.
func (u user) isReconciled(name, timeout string) {
	u.t.Helper()
	object := u.stored(widgetKind, name)
	u.sameJSON(name+" has the status", object.Object["status"], `{"readyReplicas":2,"conditions":[{"type":"Ready","status":"True"}]}`)
	if got := object.GetFinalizers(); !slices.Equal(got, []string{"shop.example.com/widgets"}) {
		u.t.Errorf("%s has the finalizers %v", name, got)
	}
	if got := object.GetLabels()["shop.example.com/tier"]; got != "ephemeral" {
		u.t.Errorf("%s has the label of tier %q", name, got)
	}
	stored, err := u.of(corev1.SchemeGroupVersion.WithResource("configmaps")).Get(u.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		u.t.Fatal(err)
	}
	var config corev1.ConfigMap
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, &config); err != nil {
		u.t.Fatal(err)
	}
	owner := metav1.GetControllerOf(&config)
	if owner == nil || owner.APIVersion != "shop.example.com/v1alpha1" || owner.Kind != "Widget" || owner.UID != object.GetUID() {
		u.t.Errorf("the ConfigMap of %s is owned by %v", name, owner)
	}
	if got := config.Data["timeout"]; got != timeout {
		u.t.Errorf("the ConfigMap of %s says %q, want %s", name, got, timeout)
	}
}

func (u user) deleteDirect(name string) {
	u.t.Helper()
	if err := u.of(widgetKind).Delete(u.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		u.t.Fatal(err)
	}
}

// missed keeps MVP, and so the operator, from watching while objects come, change and go,
// and takes the history of that from the server: MVP cannot go on with the watch, and the
// operator has to list.
func (u user) missed(m *mvp, r *running) {
	u.new("lost")
	r.sees(u.t, `(?m)^lost is settled: `)
	signal := func(s syscall.Signal) {
		if err := m.process.Signal(s); err != nil {
			u.t.Error(err)
		}
	}
	signal(syscall.SIGSTOP)
	defer signal(syscall.SIGCONT)
	restart := func() {
		if err := errors.Join(m.lab.Kill(u.t.Context(), "a"), m.lab.Start(u.t.Context(), "a")); err != nil {
			u.t.Fatal(err)
		}
	}
	restart() // ends the watch
	u.new("three")
	u.changes(widgetKind, "one", `{"spec":{"timeoutSeconds":60}}`)
	u.deleteDirect("lost")
	u.changes(widgetKind, "lost", `{"metadata":{"finalizers":null}}`)
	u.gone(widgetKind, "lost")
	restart() // ends the history
	signal(syscall.SIGCONT)
	r.sees(u.t, `(?m)^missed the end of lost$`)
	r.sees(u.t, `(?m)^three is settled: 2 of 30 s, ephemeral$`)
	r.sees(u.t, `(?m)^one is settled: 2 of 60 s, ephemeral$`)
	u.isReconciled("one", "60")
	u.isReconciled("three", "30")
}
