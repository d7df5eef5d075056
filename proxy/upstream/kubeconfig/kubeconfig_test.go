package kubeconfig

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// document is a kubeconfig of one context, "main", with further lines of its cluster
// and its user.
func document(server, cluster, user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: main
clusters:
- name: c
  cluster:
    server: %s
%s
users:
- name: u
  user:
%s
contexts:
- name: main
  context: {cluster: c, user: u}
- name: other
  context: {cluster: c}
- name: lost
  context: {cluster: gone, user: u}
- name: nobody
  context: {cluster: c, user: gone}
`, server, indent(cluster), indent(user))
}

func indent(lines string) string {
	if lines == "" {
		return ""
	}
	return "    " + strings.ReplaceAll(lines, "\n", "\n    ")
}

// writeFile replaces the file, so that nobody sees half of it.
func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

func kubeconfig(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config")
	writeFile(t, name, content)
	return name
}

func TestServers(t *testing.T) {
	data := base64.StdEncoding.EncodeToString([]byte("PEM"))
	file := kubeconfig(t, document("https://10.0.0.1:6443",
		"certificate-authority-data: "+data+"\ntls-server-name: kubernetes",
		"client-certificate-data: "+data+"\nclient-key: keys/u.key\ntoken: t\ntokenFile: /run/token"))
	s, err := Open(file, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Servers()) != 1 {
		t.Fatalf("servers are %+v", s.Servers())
	}
	got := s.Servers()[0]
	if got.Name != "main" || got.URL != "https://10.0.0.1:6443" {
		t.Errorf("server is %+v", got)
	}
	a := got.Access
	if string(a.CAData) != "PEM" || a.CAFile != "" || a.ServerName != "kubernetes" || a.InsecureSkipTLSVerify {
		t.Errorf("trust is %+v", a)
	}
	// What a relative path means is the file's business, not the working directory's.
	if string(a.ClientCertData) != "PEM" || a.ClientKeyFile != filepath.Join(filepath.Dir(file), "keys/u.key") || a.Token != "t" || a.TokenFile != "/run/token" {
		t.Errorf("credential is %+v", a)
	}

	s, err = Open(file, []string{"other"}, slog.New(slog.DiscardHandler))
	if err != nil || s.Servers()[0].Name != "other" || s.Servers()[0].Access.HasCredential() {
		t.Errorf("servers %+v, error %v", s.Servers(), err)
	}
}

func TestSeveralContexts(t *testing.T) {
	one := document("https://10.0.0.1:6443", "", "token: t")
	two := strings.Replace(one, "clusters:\n", "clusters:\n- name: gone\n  cluster: {server: 'https://10.0.0.2:6443'}\n", 1)
	s, err := Open(kubeconfig(t, two), []string{"lost", "main"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	got := s.Servers()
	if len(got) != 2 || got[0].Name != "lost" || got[0].URL != "https://10.0.0.2:6443" || got[1].URL != "https://10.0.0.1:6443" {
		t.Errorf("servers are %+v", got)
	}
}

func TestMistakes(t *testing.T) {
	const server = "https://10.0.0.1:6443"
	f := func(content, contexts, want string) {
		t.Helper()
		file := kubeconfig(t, content)
		_, err := Open(file, strings.Fields(contexts), slog.New(slog.DiscardHandler))
		want = strings.ReplaceAll(want, "FILE", file)
		if err == nil || err.Error() != want {
			t.Errorf("error %v\nwant  %s", err, want)
		}
	}
	user := func(lines string) string { return document(server, "", lines) }
	cluster := func(lines string) string { return document(server, lines, "token: t") }
	const want = "give a token, a tokenFile or a client certificate"

	f(user("token: t"), "nowhere", `kubeconfig FILE has no context "nowhere"; its contexts: lost, main, nobody, other`)
	f(user("token: t"), "lost nobody", `context "lost" of kubeconfig FILE names the cluster "gone", which is not in it`+"\n"+
		`context "nobody" of kubeconfig FILE names the user "gone", which is not in it`)
	f(user("token: t"), "main other", `contexts "main" and "other" of kubeconfig FILE lead to the same kube-apiserver, https://10.0.0.1:6443: name one of them`)
	f(strings.Replace(user("token: t"), "current-context: main\n", "", 1), "", "kubeconfig FILE has no current context: name one of its contexts: lost, main, nobody, other")
	f("{}", "", "kubeconfig FILE has no current context: name one of its contexts: it has none")
	f("]", "", "cannot parse kubeconfig FILE: yaml: did not find expected node content")

	f(document("''", "", "token: t"), "", `cannot use context "main" of kubeconfig FILE: its cluster has no server`)
	f(cluster("proxy-url: socks5://localhost:1080"), "", `cannot use context "main" of kubeconfig FILE: its cluster has a proxy-url, and MVP connects to kube-apiservers directly: give a cluster without one`)
	f(cluster("insecure-skip-tls-verify: true\ncertificate-authority: ca.crt"), "", `cannot use context "main" of kubeconfig FILE: its cluster has a certificate authority and insecure-skip-tls-verify: give one of them`)
	f(user("exec: {command: aws, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}"), "", `cannot use context "main" of kubeconfig FILE: its user's credential comes from the program "aws" (exec), which MVP does not run: `+want)
	f(user("auth-provider: {name: oidc}"), "", `cannot use context "main" of kubeconfig FILE: its user's credential comes from the auth-provider "oidc", which MVP does not have: `+want)
	f(user("username: admin\npassword: secret"), "", `cannot use context "main" of kubeconfig FILE: its user has a user name and a password, which kube-apiservers no longer take: `+want)
	f(user("token: t\nas: root"), "", `cannot use context "main" of kubeconfig FILE: its user impersonates another one, which MVP does not do for its own requests: `+want+` of the user that MVP shall be`)
	f(document(server, "proxy-url: http://p", "username: admin"), "", `cannot use context "main" of kubeconfig FILE: its cluster has a proxy-url, and MVP connects to kube-apiservers directly: give a cluster without one`+"\n"+
		`its user has a user name and a password, which kube-apiservers no longer take: `+want)

	if _, err := Open("/nonexistent/config", nil, slog.New(slog.DiscardHandler)); err == nil || err.Error() != "cannot read the kubeconfig: open /nonexistent/config: no such file or directory" {
		t.Errorf("error %v", err)
	}
	f(strings.Repeat("#", maxFileBytes+1), "", "cannot use kubeconfig FILE: it is larger than 4194304 bytes")
}

