package upstream

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority is a CA that issues certificates for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test CA"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// issue returns a certificate and its key, PEM, for 127.0.0.1 and name.
func (a *authority) issue(t *testing.T, name string) (certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// tlsServer answers with the common name of the client's certificate, and with whether
// the TLS session was resumed.
func tlsServer(t *testing.T, a *authority, name string) *httptest.Server {
	t.Helper()
	certPEM, keyPEM := a.issue(t, name)
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(a.cert)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			who = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		if r.TLS.DidResume {
			who += ", resumed"
		}
		_, _ = io.WriteString(w, who+" by "+r.Proto)
	}))
	srv.EnableHTTP2 = true
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clients}
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

func TestServerNameIsVerified(t *testing.T) {
	a := newAuthority(t)
	ca := filepath.Join(t.TempDir(), "ca")
	writeFile(t, ca, a.pem())
	srv := tlsServer(t, a, "kubernetes.default.svc")
	try := func(name string, skip bool) error {
		s := serverAt(t, srv.URL, func(c *Config) { c.CAFile, c.ServerName, c.InsecureSkipTLSVerify = ca, name, skip })
		_, _, err := get(t, s, "/")
		return err
	}
	if err := try("kubernetes.default.svc", false); err != nil {
		t.Error(err)
	}
	if err := try("", false); err != nil {
		t.Errorf("by address: %v", err)
	}
	if err := try("other", true); err != nil {
		t.Errorf("unverified: %v", err)
	}
	wantError(t, try("other", false), OpHandshake, false, "not other")
}

// A new CA is taken from its file; connections made under the old one are not used
// again, and a broken file changes nothing.
func TestCAReload(t *testing.T) {
	old, next := newAuthority(t), newAuthority(t)
	ca := filepath.Join(t.TempDir(), "ca")
	writeFile(t, ca, old.pem())
	s := serverAt(t, tlsServer(t, old, "a").URL, func(c *Config) { c.CAFile = ca })
	if _, _, err := get(t, s, "/"); err != nil {
		t.Fatal(err)
	}
	reload := func(data []byte) error {
		writeFile(t, ca, data)
		_, err := s.secrets.reload()
		s.idle.sweep()
		return err
	}

	if err := reload([]byte("half a fi")); err == nil || !strings.HasSuffix(err.Error(), "it has no PEM certificate") {
		t.Errorf("a broken file: %v", err)
	}
	if n := idleCount(s); n != 1 {
		t.Errorf("%d connections after a broken file, want 1", n)
	}
	if err := reload(next.pem()); err != nil {
		t.Fatal(err)
	}
	if n := idleCount(s); n != 0 {
		t.Errorf("%d connections of the old CA are kept", n)
	}
	_, _, err := get(t, s, "/")
	wantError(t, err, OpHandshake, false, "unknown authority")
	if err := reload(append(next.pem(), old.pem()...)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := get(t, s, "/"); err != nil {
		t.Error(err)
	}
}

// Run follows the files: the probes use a new token soon after it was written.
func TestTokenReload(t *testing.T) {
	f := newFake(t)
	token := filepath.Join(t.TempDir(), "token")
	writeFile(t, token, []byte("one\n"))
	runPool(t, func(c *Config) { c.TokenFile, c.Token = token, "ignored" }, f)
	sent := func() string {
		_, r := f.asked("/readyz")
		return r.Header.Get("Authorization")
	}
	if got := sent(); got != "Bearer one" {
		t.Errorf("Authorization %q", got)
	}
	writeFile(t, token, []byte("two"))
	eventually(t, "the new token", func() bool { return sent() == "Bearer two" })
}

func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(data string) string {
		name := filepath.Join(dir, "file")
		writeFile(t, name, []byte(data))
		return name
	}
	f := func(change func(*Config), want string) {
		t.Helper()
		cfg := Config{Servers: []ServerConfig{{URL: "https://a"}}}
		change(&cfg)
		_, err := New(cfg)
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), dir+"/", ""), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}

	f(func(c *Config) { c.TokenFile = file(" \n") }, "cannot use token file file: want one line that is not empty")
	f(func(c *Config) { c.TokenFile = file("a\nb") }, "cannot use token file file: want one line that is not empty")
	f(func(c *Config) { c.TokenFile = file(strings.Repeat("x", maxSecretBytes+1)) }, "cannot use file: it is larger than 1048576 bytes")
	f(func(c *Config) { c.ClientCertFile = file("x"); c.ClientKeyFile = c.ClientCertFile }, "cannot use client certificate file with key file: tls: failed to find any PEM data")
	f(func(c *Config) { c.FrontProxyCertFile = file("x"); c.FrontProxyKeyFile = c.FrontProxyCertFile }, "cannot use front-proxy certificate file with key file: tls: failed to find any PEM data")
	f(func(c *Config) { c.FrontProxyCertFile = file("x") }, "a front-proxy certificate needs both its certificate file and its key file")
	f(func(c *Config) { c.CAFile = dir }, "is a directory")
}

