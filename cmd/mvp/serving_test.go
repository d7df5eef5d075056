package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/examples/demo"
	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// serving is an MVP that serves, before a control plane in memory.
type serving struct {
	*stack
	t      testing.TB
	client *http.Client
	logs   *logBuffer
}

// startServing serves with the policies of dir.
func startServing(t testing.TB, plane *demo.ControlPlane, dir string) *serving {
	t.Helper()
	certFile, keyFile, err := front.SelfSigned(t.TempDir(), nil)
	must(t, err)
	logs := &logBuffer{}
	log := slog.New(slog.NewTextHandler(logs, nil))
	certificates, err := front.LoadCertificates(front.CertificateFiles{CertFile: certFile, KeyFile: keyFile}, log)
	must(t, err)
	cfg := stackConfig{
		policies: policies.Options{Dirs: []string{dir}}, certificates: certificates,
		listen: "127.0.0.1:0", adminListen: "127.0.0.1:0", grace: time.Second, log: log,
	}
	cfg.upstream.CAFile = plane.CAFile()
	for _, server := range plane.Servers() {
		cfg.upstream.Servers = append(cfg.upstream.Servers, upstream.ServerConfig{Name: server.Name, URL: server.URL()})
	}
	s, err := newStack(cfg)
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	t.Cleanup(func() {
		stop()
		must(t, <-ended)
	})
	pem, err := os.ReadFile(certFile)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	r := &serving{stack: s, t: t, client: &http.Client{Transport: transport}, logs: logs}
	r.waitFor("every server is known", s.proxy.Synced)
	return r
}

// waitFor waits for what other goroutines make true.
func (r *serving) waitFor(what string, ok func() bool) {
	r.t.Helper()
	if !polled(ok) {
		r.t.Fatalf("never: %s; status: %+v\nlog:\n%s", what, r.policies.Status(), r.logs)
	}
}

// polled asks until ok says so, and gives up after a minute. What is waited for is told to
// nobody but those who ask.
func polled(ok func() bool) bool {
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) { // the pace of asking; nothing is taken for done by then
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// get answers with the code, the body and the warnings.
func (r *serving) get(path string) (code int, body string, warnings []string, err error) {
	resp, err := r.client.Get("https://" + r.clients.Addr().String() + path)
	if err != nil {
		return 0, "", nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), resp.Header.Values("Warning"), err
}

// adminGet is what the admin listener answers.
func (r *serving) adminGet(path string) string {
	r.t.Helper()
	resp, err := http.Get("http://" + r.admins.Addr().String() + path)
	must(r.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	must(r.t, err)
	return string(data)
}

// logBuffer is a log that a test can read while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// forget empties the log.
func (l *logBuffer) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
