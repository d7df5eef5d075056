package controlplane_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/bench/lab/clients"
	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
	"github.com/mixed-version-proxy/mvp/bench/lab/kubelet"
	"github.com/mixed-version-proxy/mvp/bench/lab/labtest"
)

// TestKubelet uses the node with every kubectl, by every server, also after the
// kubelet was restarted.
func TestKubelet(t *testing.T) {
	c := labtest.Start(t, controlplane.Config{Kubelet: true})
	set := labtest.Clients(t)
	home := t.TempDir()
	f := func(version, server, want string, wantCode int, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), set.Kubectl(version), append([]string{"--kubeconfig", c.KubeconfigPath(controlplane.Admin, server)}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+home)
		out, err := cmd.CombinedOutput()
		code := 0
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			code, err = exit.ExitCode(), nil
		}
		if err != nil || code != wantCode || !strings.Contains(string(out), want) {
			t.Errorf("kubectl %s %s by %s: code %d, %v, printed %q; want code %d and %q", version, strings.Join(args, " "), server, code, err, out, wantCode, want)
		}
	}

	for _, server := range c.Names() {
		for _, version := range clients.KubectlVersions() {
			f(version, server, "hello\n", 42, "exec", kubelet.Pod, "-c", kubelet.Main, "--", "sh", "-c", "echo hello; exit 42")
			f(version, server, "started\n", 0, "logs", kubelet.Pod, "-c", kubelet.Main)
			f(version, server, `"target":"/x?y=z"`, 0, "get", "--raw", "/api/v1/namespaces/default/services/"+kubelet.Service+":http/proxy/x?y=z")
			f(version, server, "ok", 0, "get", "--raw", "/api/v1/nodes/"+kubelet.Node+"/proxy/healthz")
		}
		must(t, c.Restart(t.Context(), controlplane.Kubelet))
	}
}
