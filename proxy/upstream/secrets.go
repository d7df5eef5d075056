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
	caFile, certFile, keyFile, tokenFile string

	now   atomic.Pointer[material]
	files [4][]byte // the contents that now was made of; used by reload only
}

// material is one immutable state of the secrets.
type material struct {
	era   uint64         // grows when what TLS connections depend on changes
	roots *x509.CertPool // nil: the system's
	cert  *tls.Certificate
	token string
}

func newSecrets(cfg *Config) (*secrets, error) {
	s := &secrets{caFile: cfg.CAFile, certFile: cfg.ClientCertFile, keyFile: cfg.ClientKeyFile, tokenFile: cfg.TokenFile}
	s.now.Store(&material{token: cfg.Token})
	_, err := s.reload()
	return s, err
}

func (s *secrets) current() *material { return s.now.Load() }

// reload reads the files and makes new material if one changed. On an error the old
// material stays. It is called by one goroutine.
func (s *secrets) reload() (changed bool, err error) {
	var files [4][]byte
	for i, name := range []string{s.caFile, s.certFile, s.keyFile, s.tokenFile} {
		if files[i], err = readSecret(name); err != nil {
			return false, err
		}
	}
	tlsChanged := false
	for i := range files[:3] {
		tlsChanged = tlsChanged || !bytes.Equal(files[i], s.files[i])
	}
	if !tlsChanged && bytes.Equal(files[3], s.files[3]) {
		return false, nil
	}
	next, err := s.parse(files)
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

func (s *secrets) parse(files [4][]byte) (*material, error) {
	next := *s.now.Load()
	if s.caFile != "" {
		next.roots = x509.NewCertPool()
		if !next.roots.AppendCertsFromPEM(files[0]) {
			return nil, fmt.Errorf("cannot use CA file %s: it has no PEM certificate", s.caFile)
		}
	}
	if s.certFile != "" {
		pair, err := tls.X509KeyPair(files[1], files[2])
		if err != nil {
			return nil, fmt.Errorf("cannot use client certificate %s with key %s: %w", s.certFile, s.keyFile, err)
		}
		next.cert = &pair
	}
	if s.tokenFile != "" {
		next.token = strings.TrimSpace(string(files[3]))
		if next.token == "" || !validValue(next.token) {
			return nil, fmt.Errorf("cannot use token file %s: want one line that is not empty", s.tokenFile)
		}
	}
	return &next, nil
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