// A server that takes the connection and says nothing costs the handshake's limit.
func TestSilentHandshake(t *testing.T) {
	addr := listen(t, func(_ int, _ net.Conn, r *bufio.Reader) { _, _ = io.Copy(io.Discard, r) })
	s := serverAt(t, "https://"+addr, func(c *Config) { c.HandshakeTimeout = 20 * time.Millisecond })
	_, _, err := get(t, s, "/")
	wantError(t, err, OpHandshake, false, "deadline exceeded")
	var e *Error
	if !errors.As(err, &e) || !e.Timeout {
		t.Error("Timeout is not set")
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the client left"))
	_, err = s.RoundTrip(ctx, &Request{Method: "GET", Target: "/"})
	wantError(t, err, OpDial, false, "the client left")
}

// Below TLS the end of a connection is seen too, before a request is written to it.
func TestStaleTLSConnectionIsReplaced(t *testing.T) {
	a := newAuthority(t)
	ca := filepath.Join(t.TempDir(), "ca")
	writeFile(t, ca, a.pem())
	srv := tlsServer(t, a, "a")
	s := serverAt(t, srv.URL, func(c *Config) { c.CAFile = ca })
	for range 10 {
		if _, _, err := do(t, s, &Request{Method: "POST", Target: "/"}); err != nil {
			t.Fatal(err)
		}
		if n := idleAlive(s); n != 1 {
			t.Fatalf("%d connections are reusable, want 1", n)
		}
		srv.CloseClientConnections()
		eventually(t, "the close is seen", func() bool { return idleAlive(s) == 0 })
	}
}

// Idle connections to an address that the server's name no longer has are dropped.
func TestNameMoves(t *testing.T) {
	s := serverAt(t, "http://"+listen(t, answerEach(okAnswer)), nil)
	if _, _, err := get(t, s, "/"); err != nil {
		t.Fatal(err)
	}
	s.moveTo([]netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")})
	if n := idleCount(s); n != 1 {
		t.Errorf("%d connections to an address that stayed, want 1", n)
	}
	s.moveTo([]netip.Addr{netip.MustParseAddr("127.0.0.2")})
	if n := idleCount(s); n != 0 {
		t.Errorf("%d connections to an address that went", n)
	}
}

func TestGetLimit(t *testing.T) {
	s := serverAt(t, "http://"+listen(t, answerEach(okAnswer)), nil)
	doc, err := s.Get(testContext(t), "/x", nil, 2)
	if err != nil || string(doc.Body) != "ok" || doc.Status != 200 {
		t.Errorf("%+v, %v", doc, err)
	}
	_, err = s.Get(testContext(t), "/x", nil, 1)
	var e *TooLargeError
	if !errors.As(err, &e) || e.Error() != "the answer to GET /x is larger than 1 bytes" {
		t.Errorf("error %v", err)
	}
}
