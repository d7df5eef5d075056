package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/csv"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/bench/lab/binaries"
)

// layOut makes a control plane of which nothing is started.
func layOut(t *testing.T, cfg Config) *ControlPlane {
	t.Helper()
	c := &ControlPlane{dir: t.TempDir()}
	if err := c.create(cfg); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir, nil); !errors.Is(err, ErrNoLab) || err.Error() != dir+": no control plane here" {
		t.Errorf("Open of an empty directory: %v", err)
	}

	c := layOut(t, Config{Versions: []string{"1.31.14", "1.31.14", "1.32.13"}, Audit: true})
	again, err := Open(c.Dir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(again.Names(), " "); got != "a b c" {
		t.Errorf("names are %s, want a b c", got)
	}
	s, err := again.Server("c")
	if err != nil {
		t.Fatal(err)
	}
	want := Server{
		Name:     "c",
		Version:  "1.32.13",
		URL:      c.URL("c"),
		Log:      filepath.Join(c.Dir(), "log", "c.log"),
		AuditLog: filepath.Join(c.Dir(), "log", "c-audit.log"),
	}
	if s != want {
		t.Errorf("server c is %+v, want %+v", s, want)
	}
	if again.Token(Alice) == "" || again.Token(Alice) != c.Token(Alice) {
		t.Errorf("token of alice was %q and is now %q", c.Token(Alice), again.Token(Alice))
	}
}

func TestContinue(t *testing.T) {
	c := layOut(t, Config{Versions: []string{"1.31.14", "1.32.13"}})
	f := func(want string, versions ...string) {
		t.Helper()
		err := (&ControlPlane{dir: c.dir}).loadOrCreate(Config{Versions: versions})
		got := ""
		if err != nil {
			got = strings.ReplaceAll(err.Error(), c.dir, "DIR")
		}
		if got != want {
			t.Errorf("continue with %v: %q, want %q", versions, got, want)
		}
	}

	f("")
	f("", "1.31.14", "1.32.13")
	f("DIR has a control plane of 2 kube-apiservers, not 1: take it down first", "1.31.14")
	f("server b in DIR is of version 1.32.13, not 1.31.14: upgrade it, or take the control plane down first", "1.31.14", "1.31.14")
}

func TestUnknownServer(t *testing.T) {
	c := layOut(t, Config{})
	want := `no server "z": want one of a, b, etcd`
	f := func(err error) {
		t.Helper()
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}

	f(c.Start(t.Context(), "z"))
	f(c.Launch(t.Context(), "z"))
	f(c.Stop(t.Context(), "z"))
	f(c.Kill(t.Context(), "z"))
	f(c.Pause("z"))
	f(c.Resume("z"))
	f(c.Restart(t.Context(), "z"))
	f(c.Upgrade(t.Context(), "z", "1.32.13"))
	f(c.WaitReady(t.Context(), "z"))
	f(c.Ready(t.Context(), "z"))

	want = "cannot upgrade etcd: only kube-apiservers have versions to choose from"
	f(c.Upgrade(t.Context(), Etcd, "1.32.13"))
}

func TestStopped(t *testing.T) {
	c := layOut(t, Config{})
	for _, name := range []string{"a", Etcd} {
		if err := errors.Join(c.Stop(t.Context(), name), c.Kill(t.Context(), name), c.Pause(name), c.Resume(name)); err != nil {
			t.Errorf("%s does not run: %v", name, err)
		}
	}
	err := c.WaitReady(t.Context(), "a")
	if want := "a does not run\nit has no log yet"; err == nil || err.Error() != want {
		t.Errorf("WaitReady: %v, want %q", err, want)
	}
}

func TestRemove(t *testing.T) {
	c := layOut(t, Config{})
	if err := c.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory is left: %v", err)
	}

	c = layOut(t, Config{Kubelet: true})
	other := filepath.Join(c.Dir(), "other")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Remove(); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(c.Dir(), "*"))
	if err != nil || !slices.Equal(left, []string{other}) {
		t.Errorf("left are %v, %v; want only what is not ours", left, err)
	}
}

func TestFreeAddresses(t *testing.T) {
	addrs, err := freeAddresses(400)
	if err != nil {
		t.Fatal(err)
	}
	more, err := freeAddresses(400) // nobody listens on the first ones yet
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	addrs = append(addrs, more...)
	for _, addr := range addrs {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(port)
		if err != nil || host != "127.0.0.1" || n < minPort || n >= maxPort || seen[addr] {
			t.Errorf("bad or repeated address %s", addr)
		}
		seen[addr] = true
	}
}

