package controlplane_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
	"github.com/mixed-version-proxy/mvp/bench/lab/labtest"
)

// removed is an API version that Kubernetes 1.31 serves and 1.32 does not.
const removed = "/apis/flowcontrol.apiserver.k8s.io/v1beta3/flowschemas"

// TestLab drives a control plane of real servers through all they can be told.
// The parts build on each other.
func TestLab(t *testing.T) {
	c := labtest.Start(t, controlplane.Config{Audit: true})
	admin := newClient(t, c, controlplane.Admin)

	t.Run("versions differ", func(t *testing.T) {
		wantVersion(t, admin, c.URL("a"), "v1.31.14")
		wantVersion(t, admin, c.URL("b"), "v1.32.13")
		wantCode(t, admin, c.URL("a")+removed, http.StatusOK)
		wantCode(t, admin, c.URL("b")+removed, http.StatusNotFound)
	})
	t.Run("users", func(t *testing.T) { testUsers(t, c) })
	t.Run("front proxy", func(t *testing.T) { testFrontProxy(t, c) })
	t.Run("clients", func(t *testing.T) { testClients(t, c) })
	t.Run("audit", func(t *testing.T) { testAudit(t, c) })

	t.Run("etcd", func(t *testing.T) {
		keys, err := c.Keys(t.Context(), "/registry/namespaces/default")
		must(t, err)
		if len(keys) != 1 || keys[0] != "/registry/namespaces/default" {
			t.Errorf("etcd has %q, want the namespace default", keys)
		}
	})
	t.Run("controller manager", func(t *testing.T) { testControllerManager(t, c) })

	t.Run("stop and start", func(t *testing.T) {
		must(t, c.Stop(t.Context(), "a"))
		wantRefused(t, c, "a")
		wantCode(t, admin, c.URL("b")+"/readyz", http.StatusOK)
		must(t, c.Start(t.Context(), "a"))
		wantVersion(t, admin, c.URL("a"), "v1.31.14")
	})
	t.Run("kill and launch", func(t *testing.T) {
		must(t, c.Kill(t.Context(), "b"))
		wantRefused(t, c, "b")
		must(t, c.Launch(t.Context(), "b"))
		must(t, c.WaitReady(t.Context()))
		wantVersion(t, admin, c.URL("b"), "v1.32.13")
	})
	t.Run("pause and resume", func(t *testing.T) {
		must(t, c.Pause("a"))
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := c.Ready(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a paused server: %v, want no answer in time", err)
		}
		must(t, c.Resume("a"))
		must(t, c.WaitReady(t.Context(), "a"))
	})
	t.Run("upgrade", func(t *testing.T) {
		url := c.URL("a")
		must(t, c.Upgrade(t.Context(), "a", "1.32.13"))
		if got := c.URL("a"); got != url {
			t.Errorf("URL is now %s, was %s", got, url)
		}
		wantVersion(t, admin, url, "v1.32.13")
		wantCode(t, admin, url+removed, http.StatusNotFound)
	})
	t.Run("continue", func(t *testing.T) {
		must(t, c.Close())
		again := labtest.Start(t, controlplane.Config{Dir: c.Dir()})
		wantVersion(t, admin, again.URL("a"), "v1.32.13")
		if again.URL("a") != c.URL("a") {
			t.Errorf("URL is now %s, was %s", again.URL("a"), c.URL("a"))
		}
	})
}

func testUsers(t *testing.T, c *controlplane.ControlPlane) {
	const configmaps, secrets = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/secrets"
	alice := newClient(t, c, controlplane.Alice)
	discovery := newClient(t, c, controlplane.Discovery)
	for _, name := range c.Names() {
		url := c.URL(name)
		wantCode(t, alice, url+configmaps, http.StatusOK)
		wantCode(t, alice, url+secrets, http.StatusForbidden)
		wantCode(t, discovery, url+configmaps, http.StatusForbidden)
		for _, path := range []string{"/version", "/readyz", "/api", "/apis", "/apis/apps/v1", "/openapi/v3"} {
			wantCode(t, discovery, url+path, http.StatusOK)
		}
	}

	// A client certificate is as good as a token.
	files := c.Files()
	wantUser(t, c, "a", files.AdminCert, files.AdminKey, nil, "admin")
	cert, key, err := c.ClientCert("bob", "devs")
	must(t, err)
	wantUser(t, c, "b", cert, key, nil, "bob")
}

func testFrontProxy(t *testing.T, c *controlplane.ControlPlane) {
	files := c.Files()
	for _, name := range c.Names() {
		wantUser(t, c, name, files.FrontProxyCert, files.FrontProxyKey, http.Header{"X-Remote-User": {"carol"}}, "carol")
	}
}

