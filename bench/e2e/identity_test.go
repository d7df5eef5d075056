package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
)

// TestIdentities shows on real kube-apiservers that a client is through MVP who it is
// without, whatever it presents, and never anybody else.
func TestIdentities(t *testing.T) {
	t.Parallel()
	l := startLab(t)
	admin := l.direct(t, "b")
	for _, name := range []string{"rbac-token-review", "rbac-impersonate"} {
		admin.ok("apply", "-f", "../../examples/kubernetes/"+name+".yaml")
		admin.ok("create", "clusterrolebinding", "lab-"+name, "--clusterrole="+strings.Replace(name, "rbac", "mvp", 1), "--user="+controlplane.Discovery)
	}
	// Carol presents a certificate.
	certFile, keyFile, err := l.ClientCert("carol", "dev", "qa")
	if err != nil {
		t.Fatal(err)
	}
	carol := credential{cert: certFile, key: keyFile}
	admin.ok("apply", "-f", write(t, "as-bob.yaml", asBob))
	// MVP impersonates for her, so it needs the rights to extra attributes, too.
	admin.ok("create", "clusterrolebinding", "as-bob", "--clusterrole=as-bob", "--user=carol", "--user="+controlplane.Discovery)

	files := l.Files()
	frontProxy := []string{"--client-ca-file", files.ClientCA, "--proxy-client-cert-file", files.FrontProxyCert, "--proxy-client-key-file", files.FrontProxyKey}
	impersonate := []string{"--client-ca-file", files.ClientCA, "--impersonate"}
	for _, mode := range []struct {
		name  string
		flags []string
	}{{"front proxy", frontProxy}, {"impersonate", impersonate}} {
		t.Run(mode.name, func(t *testing.T) {
			m := l.serveWith(t, nil, mode.flags...)
			t.Run("whoami", func(t *testing.T) { testWhoAmI(t, m, carol) })
			t.Run("spoof", func(t *testing.T) { testSpoof(t, m, carol) })
		})
	}
	t.Run("no mode", func(t *testing.T) {
		m := l.serveWith(t, nil, "--client-ca-file", files.ClientCA)
		code, body := m.request(t, carol, "/api/v1/pods", nil)
		if code != 401 || !strings.Contains(body, "--proxy-client-cert-file") {
			t.Errorf("a certificate was answered %d %s", code, body)
		}
	})
	t.Run("policies", func(t *testing.T) { testPolicyUser(t, l, carol, frontProxy) })
	t.Run("renewal", func(t *testing.T) { testRenewal(t, l, carol) })
}

// asBob lets somebody impersonate bob, in the group ops and with two extra attributes,
// and nobody else.
const asBob = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: as-bob}
rules:
  - {apiGroups: [""], resources: [users], resourceNames: [bob], verbs: [impersonate]}
  - {apiGroups: [""], resources: [groups], resourceNames: [ops], verbs: [impersonate]}
  - {apiGroups: [authentication.k8s.io], resources: [uids], resourceNames: [u-9], verbs: [impersonate]}
  - {apiGroups: [authentication.k8s.io], resources: [userextras/acme.io/project, userextras/plain], verbs: [impersonate]}
`

// credential is what a client presents.
type credential struct{ token, cert, key string }

// kubeconfig writes a kubeconfig with the credential for url.
func (l *lab) kubeconfig(t *testing.T, c credential, url string) string {
	t.Helper()
	user := fmt.Sprintf("{token: %q}", c.token)
	if c.cert != "" {
		user = fmt.Sprintf("{client-certificate: %q, client-key: %q}", c.cert, c.key)
	}
	return write(t, "kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: u, user: %s}]
contexts: [{name: c, context: {cluster: c, user: u}}]
`, url, l.Files().CA, user))
}

// whoAmI is the user that a server says the credential is.
func (l *lab) whoAmI(t *testing.T, version string, c credential, url string, as ...string) string {
	t.Helper()
	k := kubectl{t, l, version, l.kubeconfig(t, c, url)}
	return k.ok(append([]string{"auth", "whoami", "-o", "json"}, as...)...)
}

