package upstream

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
)

// maxSecretBytes bounds a file with certificates, a key or a token.
const maxSecretBytes = 1 << 20

// secrets holds what connections and MVP's own requests are authenticated with, and
// follows the files it comes from.
type secrets struct {
	names [numFiles]string // "" for none

	now   atomic.Pointer[material]
	files [numFiles][]byte // the contents that now was made of; used by reload only
}

// The files of secrets. TLS connections depend on those before tokenFile.
const (
	caFile = iota
	certFile
	keyFile
	frontProxyCertFile
	frontProxyKeyFile
	tokenFile
	numFiles
)

// material is one immutable state of the secrets.
type material struct {
	era        uint64         // grows when what TLS connections depend on changes
	roots      *x509.CertPool // nil: the system's
	cert       *tls.Certificate
	frontProxy *tls.Certificate
	token      string
}

func newSecrets(cfg *Config) (*secrets, error) {
	s := &secrets{names: [numFiles]string{
		caFile: cfg.CAFile, certFile: cfg.ClientCertFile, keyFile: cfg.ClientKeyFile,
		frontProxyCertFile: cfg.FrontProxyCertFile, frontProxyKeyFile: cfg.FrontProxyKeyFile,
		tokenFile: cfg.TokenFile,
	}}
	s.now.Store(&material{token: cfg.Token})
	_, err := s.reload()
	return s, err
}

func (s *secrets) current() *material { return s.now.Load() }

// reload reads the files and makes new material if one changed. On an error the old
// material stays. It is called by one goroutine.
func (s *secrets) reload() (changed bool, err error) {
	var files [numFiles][]byte
	for i, name := range s.names {
		if files[i], err = readSecret(name); err != nil {
			return false, err
		}
	}
	tlsChanged := false
	for i := range files[:tokenFile] {
		tlsChanged = tlsChanged || !bytes.Equal(files[i], s.files[i])
	}
	if !tlsChanged && bytes.Equal(files[tokenFile], s.files[tokenFile]) {
		return false, nil
	}
	next, err := s.parse(&files)
	if err != nil {
		return false, err
	}
	if tlsChanged {
		next.era++
	}
	s.files = files
	s.now.Store(next)
	return true, nil
}

func (s *secrets) parse(files *[numFiles][]byte) (*material, error) {
	next := *s.now.Load()
	if name := s.names[caFile]; name != "" {
		next.roots = x509.NewCertPool()
		if !next.roots.AppendCertsFromPEM(files[caFile]) {
			return nil, fmt.Errorf("cannot use CA file %s: it has no PEM certificate", name)
		}
	}
	var err error
	if next.cert, err = s.pair("client", files, certFile, keyFile); err != nil {
		return nil, err
	}
	if next.frontProxy, err = s.pair("front-proxy", files, frontProxyCertFile, frontProxyKeyFile); err != nil {
		return nil, err
	}
	if name := s.names[tokenFile]; name != "" {
		next.token = strings.TrimSpace(string(files[tokenFile]))
		if next.token == "" || !validValue(next.token) {
			return nil, fmt.Errorf("cannot use token file %s: want one line that is not empty", name)
		}
	}
	return &next, nil
}

// pair is a certificate with its key, nil if there is none.
func (s *secrets) pair(what string, files *[numFiles][]byte, cert, key int) (*tls.Certificate, error) {
	if s.names[cert] == "" {
		return nil, nil
	}
	pair, err := tls.X509KeyPair(files[cert], files[key])
	if err != nil {
		return nil, fmt.Errorf("cannot use %s certificate %s with key %s: %w", what, s.names[cert], s.names[key], err)
	}
	return &pair, nil
}

// readSecret reads a file, "" for none.
func readSecret(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	if len(data) > maxSecretBytes {
		return nil, fmt.Errorf("cannot use %s: it is larger than %d bytes", name, maxSecretBytes)
	}
	return data, nil
}

// follow reloads and logs what came of it, an error only when it is another one than
// lastErr. It returns the error's text, "" for none.
func (s *secrets) follow(log *slog.Logger, lastErr string) string {
	changed, err := s.reload()
	switch {
	case err != nil && err.Error() != lastErr:
		log.Error("cannot reload upstream credentials, the old ones stay", "error", err)
	case changed:
		log.Info("upstream credentials reloaded")
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
