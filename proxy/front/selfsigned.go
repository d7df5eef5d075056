package front

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// selfSignedLife is that of kube-apiserver's own.
	selfSignedLife = 365 * 24 * time.Hour

	// selfSignedRenew is how long one must still be good to be used again.
	selfSignedRenew = 30 * 24 * time.Hour

	// clockSkew lets clients whose clock is behind use a new one.
	clockSkew = time.Hour
)

// SelfSigned makes mvp.crt and mvp.key in dir, for a server that was given no
// certificate, and returns their names. It makes dir if it has to. What it finds
// there is used again if it fits together, is good for the hosts and for another
// 30 days.
//
// The certificate is good for hosts (names or addresses), localhost and the
// loopback addresses. It is signed by an authority made for it, whose key is
// thrown away and whose certificate follows it in mvp.crt, so that mvp.crt is
// also what a kubeconfig can name as certificate-authority. Both files appear
// whole; the key is readable by its owner only.
func SelfSigned(dir string, hosts []string) (certFile, keyFile string, err error) {
	certFile, keyFile = filepath.Join(dir, "mvp.crt"), filepath.Join(dir, "mvp.key")
	hosts = append(slices.Clone(hosts), "localhost", "127.0.0.1", "::1")
	if usable(certFile, keyFile, hosts) {
		return certFile, keyFile, nil
	}
	cert, key, err := makeCertificate(hosts)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	// The key first: a pair that does not fit together is made anew.
	if err == nil {
		err = writeFile(keyFile, key, 0o600)
	}
	if err == nil {
		err = writeFile(certFile, cert, 0o644)
	}
	if err != nil {
		return "", "", fmt.Errorf("cannot make a self-signed certificate in %s: %w", dir, err)
	}
	return certFile, keyFile, nil
}

func usable(certFile, keyFile string, hosts []string) bool {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil || time.Now().Add(selfSignedRenew).After(pair.Leaf.NotAfter) {
		return false
	}
	return !slices.ContainsFunc(hosts, func(h string) bool { return pair.Leaf.VerifyHostname(h) != nil })
}

func makeCertificate(hosts []string) (certPEM, keyPEM []byte, err error) {
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: fmt.Sprintf("mvp-ca@%d", now.Unix())},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(selfSignedLife),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	leaf := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: fmt.Sprintf("mvp@%d", now.Unix())},
		NotBefore:    authority.NotBefore,
		NotAfter:     authority.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, h)
		}
	}
	authorityKey, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	leafKey, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, err
	}
	authorityDER, err1 := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	leafDER, err2 := x509.CreateCertificate(rand.Reader, leaf, authority, leafKey.Public(), authorityKey)
	keyDER, err3 := x509.MarshalPKCS8PrivateKey(leafKey)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, nil, err
	}
	certPEM = append(pemBlock("CERTIFICATE", leafDER), pemBlock("CERTIFICATE", authorityDER)...)
	return certPEM, pemBlock("PRIVATE KEY", keyDER), nil
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// serial is a positive random number (RFC 5280 section 4.1.2.2).
func serial() *big.Int {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	b[0] &= 0x7f
	return new(big.Int).SetBytes(b)
}

// writeFile writes a file so that readers see the old one or the new one.
func writeFile(name string, data []byte, perm os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(perm), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
