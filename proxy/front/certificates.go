package front

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// certificatePoll is how often Run looks at the files: a renewed certificate is
// served within this time. Three small files are read; nothing is parsed unless
// their content changed.
const certificatePoll = 3 * time.Second

// maxCertificateBytes bounds one file: a bundle of several hundred authorities.
const maxCertificateBytes = 1 << 20

// CertificateFiles names PEM files.
type CertificateFiles struct {
	// CertFile is the server's certificate, then its intermediates. Required.
	CertFile string

	// KeyFile is the private key of the certificate. Required.
	KeyFile string

	// ClientCAFile has the authorities of client certificates. With it a client
	// may present a certificate, which must then verify; without it none is asked
	// for.
	ClientCAFile string
}

// Certificates are the server's certificate and the authorities it trusts for
// clients, reloaded when the content of the files changes. What cannot be loaded
// never replaces what could. Connections that are open keep what they started
// with. Its methods may be called from any goroutine.
type Certificates struct {
	files   CertificateFiles
	log     *slog.Logger
	every   time.Duration // certificatePoll, less in tests
	current atomic.Pointer[tls.Config]

	mu     sync.Mutex        // held during a reload
	loaded [sha256.Size]byte // of the content in use
	failed error             // of the last reload
}

// LoadCertificates reads the files for the first time. log may be nil.
func LoadCertificates(files CertificateFiles, log *slog.Logger) (*Certificates, error) {
	if log == nil {
		log = slog.Default()
	}
	c := &Certificates{files: files, log: log, every: certificatePoll}
	if _, err := c.Reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// Run reloads the files when their content changes, until ctx is done.
func (c *Certificates) Run(ctx context.Context) {
	ticker := time.NewTicker(c.every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.poll()
		case <-ctx.Done():
			return
		}
	}
}

// poll reloads, and logs what changed: not the same failure each time.
func (c *Certificates) poll() {
	before := c.failure()
	changed, err := c.Reload()
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		c.log.Error("keeping the old certificates", "error", err)
	case changed:
		c.log.Info("certificates reloaded", "file", c.files.CertFile, "notAfter", c.NotAfter())
	}
}

func (c *Certificates) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// Reload reads the files now and reports whether new content is in use. With an
// error the old content stays in use.
func (c *Certificates) Reload() (changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed, c.failed = c.reload()
	return changed, c.failed
}

func (c *Certificates) reload() (changed bool, err error) {
	cert, key, ca, err := c.read()
	if err != nil {
		return false, err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %d\n%s%s%s", len(cert), len(key), len(ca), cert, key, ca))
	if sum == c.loaded {
		return false, nil
	}
	cfg, err := c.parse(cert, key, ca)
	if err != nil {
		return false, err
	}
	c.loaded = sum
	c.current.Store(cfg)
	return true, nil
}

func (c *Certificates) read() (cert, key, ca []byte, err error) {
	cert, certErr := readSmall(c.files.CertFile)
	key, keyErr := readSmall(c.files.KeyFile)
	var caErr error
	if c.files.ClientCAFile != "" {
		ca, caErr = readSmall(c.files.ClientCAFile)
	}
	return cert, key, ca, errors.Join(certErr, keyErr, caErr)
}

// readSmall reads a file that cannot be large.
func readSmall(name string) ([]byte, error) {
	if name == "" {
		return nil, errors.New("cannot load certificates: a certificate and a key file are needed")
	}
	info, err := os.Stat(name)
	if err == nil && info.Size() > maxCertificateBytes {
		err = fmt.Errorf("%s has %d bytes, more than %d", name, info.Size(), maxCertificateBytes)
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot load certificates: %w", err)
	}
	return b, nil
}

// parse makes what one handshake needs. It never changes after.
func (c *Certificates) parse(cert, key, ca []byte) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("cannot use %s with %s: %w", c.files.CertFile, c.files.KeyFile, err)
	}
	cfg := baseTLS()
	cfg.Certificates = []tls.Certificate{pair}
	if c.files.ClientCAFile == "" {
		return cfg, nil
	}
	cfg.ClientCAs = x509.NewCertPool()
	if !cfg.ClientCAs.AppendCertsFromPEM(bytes.TrimSpace(ca)) {
		return nil, fmt.Errorf("cannot use %s: it has no PEM certificate", c.files.ClientCAFile)
	}
	cfg.ClientAuth = tls.VerifyClientCertIfGiven
	return cfg, nil
}

func baseTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"}, // clients that could do HTTP/2 come down to it
		// Small records save a browser's first paint and cost every other client a
		// system call per 1.4 KiB.
		DynamicRecordSizingDisabled: true,
	}
}

// serverConfig is what connections start from. The keys of session tickets are
// in it, not in what it hands out, so that sessions live through a reload; a
// session whose client certificate no longer verifies does not.
func (c *Certificates) serverConfig() *tls.Config {
	cfg := baseTLS()
	cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return c.current.Load(), nil
	}
	return cfg
}

// NotAfter is when the certificate in use expires.
func (c *Certificates) NotAfter() time.Time {
	return c.current.Load().Certificates[0].Leaf.NotAfter
}