// apiserver is as much of a kube-apiserver as a probe sees, and remembers the last
// token.
type apiserver struct {
	*httptest.Server
	mu    sync.Mutex
	token string
}

func newServer(t *testing.T) *apiserver {
	t.Helper()
	s := &apiserver{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.token = r.Header.Get("Authorization")
		s.mu.Unlock()
		if r.URL.Path != "/readyz" {
			w.WriteHeader(404)
		}
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *apiserver) saw() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

// document is a kubeconfig for the server with MVP's token.
func (s *apiserver) document(token string) string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return document(s.URL, "certificate-authority-data: "+base64.StdEncoding.EncodeToString(ca), "token: "+token)
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) count(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.buf.String(), text)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// A file that changes takes effect; one that is broken changes nothing and is told of
// once.
func TestFollow(t *testing.T) {
	first, second := newServer(t), newServer(t)
	file, log := kubeconfig(t, first.document("one")), &lockedBuffer{}
	source, err := Open(file, nil, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	source.interval = 5 * time.Millisecond
	pool, err := upstream.New(upstream.Config{
		Servers: source.Servers(), ProbeInterval: 5 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = pool.Run(ctx) })
	running.Go(func() { _ = source.Run(ctx, pool) })
	t.Cleanup(func() { cancel(); running.Wait() })
	healthy := func(url string) bool {
		servers := pool.View().Servers
		return len(servers) == 1 && servers[0].Healthy && servers[0].URL == url && servers[0].Name == "main"
	}

	eventually(t, "healthy", func() bool { return healthy(first.URL) && first.saw() == "Bearer one" })
	was := pool.View().Servers[0].Server
	writeFile(t, file, first.document("two"))
	eventually(t, "the new token", func() bool { return first.saw() == "Bearer two" })
	if pool.View().Servers[0].Server != was {
		t.Error("a new token made the server another one")
	}

	for _, broken := range []string{
		"]", first.document("three")[:200], document("https://h/with/path", "", "token: t"), document(first.URL, "certificate-authority: /nonexistent/ca", "token: t"),
	} {
		logged := log.count("cannot reload the kubeconfig")
		writeFile(t, file, broken)
		eventually(t, "the log tells", func() bool { return log.count("cannot reload the kubeconfig") > logged })
		if !healthy(first.URL) || first.saw() != "Bearer two" {
			t.Errorf("a broken file changed the servers: %+v", pool.View().Servers[0])
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log tells", func() bool { return log.count("no such file or directory") == 2 }) // with the CA of before

	writeFile(t, file, strings.Replace(second.document("four"), "current-context: main", "current-context: other", 1))
	eventually(t, "the other server, in the same context", func() bool { return healthy(second.URL) && second.saw() == "Bearer four" })
	if n := log.count("cannot reload the kubeconfig"); n != 5 {
		t.Errorf("5 problems are logged %d times", n)
	}
}
