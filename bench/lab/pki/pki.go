// Package pki makes the certificates of a lab: certificate authorities and what
// they sign. Keys are ECDSA P-256, files are PEM.
//
// It is for tests on loopback. Nothing is ever renewed or revoked.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/cache"
)

const (
	// lifetime outlasts any lab.
	lifetime = 10 * 365 * 24 * time.Hour

	// clockSkew is how far before now certificates become valid.
	clockSkew = time.Hour
)

// A Pair is a certificate and its private key, both PEM.
type Pair struct {
	Cert, Key []byte
}

// Save writes the pair to two files; the key can be read by its owner only.
func (p Pair) Save(certFile, keyFile string) error {
	if err := cache.WriteFile(keyFile, p.Key, 0o600); err != nil {
		return err
	}
	return cache.WriteFile(certFile, p.Cert, 0o644)
}

// A CA signs certificates.
type CA struct {
	Pair
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA makes a certificate authority, signed by itself.
func NewCA(name string) (*CA, error) {
	tmpl, err := template(pkix.Name{CommonName: name})
	if err != nil {
		return nil, err
	}
	tmpl.IsCA = true
	tmpl.BasicConstraintsValid = true
	tmpl.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	pair, err := sign(tmpl, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot make certificate authority %q: %w", name, err)
	}
	return parseCA(pair)
}

// LoadCA reads a certificate authority that [Pair.Save] wrote.
func LoadCA(certFile, keyFile string) (*CA, error) {
	var pair Pair
	var err error
	if pair.Cert, err = os.ReadFile(certFile); err != nil {
		return nil, fmt.Errorf("cannot load certificate authority: %w", err)
	}
	if pair.Key, err = os.ReadFile(keyFile); err != nil {
		return nil, fmt.Errorf("cannot load certificate authority: %w", err)
	}
	ca, err := parseCA(pair)
	if err != nil {
		return nil, fmt.Errorf("cannot load certificate authority from %s and %s: %w", certFile, keyFile, err)
	}
	return ca, nil
}

// A Leaf says what a certificate is for.
type Leaf struct {
	// CommonName is the user name, to a kube-apiserver that takes the
	// certificate as credential.
	CommonName string

	// Groups are the user's groups, as organizations.
	Groups []string

	// Hosts are the DNS names and IP addresses the certificate serves. With none
	// it can only be used by a client, with some by a client or a server: etcd
	// presents its serving certificate to itself.
	Hosts []string
}

// Issue makes a certificate with a new key.
func (ca *CA) Issue(l Leaf) (Pair, error) {
	tmpl, err := template(pkix.Name{CommonName: l.CommonName, Organization: l.Groups})
	if err != nil {
		return Pair{}, err
	}
	tmpl.KeyUsage = x509.KeyUsageDigitalSignature
	tmpl.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(l.Hosts) > 0 {
		tmpl.ExtKeyUsage = append(tmpl.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, h := range l.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, ip)
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, h)
		}
	}
	pair, err := sign(tmpl, ca)
	if err != nil {
		return Pair{}, fmt.Errorf("cannot issue certificate %q: %w", l.CommonName, err)
	}
	return pair, nil
}

// NewKey makes a key pair without a certificate: the Cert of the result is the
// public key. A kube-apiserver signs service account tokens with such a pair.
func NewKey() (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("cannot make key: %w", err)
	}
	pub, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return Pair{}, fmt.Errorf("cannot encode public key: %w", err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub}), Key: keyPEM}, nil
}

func template(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("cannot make serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(lifetime),
	}, nil
}

// sign makes a key and signs tmpl with the key of ca, or with its own when ca is
// nil.
func sign(tmpl *x509.Certificate, ca *CA) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	parent, signer := tmpl, key
	if ca != nil {
		parent, signer = ca.cert, ca.key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, signer)
	if err != nil {
		return Pair{}, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: keyPEM}, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func parseCA(pair Pair) (*CA, error) {
	cert, _ := pem.Decode(pair.Cert)
	key, _ := pem.Decode(pair.Key)
	if cert == nil || key == nil {
		return nil, errors.New("no PEM block found")
	}
	ca := &CA{Pair: pair}
	var err error
	if ca.cert, err = x509.ParseCertificate(cert.Bytes); err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(key.Bytes)
	if err != nil {
		return nil, err
	}
	var ok bool
	if ca.key, ok = parsed.(*ecdsa.PrivateKey); !ok {
		return nil, fmt.Errorf("key is %T, want ECDSA", parsed)
	}
	return ca, nil
}