func TestTokens(t *testing.T) {
	c := layOut(t, Config{})
	f, err := os.Open(c.path("tokens.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{c.Token(Admin), "admin", "uid-admin", "system:masters"},
		{c.Token(Alice), "alice", "uid-alice", ""},
		{c.Token(Discovery), "mvp-discovery", "uid-mvp-discovery", ""},
	}
	if !slices.EqualFunc(records, want, slices.Equal) {
		t.Errorf("tokens are %q, want %q", records, want)
	}
}

func TestCertificates(t *testing.T) {
	c := layOut(t, Config{})
	proxyCert, proxyKey, err := c.ServingCert("proxy", "proxy.example", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	bobCert, bobKey, err := c.ClientCert("bob", "devs")
	if err != nil {
		t.Fatal(err)
	}
	files := c.Files()
	tests := []struct {
		name, cert, key, ca, host, subject string
	}{
		{"kube-apiserver", c.pki("a.crt"), c.pki("a.key"), files.CA, "127.0.0.1", "CN=kube-apiserver-a"},
		{"proxy", proxyCert, proxyKey, files.CA, "proxy.example", "CN=proxy"},
		{"admin", files.AdminCert, files.AdminKey, files.ClientCA, "", "CN=admin,O=system:masters"},
		{"other user", bobCert, bobKey, files.ClientCA, "", "CN=bob,O=devs"},
		{"front proxy", files.FrontProxyCert, files.FrontProxyKey, files.RequestHeaderCA, "", "CN=front-proxy-client"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pair, err := tls.LoadX509KeyPair(tt.cert, tt.key)
			if err != nil {
				t.Fatal(err)
			}
			if got := pair.Leaf.Subject.String(); got != tt.subject {
				t.Errorf("subject is %s, want %s", got, tt.subject)
			}
			roots, err := loadRoots(tt.ca)
			if err != nil {
				t.Fatal(err)
			}
			opts := x509.VerifyOptions{Roots: roots, DNSName: tt.host, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
			if tt.host != "" {
				opts.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
			}
			if _, err := pair.Leaf.Verify(opts); err != nil {
				t.Error(err)
			}
		})
	}

	_, _, err = c.ServingCert("../x", "h")
	if want := `cannot name a file "serving-../x"`; err == nil || err.Error() != want {
		t.Errorf("ServingCert: %v, want %q", err, want)
	}
}

func TestAPIServerFlags(t *testing.T) {
	c := layOut(t, Config{
		Versions: []string{"1.31.14"}, APIServerArgs: []string{"--v=4"}, Audit: true,
		VersionArgs: map[string][]string{"1.32.13": {"--v=5"}},
	})
	v31, v32 := binaries.Version{Minor: 31, Patch: 14}, binaries.Version{Minor: 32, Patch: 13}
	args := c.apiServerArgs("a", v31, false)
	if last := args[len(args)-1]; last != "--v=4" {
		t.Errorf("last flag is %s, want the caller's --v=4", last)
	}
	f := func(flag string, want bool) {
		t.Helper()
		if got := slices.Contains(args, flag); got != want {
			t.Errorf("has %s = %v, want %v", flag, got, want)
		}
	}
	f("--bind-address=127.0.0.1", true)
	f("--requestheader-username-headers=X-Remote-User", true)
	f("--audit-log-path="+c.auditLog("a"), true)
	f("--requestheader-uid-headers=X-Remote-Uid", false)
	args = c.apiServerArgs("a", v32, true)
	f("--requestheader-uid-headers=X-Remote-Uid", true)
	if last := args[len(args)-1]; last != "--v=5" {
		t.Errorf("last flag is %s, want the version's --v=5", last)
	}
}

func TestTakesUID(t *testing.T) {
	f := func(want bool, minors ...int) {
		t.Helper()
		var versions []binaries.Version
		for _, m := range minors {
			versions = append(versions, binaries.Version{Minor: m})
		}
		if got := takesUID(versions); got != want {
			t.Errorf("takesUID(%v) = %v, want %v", minors, got, want)
		}
	}

	f(true, 32, 33)
	f(false, 31, 32)
	f(false, 32, 31)
}

func TestKubeconfig(t *testing.T) {
	got := kubeconfig("alice", "tok", []byte("CA"), []Endpoint{{"mvp", "https://127.0.0.1:1"}, {"a", "https://127.0.0.1:2"}})
	want := `apiVersion: v1
kind: Config
current-context: "mvp"
clusters:
- name: "mvp"
  cluster:
    server: "https://127.0.0.1:1"
    certificate-authority-data: "Q0E="
- name: "a"
  cluster:
    server: "https://127.0.0.1:2"
    certificate-authority-data: "Q0E="
contexts:
- name: "mvp"
  context:
    cluster: "mvp"
    user: "alice"
- name: "a"
  context:
    cluster: "a"
    user: "alice"
users:
- name: "alice"
  user:
    token: "tok"
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestKubeconfigFiles(t *testing.T) {
	c := layOut(t, Config{})
	for _, path := range []string{c.KubeconfigPath(Admin), c.KubeconfigPath(Alice, "b"), c.KubeconfigPath(Discovery, "a")} {
		data, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(data), "apiVersion: v1\nkind: Config\n") {
			t.Errorf("%s: %v, %q", path, err, data)
		}
	}
	path, err := c.Kubeconfig(Alice, Endpoint{"mvp", "https://127.0.0.1:1"})
	if err != nil || path != c.KubeconfigPath(Alice, "mvp") {
		t.Errorf("Kubeconfig = %q, %v; want %q", path, err, c.KubeconfigPath(Alice, "mvp"))
	}

	f := func(user, want string, endpoints ...Endpoint) {
		t.Helper()
		if _, err := c.Kubeconfig(user, endpoints...); err == nil || err.Error() != want {
			t.Errorf("Kubeconfig(%q): %v, want %q", user, err, want)
		}
	}
	f("bob", `no token for user "bob"`, Endpoint{"a", "u"})
	f(Admin, "cannot write a kubeconfig without an endpoint")
	f(Admin, `cannot name a kubeconfig for endpoint "../x"`, Endpoint{"../x", "u"})
}
