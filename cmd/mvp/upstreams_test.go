package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy"
)

// apiserver answers what MVP asks a kube-apiserver for, if it has MVP's token.
func apiserver(t *testing.T, token string) *httptest.Server {
	t.Helper()
	const group = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"apps"},` +
		`"versions":[{"version":"v1","resources":[{"resource":"deployments","scope":"Namespaced","verbs":["get"]}]}]}]}`
	answers := map[string]string{
		"/readyz": "ok", "/version": `{"major":"1","minor":"32","gitVersion":"v1.32.0"}`, "/apis": group,
		"/api": `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[]}`,
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		switch {
		case r.Header.Get("Authorization") != "Bearer "+token:
			w.WriteHeader(401)
		case !ok:
			w.WriteHeader(404)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		}
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// kubeconfigOf leads to a server, and has MVP's token.
func kubeconfigOf(s *httptest.Server, token string) string {
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	return fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: home,
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}],
users: [{name: u, user: {token: %s}}],
contexts: [{name: home, context: {cluster: c, user: u}}]}`, s.URL, ca, token)
}

// serveUntilTheEnd runs `mvp serve` until the test ends, and returns the URL of its
// admin listener.
func serveUntilTheEnd(t *testing.T, args ...string) (admin string) {
	t.Helper()
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--cert-dir", t.TempDir()}, args...)
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, args, streams{strings.NewReader(""), writer, writer})
		_ = writer.Close()
	}()
	lines := bufio.NewScanner(reader)
	for admin == "" && lines.Scan() {
		var record struct{ Msg, Admin string }
		if json.Unmarshal(lines.Bytes(), &record) == nil && record.Msg == "serving" {
			admin = "http://" + record.Admin
		}
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	t.Cleanup(func() {
		cancel()
		if got := <-code; got != exitOK {
			t.Errorf("serve exited %d", got)
		}
	})
	if admin == "" {
		t.Fatal("serve did not begin to serve")
	}
	return admin
}

// upstreamsOf asks /upstreams until it says what is wanted.
func upstreamsOf(t *testing.T, admin, want string) {
	t.Helper()
	var got string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		resp, err := http.Get(admin + "/upstreams")
		if err != nil {
			t.Fatal(err)
		}
		var report proxy.UpstreamsReport
		err = json.NewDecoder(resp.Body).Decode(&report)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		servers := []string{}
		for _, s := range report.Servers {
			servers = append(servers, fmt.Sprintf("%s %s %s healthy=%v", s.Name, s.URL, s.Version, s.Healthy))
		}
		if got = strings.Join(servers, "\n"); got == want {
			return
		}
	}
	t.Errorf("upstreams are\n%s\nwant\n%s", got, want)
}

// `mvp serve --kubeconfig` takes server, trust and credential from the file, and
// follows it to another server.
func TestServeKubeconfig(t *testing.T) {
	first, second := apiserver(t, "one"), apiserver(t, "two")
	file := filepath.Join(t.TempDir(), "config")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write(kubeconfigOf(first, "one"))
	admin := serveUntilTheEnd(t, "--kubeconfig", file)
	upstreamsOf(t, admin, fmt.Sprintf("home %s v1.32.0 healthy=true", first.URL))
	write(kubeconfigOf(second, "two"))
	upstreamsOf(t, admin, fmt.Sprintf("home %s v1.32.0 healthy=true", second.URL))
}
