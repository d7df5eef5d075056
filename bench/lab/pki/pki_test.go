package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/bench/lab/pki"
)

func TestIssue(t *testing.T) {
	ca := newCA(t)
	tests := []struct {
		name  string
		leaf  pki.Leaf
		usage x509.ExtKeyUsage
		host  string
		want  string // the error contains it; "" is none
	}{
		{"client", pki.Leaf{CommonName: "u", Groups: []string{"g", "h"}}, x509.ExtKeyUsageClientAuth, "", ""},
		{"a client is no server", pki.Leaf{CommonName: "u"}, x509.ExtKeyUsageServerAuth, "", "incompatible key usage"},
		{"server by name", pki.Leaf{Hosts: []string{"localhost", "127.0.0.1"}}, x509.ExtKeyUsageServerAuth, "localhost", ""},
		{"server by address", pki.Leaf{Hosts: []string{"localhost", "127.0.0.1"}}, x509.ExtKeyUsageServerAuth, "127.0.0.1", ""},
		{"server by other address", pki.Leaf{Hosts: []string{"127.0.0.1"}}, x509.ExtKeyUsageServerAuth, "127.0.0.2", "not 127.0.0.2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cert := issue(t, ca, tt.leaf)
			if got := cert.Subject; got.CommonName != tt.leaf.CommonName || !slices.Equal(got.Organization, tt.leaf.Groups) {
				t.Errorf("subject = %v, want %q in groups %q", got, tt.leaf.CommonName, tt.leaf.Groups)
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(ca.Cert)
			_, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{tt.usage}, DNSName: tt.host})
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Verify: %v, want error with %q", err, tt.want)
			}
		})
	}
}

func TestSaveAndLoad(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	saved := newCA(t)
	if err := saved.Save(certFile, keyFile); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode of key file = %v, want -rw-------", got)
	}

	loaded, err := pki.LoadCA(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(saved.Cert)
	cert := issue(t, loaded, pki.Leaf{Hosts: []string{"h"}})
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "h"}); err != nil {
		t.Errorf("certificate of the loaded authority: %v", err)
	}
}

func TestLoadRefusesGarbage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("no pem"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "cannot load certificate authority from " + file + " and " + file + ": no PEM block found"
	if _, err := pki.LoadCA(file, file); err == nil || err.Error() != want {
		t.Errorf("LoadCA: %v, want %q", err, want)
	}
}

func newCA(t *testing.T) *pki.CA {
	t.Helper()
	ca, err := pki.NewCA("test")
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func issue(t *testing.T, ca *pki.CA, leaf pki.Leaf) *x509.Certificate {
	t.Helper()
	pair, err := ca.Issue(leaf)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	return cert.Leaf
}
