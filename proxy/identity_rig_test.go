package proxy_test

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
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/proxy"
	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// authority signs the certificates of one test, all of them: what they may be used
// for is decided by who trusts whom, not here.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	pair := a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	a.cert, a.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

// issue signs template, or has it sign itself if it is the first.
func (a *authority) issue(template *x509.Certificate) tls.Certificate {
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
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// client is the certificate of a user.
func (a *authority) client(subject pkix.Name) tls.Certificate {
	return a.issue(&x509.Certificate{Subject: subject, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

func (a *authority) server() tls.Certificate {
	return a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "server"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// files writes a pair as PEM.
func (a *authority) files(pair tls.Certificate) (cert, key string) {
	a.t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		a.t.Fatal(err)
	}
	dir := a.t.TempDir()
	cert, key = filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	a.write(cert, "CERTIFICATE", pair.Certificate[0])
	a.write(key, "PRIVATE KEY", der)
	return cert, key
}

func (a *authority) write(path, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// identityRig is MVP with TLS on both sides.
type identityRig struct {
	t      *testing.T
	ca     *authority
	addr   string
	access *lockedBuffer
}

// identitySetup is what differs between the tests.
type identitySetup struct {
	identity  proxy.Identity
	policies  map[string]string
	token     string // MVP's own; "" for a certificate
	upstreams []*recorder
}

// recordTLS is record over TLS. It asks for client certificates and takes them.
func recordTLS(t *testing.T, ca *authority, name string, answer func(request) string) *recorder {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{ca.server()}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: ca.pool(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if answer == nil {
		answer = func(request) string { return ok("{}") }
	}
	u := &recorder{t: t, name: name, version: "1.32.13", serves: things, answer: answer, listener: listener, closed: make(chan struct{}, 100)}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			u.mu.Lock()
			u.conns = append(u.conns, conn)
			u.mu.Unlock()
			go u.serve(conn)
		}
	}()
	return u
}

// startTLS runs MVP. Its own certificate is called mvp, the front proxy's front-proxy.
func startTLS(t *testing.T, ca *authority, setup identitySetup) *identityRig {
	t.Helper()
	dir := t.TempDir()
	for name, content := range setup.policies {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := policies.Load(policies.Options{Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	r := &identityRig{t: t, ca: ca, access: &lockedBuffer{}}
	var server *proxy.Server
	caFile := filepath.Join(t.TempDir(), "ca")
	ca.write(caFile, "CERTIFICATE", ca.cert.Raw)
	cfg := upstream.Config{
		// Looked at once: what happens to a server later is for a request to find out.
		ProbeInterval: time.Hour, DiscoveryInterval: time.Hour, CRDInterval: time.Hour,
		CAFile: caFile, Token: setup.token, Log: slog.New(slog.DiscardHandler),
		OnChange: func(*upstream.View) { server.Changed() },
	}
	if setup.token == "" {
		cfg.ClientCertFile, cfg.ClientKeyFile = ca.files(ca.client(pkix.Name{CommonName: "mvp"}))
	}
	cfg.FrontProxyCertFile, cfg.FrontProxyKeyFile = ca.files(ca.client(pkix.Name{CommonName: "front-proxy"}))
	for _, u := range setup.upstreams {
		cfg.Servers = append(cfg.Servers, upstream.ServerConfig{Name: u.name, URL: "https://" + u.listener.Addr().String()})
	}
	pool, err := upstream.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server, err = proxy.New(proxy.Config{
		Policies: constantly(set), Upstreams: pool, Identity: setup.identity,
		Log: slog.New(slog.NewTextHandler(testWriter{t}, nil)), AccessLog: slog.New(slog.NewJSONHandler(r.access, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	r.serve(server, pool, caFile)
	(&rig{t: t}).eventually("MVP knows every upstream", server.Synced)
	for _, u := range setup.upstreams {
		u.forget()
	}
	return r
}

func (r *identityRig) serve(server *proxy.Server, pool *upstream.Pool, caFile string) {
	r.t.Helper()
	certFile, keyFile := r.ca.files(r.ca.server())
	certificates, err := front.LoadCertificates(front.CertificateFiles{CertFile: certFile, KeyFile: keyFile, ClientCAFile: caFile}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	clients, err := front.New(front.Config{Handler: server.Handle, Certificates: certificates, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		r.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.addr = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = pool.Run(ctx) })
	running.Go(func() { _ = server.Run(ctx) })
	running.Go(func() { _ = clients.Serve(listener) })
	r.t.Cleanup(func() {
		server.EndStreams()
		stop, done := context.WithTimeout(context.Background(), 5*time.Second)
		defer done()
		_ = clients.Shutdown(stop)
		cancel()
		running.Wait()
	})
}

// ask sends a GET of path with the lines, over a connection of its own that presents
// the certificate, and returns the answer.
func (r *identityRig) ask(cert *tls.Certificate, path, lines string) answer {
	r.t.Helper()
	return r.send(cert, "GET "+path+" HTTP/1.1\r\nHost: mvp\r\n"+lines+"\r\n")
}

func (r *identityRig) send(cert *tls.Certificate, raw string) answer {
	r.t.Helper()
	conn := r.dial(cert)
	defer conn.Close()
	if _, err := io.WriteString(conn, raw); err != nil {
		r.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil && resp.StatusCode != http.StatusSwitchingProtocols {
		r.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(body)}
}

func (r *identityRig) dial(cert *tls.Certificate) net.Conn {
	r.t.Helper()
	config := &tls.Config{RootCAs: r.ca.pool()}
	if cert != nil {
		config.Certificates = []tls.Certificate{*cert}
	}
	conn, err := tls.Dial("tcp", r.addr, config)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// seen is a request as an upstream saw it: the certificate of its connection, the
// request line's method and target, and all header lines.
func seen(req request) string {
	who := "nobody"
	if certs := req.conn.(*tls.Conn).ConnectionState().PeerCertificates; len(certs) > 0 {
		who = certs[0].Subject.CommonName
	}
	head, _, _ := strings.Cut(req.raw, "\r\n\r\n")
	_, lines, _ := strings.Cut(head, "\r\n")
	return fmt.Sprintf("%s: %s %s\n%s\n", who, req.method, req.target, strings.ReplaceAll(lines, "\r\n", "\n"))
}