// testWhoAmI compares who a client is through MVP and directly. The newer server is
// asked, since the older one does not tell the fingerprint of a certificate.
func testWhoAmI(t *testing.T, m *mvp, carol credential) {
	alice := credential{token: m.lab.Token(controlplane.Alice)}
	admin := credential{token: m.lab.Token(controlplane.Admin)}
	// Kubectl 1.31 has no flag for extra attributes.
	extra := []string{"--as-user-extra=acme.io/project=p1", "--as-user-extra=acme.io/project=p 2", "--as-user-extra=plain=x"}
	for _, version := range []string{newKubectl, "1.35"} {
		for _, tt := range []struct {
			name string
			who  credential
			as   []string
		}{
			{"admin as bob with extra", admin, append([]string{"--as=bob"}, extra...)},
			{"carol as bob with extra", carol, append([]string{"--as=bob"}, extra...)},
			{"token", alice, nil},
			{"certificate", carol, nil},
			{"admin as bob", admin, []string{"--as=bob"}},
			{"admin as bob with all", admin, []string{"--as=bob", "--as-group=g1", "--as-group=g2", "--as-uid=u-9"}},
			{"admin as a service account", admin, []string{"--as=system:serviceaccount:default:robot"}},
			{"carol as bob", carol, []string{"--as=bob"}},
			{"carol as bob with all", carol, []string{"--as=bob", "--as-group=ops", "--as-uid=u-9"}},
		} {
			if version == newKubectl && slices.Contains(tt.as, extra[0]) {
				continue
			}
			t.Run(version+" "+tt.name, func(t *testing.T) {
				want := m.lab.whoAmI(t, version, tt.who, m.lab.URL("b"), tt.as...)
				got := m.lab.whoAmI(t, version, tt.who, m.url, tt.as...)
				if userOf(t, got) != userOf(t, want) {
					t.Errorf("through MVP:\n%s\ndirectly:\n%s", got, want)
				}
			})
		}
	}
	for _, as := range [][]string{{"--as=admin"}, {"--as=bob", "--as-group=system:masters"}, {"--as=bob", "--as-uid=0"}} {
		k := kubectl{t, m.lab, newKubectl, m.lab.kubeconfig(t, carol, m.url)}
		k.fails(`User "carol" cannot impersonate`, append([]string{"get", "--raw", "/api/v1/namespaces"}, as...)...)
	}
}

// userOf is the part of a SelfSubjectReview that tells the user.
func userOf(t *testing.T, review string) string {
	t.Helper()
	var read struct {
		Status struct {
			UserInfo struct {
				Username, UID string
				Groups        []string
				Extra         map[string][]string
			}
		}
	}
	if err := json.Unmarshal([]byte(review), &read); err != nil || read.Status.UserInfo.Username == "" {
		t.Fatalf("cannot read %q: %v", review, err)
	}
	slices.Sort(read.Status.UserInfo.Groups)
	return fmt.Sprintf("%+v", read.Status.UserInfo)
}

// spoofs are header lines of which none may gain a client anything.
var spoofs = []http.Header{
	{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}},
	{"x-remote-user": {"admin"}, "X-REMOTE-GROUP": {"system:masters"}, "X-Remote-Uid": {"0"}, "X-Remote-Extra-Scopes": {"all"}},
	{"X-Remote-Group": {"system:masters"}, "Connection": {"X-Remote-User"}},
	{"X-Remote-Group": {"system:masters"}, "Connection": {"X-Remote-Group, keep-alive"}},
	{"Impersonate-User": {"admin"}, "Impersonate-Group": {"system:masters"}},
	{"Impersonate-User": {""}},
	{"Impersonate-Group": {"system:masters"}},
	{"Impersonate-User": {"admin"}, "Connection": {"Impersonate-User"}},
	{"Impersonate-User": {"admin"}, "Connection": {"Authorization"}},
	{"Connection": {"Authorization"}},
	{"X-Kubernetes-Peer-Proxied": {"true"}},
	{"Impersonate-Extra-Scopes": {"all"}, "Impersonate-Uid": {"0"}},
}

