package upstream

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// credentials writes MVP's two client certificates and its token to files.
func credentials(t *testing.T, a *authority) func(*Config) {
	t.Helper()
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		writeFile(t, path, data)
		return path
	}
	ownCert, ownKey := a.issue(t, "mvp")
	proxyCert, proxyKey := a.issue(t, "front-proxy")
	return func(c *Config) {
		c.CAFile = file("ca", a.pem())
		c.ClientCertFile, c.ClientKeyFile = file("cert", ownCert), file("key", ownKey)
		c.FrontProxyCertFile, c.FrontProxyKeyFile = file("proxy-cert", proxyCert), file("proxy-key", proxyKey)
		c.TokenFile = file("token", []byte("secret\n"))
	}
}

// A certificate of MVP's is presented for requests that ask for it, and never, not by
// a resumed session either, for others. HTTP/2 is not negotiated though it is offered.
func TestCredentials(t *testing.T) {
	a := newAuthority(t)
	s := serverAt(t, tlsServer(t, a, "kubernetes").URL, credentials(t, a))
	f := func(credential Credential, want string) {
		t.Helper()
		_, got, err := do(t, s, &Request{
			Method: "GET", Target: "/", Credential: credential, Header: fields("Impersonate-User", "u"),
		})
		if err != nil || got != want {
			t.Errorf("credential %v: %q, %v, want %q", credential, got, err, want)
		}
	}

	f(OwnCredential, "mvp by HTTP/1.1")
	f(ClientCredential, "nobody by HTTP/1.1")
	f(FrontProxyCredential, "front-proxy by HTTP/1.1")
	f(OwnCredential, "mvp by HTTP/1.1")
	f(FrontProxyCredential, "front-proxy by HTTP/1.1")
	s.idle.drop(func(*conn) bool { return true })
	f(FrontProxyCredential, "front-proxy, resumed by HTTP/1.1")
	f(ClientCredential, "nobody, resumed by HTTP/1.1")
	s.idle.drop(func(*conn) bool { return true })
	f(OwnCredential, "mvp, resumed by HTTP/1.1")
	doc, err := s.Get(testContext(t), "/", nil, 100)
	if err != nil || string(doc.Body) != "mvp, resumed by HTTP/1.1" {
		t.Errorf("Get: %v, %v", doc, err)
	}
}

// The token goes with MVP's own credential and with nothing else.
func TestOwnToken(t *testing.T) {
	got := make(chan string, 1)
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		for {
			req, err := readRequest(r)
			if err != nil {
				return
			}
			got <- req
			_, _ = io.WriteString(c, okAnswer)
		}
	})
	s := serverAt(t, "http://"+addr, func(c *Config) { c.Token = "secret" })
	f := func(credential Credential, want string) {
		t.Helper()
		_, _, err := do(t, s, &Request{
			Method: "GET", Target: "/", Host: "h", Credential: credential, Header: fields("Impersonate-User", "u"),
		})
		if head := within(t, got, "the request"); err != nil || head != want {
			t.Errorf("credential %v: %v, got %q, want %q", credential, err, head, want)
		}
	}

	f(ClientCredential, "GET / HTTP/1.1\r\nHost: h\r\nImpersonate-User: u\r\n\r\n")
	f(OwnCredential, "GET / HTTP/1.1\r\nHost: h\r\nImpersonate-User: u\r\nAuthorization: Bearer secret\r\n\r\n")

	doc, err := s.Post(testContext(t), "/reviews", []byte(`{}`), 100)
	if err != nil || doc.Status != 200 {
		t.Errorf("Post: %v, %v", doc, err)
	}
	want := "POST /reviews HTTP/1.1\r\nHost: " + addr + "\r\nContent-Type: application/json\r\nAccept: application/json\r\n" +
		"User-Agent: mvp\r\nAuthorization: Bearer secret\r\nContent-Length: 2\r\n\r\n{}"
	if head := within(t, got, "the request"); head != want {
		t.Errorf("Post sent %q, want %q", head, want)
	}
	if _, err := s.Post(testContext(t), "/reviews", nil, 1); err == nil || err.Error() != "the answer to POST /reviews is larger than 1 bytes" {
		t.Errorf("Post of a long answer: %v", err)
	}
}

