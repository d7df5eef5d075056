package upstream

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
)

// maxSecretBytes bounds a file with certificates, a key or a token.
const maxSecretBytes = 1 << 20

// secrets holds what connections and MVP's own requests are authenticated with, and
// follows the files it comes from.
type secrets struct {
	now atomic.Pointer[material]

	mu      sync.Mutex       // held while now changes
	access  Access           // that now comes from
	names   [numFiles]string // "" for none
	values  [numFiles][]byte // instead of files
	files   [numFiles][]byte // the contents that now was made of
	problem string           // of the last reload
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
	serverName string         // "": the server's host
	insecure   bool
	cert       *tls.Certificate
	frontProxy *tls.Certificate
	token      string
}

// newSecrets reads what access names, and the front-proxy certificate of cfg.
func newSecrets(cfg *Config, access *Access) (*secrets, error) {
	s := &secrets{
		access: *access,
		names: [numFiles]string{
			caFile: access.CAFile, certFile: access.ClientCertFile, keyFile: access.ClientKeyFile,
			frontProxyCertFile: cfg.FrontProxyCertFile, frontProxyKeyFile: cfg.FrontProxyKeyFile,
			tokenFile: access.TokenFile,
		},
		values: [numFiles][]byte{caFile: access.CAData, certFile: access.ClientCertData, keyFile: access.ClientKeyData},
	}
	for i, value := range s.values {
		if len(value) > 0 {
			s.names[i] = "given as a value"
		}
	}
	s.now.Store(&material{token: access.Token, serverName: access.ServerName, insecure: access.InsecureSkipTLSVerify})
	_, err := s.reload()
	return s, err
}

// is reports whether the secrets come from access.
func (s *secrets) is(access *Access) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return reflect.DeepEqual(s.access, *access)
}

// become takes over what next has. Connections that were made by other material than
// next's are not used again.
func (s *secrets) become(next *secrets) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := *next.current()
	now.era = s.current().era + 1
	s.access, s.names, s.values, s.files, s.problem = next.access, next.names, next.values, next.files, ""
	s.now.Store(&now)
}

func (s *secrets) current() *material { return s.now.Load() }

// reload reads the files and makes new material if one changed. On an error the old
// material stays.
func (s *secrets) reload() (changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var files [numFiles][]byte
	for i, name := range s.names {
		if files[i] = s.values[i]; len(files[i]) > 0 {
			continue
		}
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
// that of the last time.
func (s *secrets) follow(log *slog.Logger) {
	changed, err := s.reload()
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	s.mu.Lock()
	again := problem == s.problem
	s.problem = problem
	s.mu.Unlock()
	switch {
	case err != nil && !again:
		log.Error("cannot reload upstream credentials, the old ones stay", "error", err)
	case changed:
		log.Info("upstream credentials reloaded")
	}
}