// wantUser checks who the kube-apiserver takes the holder of a certificate for.
func wantUser(t *testing.T, c *controlplane.ControlPlane, name, certFile, keyFile string, header http.Header, want string) {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	must(t, err)
	ca, err := os.ReadFile(c.Files().CA)
	must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}}}
	defer transport.CloseIdleConnections()

	body := `{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.URL(name)+"/apis/authentication.k8s.io/v1/selfsubjectreviews", strings.NewReader(body))
	must(t, err)
	if header != nil {
		req.Header = header
	}
	req.Header.Set("Content-Type", "application/json")
	code, answer := send(t, &http.Client{Transport: transport}, req)
	var review struct {
		Status struct {
			UserInfo struct{ Username string }
		}
	}
	if err := json.Unmarshal(answer, &review); err != nil || review.Status.UserInfo.Username != want {
		t.Errorf("%s takes us for %q (%d, %v), want %q", name, review.Status.UserInfo.Username, code, err, want)
	}
}

// testControllerManager has a kube-controller-manager make the service account of a
// namespace, through one server.
func testControllerManager(t *testing.T, c *controlplane.ControlPlane) {
	manager, err := c.StartControllerManager(t.Context(), c.URL("b"))
	must(t, err)
	if manager.PID == 0 || manager.Version != controlplane.ControllerManagerVersion {
		t.Errorf("it is process %d of version %s", manager.PID, manager.Version)
	}
	admin, deadline := newClient(t, c, controlplane.Admin), time.Now().Add(30*time.Second)
	for {
		if code, _ := get(t, admin, c.URL("a")+"/api/v1/namespaces/default/serviceaccounts/default"); code == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("namespace default has no service account; see %s", manager.Log)
		}
		time.Sleep(50 * time.Millisecond) // another process tells only when asked
	}
	must(t, c.KillControllerManager(t.Context()))
	if again, err := c.ControllerManager(); err != nil || again.PID != 0 {
		t.Errorf("killed, it is process %d, %v", again.PID, err)
	}
}

func testClients(t *testing.T, c *controlplane.ControlPlane) {
	set := labtest.Clients(t)
	f := func(want, bin string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), bin, args...)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s %s: %v, want %q in:\n%s", bin, strings.Join(args, " "), err, want, out)
		}
	}

	all := c.KubeconfigPath(controlplane.Admin)
	for _, name := range c.Names() {
		f("Active", set.Kubectl("1.20"), "--kubeconfig", all, "--context", name, "get", "namespace", "default")
		f("Active", set.Kubectl("1.31"), "--kubeconfig", c.KubeconfigPath(controlplane.Admin, name), "get", "namespace", "default")
		f("NAMESPACE", set.Helm("3.8"), "--kubeconfig", all, "--kube-context", name, "list")
	}
}

func testAudit(t *testing.T, c *controlplane.ControlPlane) {
	const path = "/api/v1/namespaces/default/configmaps/asked-of-a"
	wantCode(t, newClient(t, c, controlplane.Alice), c.URL("a")+path, http.StatusNotFound)

	a, err := c.Server("a")
	must(t, err)
	b, err := c.Server("b")
	must(t, err)
	deadline := time.Now().Add(10 * time.Second)
	for !logHas(t, a.AuditLog, path) {
		if time.Now().After(deadline) {
			t.Fatalf("%s has no event of %s", a.AuditLog, path)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if logHas(t, b.AuditLog, path) {
		t.Errorf("%s has an event of a request that went to a", b.AuditLog)
	}
}

func logHas(t *testing.T, file, text string) bool {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	return bytes.Contains(data, []byte(text))
}

func newClient(t *testing.T, c *controlplane.ControlPlane, user string) *http.Client {
	t.Helper()
	client, err := c.HTTPClient(user)
	must(t, err)
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func wantVersion(t *testing.T, client *http.Client, url, want string) {
	t.Helper()
	var v struct{ GitVersion string }
	_, body := get(t, client, url+"/version")
	if err := json.Unmarshal(body, &v); err != nil || v.GitVersion != want {
		t.Errorf("version of %s is %s (%v), want %s", url, body, err, want)
	}
}

func wantCode(t *testing.T, client *http.Client, url string, want int) {
	t.Helper()
	if got, body := get(t, client, url); got != want {
		t.Errorf("GET %s answered %d, want %d: %s", url, got, want, body)
	}
}

func wantRefused(t *testing.T, c *controlplane.ControlPlane, name string) {
	t.Helper()
	if err := c.Ready(t.Context(), name); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("server %s: %v, want connection refused", name, err)
	}
}

func get(t *testing.T, client *http.Client, url string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	return send(t, client, req)
}

func send(t *testing.T, client *http.Client, req *http.Request) (int, []byte) {
	t.Helper()
	resp, err := client.Do(req)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, body
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