// Nothing that would run with more than its client's rights is sent.
func TestCredentialIsRefused(t *testing.T) {
	none := func(*Config) {}
	token := func(c *Config) { c.Token = "secret" }
	f := func(configure func(*Config), req Request, want string) {
		t.Helper()
		addr := listen(t, answerEach("HTTP/1.1 500 reached\r\nContent-Length: 0\r\n\r\n"))
		s := serverAt(t, "http://"+addr, configure)
		req.Method, req.Target = "GET", "/"
		_, _, err := do(t, s, &req)
		wantError(t, err, OpRequest, false, want)
		_, conn, err := s.Upgrade(testContext(t), &req)
		wantError(t, err, OpRequest, false, want)
		if conn != nil {
			t.Error("a tunnel was opened")
		}
	}

	f(none, Request{Credential: FrontProxyCredential}, "MVP has no front-proxy certificate")
	f(none, Request{Credential: OwnCredential, Header: fields("Impersonate-User", "u")}, "MVP has no credential of its own")
	f(token, Request{Credential: OwnCredential}, "must name one user in Impersonate-User")
	f(token, Request{Credential: OwnCredential, Header: fields("Impersonate-User", "")}, "must name one user in Impersonate-User")
	f(token, Request{Credential: OwnCredential, Header: fields("Impersonate-User", "", "Impersonate-User", "u")}, "must name one user in Impersonate-User")
	f(token, Request{Credential: OwnCredential, Header: fields("Impersonate-User", "u", "impersonate-user", "v")}, "must name one user in Impersonate-User")
	f(token, Request{Credential: OwnCredential, Header: fields("Impersonate-Group", "g")}, "must name one user in Impersonate-User")
	f(token, Request{Credential: OwnCredential, Header: fields("Impersonate-User", "u", "authorization", "Bearer x")}, "must not bring an Authorization of its own")
}

func TestFrontProxyNeedsTLS(t *testing.T) {
	a := newAuthority(t)
	cfg := Config{Servers: []ServerConfig{{URL: "http://127.0.0.1:1"}}}
	credentials(t, a)(&cfg)
	_, err := New(cfg)
	if err == nil || !strings.Contains(err.Error(), "want https, where it can be presented") {
		t.Errorf("error %v", err)
	}
}

func TestHas(t *testing.T) {
	a := newAuthority(t)
	f := func(configure func(*Config), wantProxy, wantOwn bool) {
		t.Helper()
		cfg := Config{Servers: []ServerConfig{{URL: "https://127.0.0.1:1"}}, Log: slog.New(slog.DiscardHandler)}
		configure(&cfg)
		p, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if !p.Has(ClientCredential) || p.Has(FrontProxyCredential) != wantProxy || p.Has(OwnCredential) != wantOwn {
			t.Errorf("has %v, %v, want %v, %v", p.Has(FrontProxyCredential), p.Has(OwnCredential), wantProxy, wantOwn)
		}
	}

	f(func(*Config) {}, false, false)
	f(func(c *Config) { c.Token = "t" }, false, true)
	f(credentials(t, a), true, true)
}

// A renewed front-proxy certificate is presented without a restart, and connections
// that presented the old one are not used again.
func TestFrontProxyReload(t *testing.T) {
	a := newAuthority(t)
	var cfg Config
	s := serverAt(t, tlsServer(t, a, "kubernetes").URL, func(c *Config) { credentials(t, a)(c); cfg = *c })
	ask := func() string {
		t.Helper()
		resp, err := s.RoundTrip(testContext(t), &Request{Method: "GET", Target: "/", Credential: FrontProxyCredential})
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if got := ask(); got != "front-proxy by HTTP/1.1" {
		t.Errorf("before: %q", got)
	}
	cert, key := a.issue(t, "renewed")
	writeFile(t, cfg.FrontProxyCertFile, cert)
	if _, err := s.secrets.reload(); err == nil || !strings.Contains(err.Error(), "cannot use front-proxy certificate") {
		t.Errorf("half of a renewal: %v", err)
	}
	if got := ask(); got != "front-proxy by HTTP/1.1" {
		t.Errorf("after half of a renewal: %q", got)
	}
	writeFile(t, cfg.FrontProxyKeyFile, key)
	if changed, err := s.secrets.reload(); err != nil || !changed {
		t.Fatalf("reload: %v, %v", changed, err)
	}
	if got := ask(); got != "renewed by HTTP/1.1" {
		t.Errorf("after: %q", got)
	}
}
