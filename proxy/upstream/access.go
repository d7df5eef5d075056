package upstream

import (
	"errors"
	"strings"
)

// Access is how one server's certificate is verified, and the credential of MVP's own
// that it gets. Each part is a file or a value; the value wins.
type Access struct {
	// CAFile and CAData are a PEM bundle. Default: the system's roots.
	CAFile string
	CAData []byte

	// ServerName is the name that the certificate must have. Default: the URL's host.
	ServerName string

	// InsecureSkipTLSVerify accepts any certificate.
	InsecureSkipTLSVerify bool

	// The client certificate and its key, PEM.
	ClientCertFile, ClientKeyFile string
	ClientCertData, ClientKeyData []byte

	// The bearer token; here the file wins.
	TokenFile, Token string
}

// access is what servers have that say nothing else.
func (cfg *Config) access() *Access {
	return &Access{
		CAFile: cfg.CAFile, ServerName: cfg.ServerName, InsecureSkipTLSVerify: cfg.InsecureSkipTLSVerify,
		ClientCertFile: cfg.ClientCertFile, ClientKeyFile: cfg.ClientKeyFile,
		TokenFile: cfg.TokenFile, Token: cfg.Token,
	}
}

// HasCredential reports whether MVP has a credential of its own for the server.
func (a *Access) HasCredential() bool {
	return a.TokenFile != "" || a.Token != "" || a.ClientCertFile != "" || len(a.ClientCertData) > 0
}

func (a *Access) check() error {
	cert := a.ClientCertFile != "" || len(a.ClientCertData) > 0
	key := a.ClientKeyFile != "" || len(a.ClientKeyData) > 0
	if cert != key {
		return errors.New("a client certificate needs both its certificate file and its key file")
	}
	if strings.TrimSpace(a.Token) != a.Token || !validValue(a.Token) {
		return errors.New("the token is not one line")
	}
	return nil
}
