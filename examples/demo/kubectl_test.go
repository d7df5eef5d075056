package demo

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// kubectlTimeout ends a kubectl that hangs.
const kubectlTimeout = time.Minute

// A kubectl runs the one of PATH against one server.
type kubectl struct {
	t          *testing.T
	home       string // no cache of another server's discovery
	kubeconfig string
}

func newKubectl(t *testing.T, c *ControlPlane, s *Server) *kubectl {
	t.Helper()
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("there is no kubectl on PATH")
	}
	k := &kubectl{t: t, home: t.TempDir()}
	k.kubeconfig = filepath.Join(k.home, "kubeconfig")
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: demo, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: demo, user: {token: demo}}]
contexts: [{name: demo, context: {cluster: demo, user: demo}}]
current-context: demo
`, s.URL(), c.CAFile())
	if err := os.WriteFile(k.kubeconfig, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *kubectl) command(ctx context.Context, stdin string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	cmd.Env = append(os.Environ(), "HOME="+k.home, "KUBECONFIG="+k.kubeconfig)
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}

// run returns what kubectl prints, on both streams, and how it ended.
func (k *kubectl) run(stdin string, args ...string) (string, error) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), kubectlTimeout)
	defer cancel()
	out, err := k.command(ctx, stdin, args...).CombinedOutput()
	return string(out), err
}

// ok runs kubectl and checks that want is in what it prints.
func (k *kubectl) ok(want, stdin string, args ...string) {
	k.t.Helper()
	out, err := k.run(stdin, args...)
	if err != nil || !strings.Contains(out, want) {
		k.t.Errorf("kubectl %s: %v\n%swant %q in it", strings.Join(args, " "), err, out, want)
	}
}

// fails runs kubectl and checks that it fails with want in its message.
func (k *kubectl) fails(want, stdin string, args ...string) {
	k.t.Helper()
	out, err := k.run(stdin, args...)
	if err == nil || !strings.Contains(out, want) {
		k.t.Errorf("kubectl %s: %v\n%swant it to fail with %q", strings.Join(args, " "), err, out, want)
	}
}

func TestKubectl(t *testing.T) {
	c := start(t, Options{})
	older, newer := c.Servers()[0], c.Servers()[1]
	k := newKubectl(t, c, older)
	k.ok("v"+older.Version, "", "version")
	k.ok("catch-all", "", "get", "flowschemas.v1beta3.flowcontrol.apiserver.k8s.io")
	k = newKubectl(t, c, newer)
	k.ok("v"+newer.Version, "", "version")
	k.fails("the server doesn't have a resource type", "", "get", "flowschemas.v1beta3.flowcontrol.apiserver.k8s.io")
	deployment := string(manifest(t, "deployment.yaml"))
	k.ok("poddisruptionbudgets", "", "api-resources")
	k.ok("catch-all", "", "get", "flowschemas")

	k.ok("configmap/a created", "", "create", "configmap", "a", "--from-literal=k=v")
	k.ok("k: v", "", "get", "configmap", "a", "-o", "yaml")
	k.ok("deployment.apps/shop created", deployment, "apply", "-f", "-")
	k.ok("deployment.apps/shop unchanged", deployment, "apply", "-f", "-")
	k.ok("deployment.apps/shop configured", strings.Replace(deployment, "replicas: 2", "replicas: 3", 1), "apply", "-f", "-")
	k.ok("serverside-applied", deployment, "apply", "--server-side", "--force-conflicts", "-f", "-")
	k.ok("successfully rolled out", "", "rollout", "status", "deployment/shop")
	k.ok("scaled", "", "scale", "deployment/shop", "--replicas=5")
	k.ok("patched", "", "patch", "deployment/shop", "--type=json", `-p=[{"op":"replace","path":"/spec/replicas","value":4}]`)
	k.ok("image updated", "", "set", "image", "deployment/shop", "shop=other:1")
	k.ok("other:1", "", "get", "deployment/shop", "-o", "jsonpath={..image}")
	k.ok("labeled", "", "label", "deployment/shop", "a=b")
	k.ok("4 desired", "", "describe", "deployment/shop")
	k.ok("shop", "", "get", "all")

	testKubectlCustomResource(t, k)
}

func testKubectlCustomResource(t *testing.T, k *kubectl) {
	custom := strings.NewReplacer("v1alpha1", "v1beta1", "legacyTimeout: \"30\"", "requestTimeoutSeconds: 30", "ephemeral", "stateless").
		Replace(string(manifest(t, "customresource-v1alpha1.yaml")))
	k.ok("shop created", custom, "apply", "-f", "-")
	k.ok("shop unchanged", custom, "apply", "-f", "-")
	k.ok("stateless", "", "get", "customresources")
	k.ok("How long a request may take", "", "explain", "customresources.spec.config")
	k.fails(`Unsupported value: "ephemeral"`, strings.Replace(custom, "stateless", "ephemeral", 1), "apply", "-f", "-")
	k.fails(`no matches for kind "CustomResource" in version "myapps.example.com/v1alpha1"`, string(manifest(t, "customresource-v1alpha1.yaml")), "apply", "-f", "-")
	k.fails(`no matches for kind "PodDisruptionBudget" in version "policy/v1beta1"`, string(manifest(t, "pdb-v1beta1.yaml")), "apply", "-f", "-")

	k.ok("deleted", "", "delete", "deployment,configmap,customresource", "--all")
	k.ok("No resources found", "", "get", "deployment,configmap,customresource")
}

// edit opens what the server sends in an editor and sends a patch.
func TestKubectlEdit(t *testing.T) {
	c := start(t, Options{})
	k := newKubectl(t, c, c.Servers()[0])
	k.ok("created", "", "create", "configmap", "a", "--from-literal=k=before")
	t.Setenv("KUBE_EDITOR", "sed -i.bak s/before/after/")
	k.ok("configmap/a edited", "", "edit", "configmap", "a")
	k.ok("after", "", "get", "configmap", "a", "-o", "jsonpath={.data.k}")
}

func TestKubectlWatch(t *testing.T) {
	c := start(t, Options{})
	k := newKubectl(t, c, c.Servers()[1])
	k.ok("created", "", "create", "configmap", "a")

	ctx, cancel := context.WithTimeout(t.Context(), kubectlTimeout)
	cmd := k.command(ctx, "", "get", "configmaps", "--watch", "-o", "name")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}()
	lines := bufio.NewScanner(stdout)
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("kubectl get --watch: %q, %v, want %q", lines.Text(), lines.Err(), want)
		}
	}
	expect("configmap/a")
	k.ok("created", "", "create", "configmap", "b")
	expect("configmap/b")
}
