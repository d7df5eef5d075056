package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
)

// TestOldClient runs a controller that was built with client-go of the year 2020, on
// versions that the server does not have any more. It sees every state that was written,
// and its informers list once.
func TestOldClient(t *testing.T) {
	t.Parallel()
	l := startLabWith(t, controlplane.Config{Versions: []string{newVersion}})
	bin := filepath.Join(t.TempDir(), "client2020")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".")
	build.Dir = filepath.Join("modules", "client2020")
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the controller: %v\n%s", err, out)
	}
	m := l.serve(t, nil, library)
	direct := l.direct(t, "a")
	run := func(kubeconfig, namespace, form string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), commandTimeout)
		defer cancel()
		out, err := exec.CommandContext(ctx, bin, "--kubeconfig", kubeconfig, "--namespace", namespace, "--form", form).CombinedOutput()
		return string(out), err
	}
	if out, err := run(l.KubeconfigPath(controlplane.Admin, "a"), "default", runtime.ContentTypeJSON); err == nil ||
		!strings.Contains(out, "could not find the requested resource") {
		t.Errorf("without mvp, it ended with %v and printed\n%s", err, out)
	}
	const each = ": 10 made, 10 ended, 40 states written, 0 of them missed, 0 others seen, 10 conflicts, 1 list\n"
	for namespace, form := range map[string]string{"json": runtime.ContentTypeJSON, "protobuf": protobuf} {
		t.Run(namespace, func(t *testing.T) {
			direct.in(t).ok("create", "namespace", namespace)
			want := "poddisruptionbudgets" + each + "cronjobs" + each + "horizontalpodautoscalers" + each + "answers came as " + form + "\n"
			got, err := run(m.kubectl(newKubectl).kubeconfig, namespace, form)
			if err != nil || got != want {
				t.Errorf("it ended with %v and printed\n%swant\n%s", err, got, want)
			}
		})
	}
}
