package front_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/front"
)

// authority is a client CA that makes certificates for a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key = a.make(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

func (a *authority) make(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func (a *authority) client(name string) tls.Certificate {
	cert, key := a.make(&x509.Certificate{
		Subject: pkix.Name{CommonName: name, Organization: []string{"devs"}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// whoami answers with the subject of the client's certificate.
func whoami(r *front.Request) *front.Response {
	if r.PeerCertificates == nil {
		return text("nobody")
	}
	return text(r.PeerCertificates[0].Subject.String() + " by " + r.PeerCertificates[len(r.PeerCertificates)-1].Subject.CommonName)
}

func TestClientCertificates(t *testing.T) {
	first, second := newAuthority(t, "first"), newAuthority(t, "second")
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	write(t, ca, first.pem())
	certFile, keyFile, err := front.SelfSigned(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := front.LoadCertificates(front.CertificateFiles{CertFile: certFile, KeyFile: keyFile, ClientCAFile: ca}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, front.Config{Handler: whoami, Certificates: certs})
	trust := trusting(t, certFile)
	presenting := func(cert tls.Certificate) *tls.Config {
		cfg := trust.Clone()
		cfg.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		if cert.Certificate != nil {
			// Presented whatever the server says it accepts.
			cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
		}
		return cfg
	}
	nobody, alice, mallory := presenting(tls.Certificate{}), presenting(first.client("alice")), presenting(second.client("mallory"))
	as := func(cfg *tls.Config) string {
		t.Helper()
		c := s.dialTLS(cfg)
		// In TLS 1.3 the server's verdict comes with the first read.
		if _, err := c.Write([]byte("GET / HTTP/1.1\r\nHost: h\r\n\r\n")); err != nil {
			return err.Error()
		}
		if _, err := c.r.Peek(1); err != nil {
			return err.Error()
		}
		return read(t, c.response("GET").Body)
	}
	expect := func(got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	expect(as(nobody), "nobody")
	expect(as(alice), "CN=alice,O=devs by first")
	expect(as(alice), "CN=alice,O=devs by first") // a resumed session
	expect(as(mallory), "unknown certificate authority")

	write(t, ca, second.pem())
	if changed, err := certs.Reload(); !changed || err != nil {
		t.Fatalf("Reload: %v, %v", changed, err)
	}
	expect(as(mallory), "CN=mallory,O=devs by second")
	expect(as(alice), "unknown certificate authority")

	write(t, ca, []byte("nonsense"))
	changed, err := certs.Reload()
	if changed || err == nil || err.Error() != "cannot use "+ca+": it has no PEM certificate" {
		t.Errorf("Reload of nonsense: %v, %v", changed, err)
	}
	expect(as(mallory), "CN=mallory,O=devs by second")
}

// A renewed certificate is served to new connections, by itself; a broken pair
// changes nothing.
func TestCertificateReload(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile, err := front.SelfSigned(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := front.LoadCertificates(front.CertificateFiles{CertFile: certFile, KeyFile: keyFile}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, front.Config{Handler: hello, Certificates: certs})
	serial := func(c *client) string {
		state := c.Conn.(*tls.Conn).ConnectionState()
		if state.NegotiatedProtocol != "http/1.1" {
			t.Errorf("protocol %q", state.NegotiatedProtocol)
		}
		return state.PeerCertificates[0].SerialNumber.String()
	}
	old := trusting(t, certFile)
	old.NextProtos = []string{"h2", "http/1.1"}
	open := s.dialTLS(old)
	before := serial(open)
	if changed, err := certs.Reload(); changed || err != nil {
		t.Errorf("Reload of the same: %v, %v", changed, err)
	}

	key, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	otherCert, otherKey, err := front.SelfSigned(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, keyFile, readFile(t, otherKey))
	if changed, err := certs.Reload(); changed || err == nil || !strings.HasPrefix(err.Error(), "cannot use "+certFile+" with "+keyFile+": ") {
		t.Errorf("Reload of half a pair: %v, %v", changed, err)
	}
	if got := serial(s.dialTLS(old)); got != before {
		t.Error("the broken pair is served")
	}
	write(t, keyFile, key)
	if changed, err := certs.Reload(); changed || err != nil {
		t.Errorf("Reload of the mended pair: %v, %v", changed, err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	certs.SetPoll(time.Millisecond)
	go certs.Run(ctx)
	write(t, keyFile, readFile(t, otherKey))
	write(t, certFile, readFile(t, otherCert))
	renewed := trusting(t, otherCert, certFile)
	renewed.InsecureSkipVerify = true // the old one until the new one is there
	renewed.NextProtos = old.NextProtos
	until(t, "the new certificate", func() bool { return serial(s.dialTLS(renewed)) != before })
	if got := open.get("/"); got != "200 OK hello" {
		t.Errorf("the open connection got %q", got)
	}
	if certs.NotAfter().Before(time.Now().AddDate(0, 11, 0)) {
		t.Errorf("NotAfter %v", certs.NotAfter())
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestLoadCertificatesErrors(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing")
	_, err := front.LoadCertificates(front.CertificateFiles{CertFile: missing}, nil)
	want := "cannot load certificates: stat " + missing + ": no such file or directory\n" +
		"cannot load certificates: a certificate and a key file are needed"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Clients that never finish a handshake stop nobody, and are given up.
func TestSlowHandshakes(t *testing.T) {
	certs, trust := selfSigned(t)
	refusals := make(chan front.Refusal, 100)
	s := start(t, front.Config{
		Handler: hello, Certificates: certs, HandshakeTimeout: 500 * time.Millisecond,
		OnRefuse: func(_ netip.AddrPort, r front.Refusal) { refusals <- r },
	})
	const n = 20
	for range n {
		s.dial().send("\x16\x03\x01") // the start of a ClientHello
	}
	if got := s.dialTLS(trust).get("/"); got != "200 OK hello" {
		t.Errorf("answered %q", got)
	}
	for range n {
		if r := wait(t, refusals, "the slow ones to be given up"); r.Reason != "handshake" || !strings.HasPrefix(r.Message, "the TLS handshake failed: ") {
			t.Errorf("refusal %+v", r)
		}
	}
}

func TestHTTPToHTTPS(t *testing.T) {
	certs, _ := selfSigned(t)
	refusals := make(chan front.Refusal, 1)
	s := start(t, front.Config{
		Handler: hello, Certificates: certs,
		OnRefuse: func(_ netip.AddrPort, r front.Refusal) { refusals <- r },
	})
	c := s.dial()
	c.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	c.expect("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nThe client sent an HTTP request to an HTTPS server.\n")
	want := front.Refusal{Reason: "handshake", Code: 400, Message: "the client sent an HTTP request to an HTTPS server"}
	if r := wait(t, refusals, "OnRefuse"); r != want {
		t.Errorf("refusal %+v", r)
	}
}

func TestOldTLS(t *testing.T) {
	certs, trust := selfSigned(t)
	s := start(t, front.Config{Handler: hello, Certificates: certs})
	trust.MinVersion, trust.MaxVersion = tls.VersionTLS11, tls.VersionTLS11
	if _, err := tls.Dial("tcp", s.addr, trust); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: %v", err)
	}
}

func TestSelfSigned(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	make1 := func(hosts ...string) string {
		t.Helper()
		certFile, keyFile, err := front.SelfSigned(dir, hosts)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(keyFile)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the key's mode is %v, %v", info.Mode(), err)
		}
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range append(hosts, "localhost", "127.0.0.1", "::1") {
			if err := pair.Leaf.VerifyHostname(host); err != nil {
				t.Error(err)
			}
		}
		opts := x509.VerifyOptions{Roots: trusting(t, certFile).RootCAs, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
		if _, err := pair.Leaf.Verify(opts); err != nil {
			t.Error(err)
		}
		return pair.Leaf.SerialNumber.String()
	}
	first := make1("mvp.example.com", "10.0.0.1")
	if again := make1("10.0.0.1"); again != first {
		t.Error("a good pair was not used again")
	}
	second := make1("other.example.com")
	if second == first {
		t.Error("a pair for other hosts was used again")
	}
	write(t, filepath.Join(dir, "mvp.key"), []byte("broken"))
	if third := make1(); third == second {
		t.Error("a broken pair was used again")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left over: %v, %v", entries, err)
	}
	file := filepath.Join(dir, "mvp.crt", "x")
	if _, _, err := front.SelfSigned(file, nil); err == nil || !strings.HasPrefix(err.Error(), "cannot make a self-signed certificate in "+file+": ") {
		t.Errorf("in a file: %v", err)
	}
}