// testSpoof shows that a client with few rights has no more with any header line.
func testSpoof(t *testing.T, m *mvp, carol credential) {
	clients := map[string]credential{"a token": {token: m.lab.Token(controlplane.Alice)}, "a certificate": carol, "nothing": {}}
	for name, c := range clients {
		for _, spoof := range spoofs {
			code, body := m.request(t, c, "/api/v1/secrets", spoof)
			if code != 401 && code != 403 && code != 400 && code != 500 || strings.Contains(body, "SecretList") {
				t.Errorf("%s with %v was answered %d %s", name, spoof, code, body)
			}
			if code == 500 && !strings.Contains(body, "without impersonating a user") { // kube-apiserver's own answer
				t.Errorf("%s with %v was answered %d %s", name, spoof, code, body)
			}
		}
	}
	if code, _ := m.request(t, credential{token: m.lab.Token(controlplane.Admin)}, "/api/v1/secrets", nil); code != 200 {
		t.Errorf("the administrator was answered %d", code)
	}
}

// request sends a GET on a connection of its own.
func (m *mvp) request(t *testing.T, c credential, path string, header http.Header) (int, string) {
	t.Helper()
	ca, err := os.ReadFile(m.lab.Files().CA)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(ca)
	if c.cert != "" {
		pair, err := tls.LoadX509KeyPair(c.cert, c.key)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header { // as written, not in Go's form
		req.Header[name] = values
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: 30 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// testPolicyUser shows that policies know the user of each credential.
func testPolicyUser(t *testing.T, l *lab, carol credential, flags []string) {
	m := l.serveWith(t, map[string]string{
		"who.match.cel": `request.resource == 'configmaps'`,
		"who.deny.cel":  `user.name in ['alice', 'carol'] ? user.name + ' ' + user.uid + ' ' + user.groups.join(',') : ''`,
	}, append(flags, "--authentication-token-review")...)
	f := func(c credential, code int, want string) {
		t.Helper()
		if got, body := m.request(t, c, "/api/v1/namespaces/default/configmaps", nil); got != code || !strings.Contains(body, want) {
			t.Errorf("answered %d %s, want %d with %q", got, body, code, want)
		}
	}

	f(credential{token: l.Token(controlplane.Alice)}, 403, "alice uid-alice ")
	f(carol, 403, "carol  qa,dev,system:authenticated")
	f(credential{token: l.Token(controlplane.Admin)}, 200, "ConfigMapList")
	f(credential{token: "nobody's"}, 401, "does not know the bearer token")
	f(credential{}, 403, `"system:anonymous\" cannot list`)
}

// testRenewal shows that MVP presents a front-proxy certificate that was renewed on
// disk, without a restart.
func testRenewal(t *testing.T, l *lab, carol credential) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	place := func(certFile, keyFile string) {
		for from, to := range map[string]string{certFile: cert, keyFile: key} {
			content, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	files := l.Files()
	place(carol.cert, carol.key) // nobody's front proxy
	m := l.serveWith(t, nil, "--client-ca-file", files.ClientCA, "--proxy-client-cert-file", cert, "--proxy-client-key-file", key)
	const path = "/apis/authentication.k8s.io/v1"
	who := credential{cert: files.AdminCert, key: files.AdminKey}
	if code, body := m.request(t, who, "/api/v1/secrets", nil); code != 403 {
		t.Errorf("before: answered %d %s", code, body)
	}
	place(files.FrontProxyCert, files.FrontProxyKey)
	m.eventually("the renewed certificate is presented", func() bool {
		code, _ := m.request(t, who, "/api/v1/secrets", nil)
		return code == 200
	})
	if code, body := m.request(t, carol, path, nil); code != 200 {
		t.Errorf("after: answered %d %s", code, body)
	}
}
