package upstream

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Config is what a Pool needs. The zero value of an optional field is its default.
type Config struct {
	// Servers are the kube-apiservers, with distinct names; Pool.SetServers replaces
	// them. At least one, unless Dynamic. Required.
	Servers []ServerConfig

	// Dynamic says that something finds the servers while MVP runs: there may be none
	// at times. Default false: that is a mistake.
	Dynamic bool

	// CAFile is a PEM bundle that verifies the servers' certificates. The file is
	// read again when its content changes. Default: the system's roots.
	CAFile string

	// ServerName is the DNS name or IP that the servers' certificates must carry,
	// for servers that are dialled by an address that they do not. Default: the
	// host of each server's URL.
	ServerName string

	// ClientCertFile and ClientKeyFile are MVP's own client certificate, PEM, both
	// or neither. Connections for MVP's own requests present it; connections for
	// clients' requests do not, unless a Request says OwnCredential. The files are
	// read again when their content changes.
	ClientCertFile, ClientKeyFile string

	// TokenFile holds MVP's own bearer token and is read again when it changes.
	// Token is the same as a value; the file wins. They are sent as the certificate
	// is.
	TokenFile, Token string

	// FrontProxyCertFile and FrontProxyKeyFile are the client certificate, PEM, both
	// or neither, at which the servers believe who a request says that it comes from
	// (their --requestheader-client-ca-file). Connections present it for a Request
	// that says FrontProxyCredential. The files are read again when their content
	// changes.
	FrontProxyCertFile, FrontProxyKeyFile string

	// InsecureSkipTLSVerify accepts any server certificate. Whoever stands between
	// MVP and a server can then read every client's token. Default false.
	InsecureSkipTLSVerify bool

	// ProbeInterval is the time between two looks at a server's /readyz. Default 1 s.
	ProbeInterval time.Duration

	// ProbeTimeout bounds one look at /readyz, dial and handshake included.
	// Default 3 s.
	ProbeTimeout time.Duration

	// DiscoveryInterval is the time between two polls of a server's version and
	// discovery documents. The polls carry ETags and cost a 304 each. Default 2 s.
	DiscoveryInterval time.Duration

	// CRDInterval is the time between two polls of a server's OpenAPI index and
	// CustomResourceDefinitions; they are also read at once when discovery changed.
	// While a watch tells of the CRDs' changes, their list is read only in one of
	// twelve polls. Default 5 s.
	CRDInterval time.Duration

	// DialTimeout bounds name resolution and TCP connect, and the wait for a free
	// connection when MaxConnsPerServer are in use. Default 5 s.
	DialTimeout time.Duration

	// HandshakeTimeout bounds the TLS handshake. Default 5 s.
	HandshakeTimeout time.Duration

	// HeaderTimeout is how long a server may take from the last byte of a request
	// to the last byte of the answer's head, and how long it may refuse to take one
	// piece of a request. It never limits a body, nor the wait for the head of a
	// Long request. Default 75 s, above the 60 s that kube-apiserver gives a request
	// by default.
	HeaderTimeout time.Duration

	// MaxHeadBytes is how large the head of an answer may be, its status line and all
	// header lines; a larger one is no answer. At least 4 KiB. Default 256 KiB.
	MaxHeadBytes int

	// MaxIdlePerServer is how many unused connections are kept, for each of the
	// kinds of connections (short, long; with each credential).
	// Default 256.
	MaxIdlePerServer int

	// IdleTimeout is how long an unused connection is kept. It must be below the
	// servers' own (90 s in kube-apiserver), or requests meet closing connections.
	// Default 60 s.
	IdleTimeout time.Duration

	// MaxConnsPerServer is how many requests that are not Long may be in flight to
	// one server, each on its own connection; more wait for DialTimeout. Long
	// requests and upgrades are not counted. Default 2048.
	MaxConnsPerServer int

	// Log receives changes of health, versions and capabilities, never a token or a
	// body. Default: slog.Default().
	Log *slog.Logger

	// OnChange is called after the view changed in more than times and latencies,
	// always from the same goroutine, from Run. Changes that follow each other
	// closely may be reported as one. Optional.
	OnChange func(*View)
}

// ServerConfig is one kube-apiserver.
type ServerConfig struct {
	// Name is how logs, metrics, policies and answers call the server. Default: the
	// host and port of URL.
	Name string

	// URL is https://host:port or http://host:port without a path. The port
	// defaults to the scheme's. Required.
	URL string

	// Access is how this server is trusted and what MVP presents to it. Nil: as the
	// Config says for all.
	Access *Access
}

// complete returns cfg with its defaults, or every mistake in it.
func (cfg Config) complete() (Config, error) {
	var errs []error
	if len(cfg.Servers) == 0 && !cfg.Dynamic {
		errs = append(errs, errNoServers)
	}
	errs = append(errs, cfg.access().check())
	if (cfg.FrontProxyCertFile == "") != (cfg.FrontProxyKeyFile == "") {
		errs = append(errs, errors.New("a front-proxy certificate needs both its certificate file and its key file"))
	}
	for _, d := range []struct {
		name     string
		value    *time.Duration
		fallback time.Duration
	}{
		{"ProbeInterval", &cfg.ProbeInterval, time.Second},
		{"ProbeTimeout", &cfg.ProbeTimeout, 3 * time.Second},
		{"DiscoveryInterval", &cfg.DiscoveryInterval, 2 * time.Second},
		{"CRDInterval", &cfg.CRDInterval, 5 * time.Second},
		{"DialTimeout", &cfg.DialTimeout, 5 * time.Second},
		{"HandshakeTimeout", &cfg.HandshakeTimeout, 5 * time.Second},
		{"HeaderTimeout", &cfg.HeaderTimeout, 75 * time.Second},
		{"IdleTimeout", &cfg.IdleTimeout, 60 * time.Second},
	} {
		if *d.value < 0 {
			errs = append(errs, fmt.Errorf("%s is %v: want a positive duration", d.name, *d.value))
		}
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
	if cfg.MaxIdlePerServer < 0 || cfg.MaxConnsPerServer < 0 {
		errs = append(errs, errors.New("MaxIdlePerServer and MaxConnsPerServer must not be negative"))
	}
	if cfg.MaxHeadBytes == 0 {
		cfg.MaxHeadBytes = DefaultMaxHeadBytes
	}
	if cfg.MaxHeadBytes < minHeadBytes {
		errs = append(errs, fmt.Errorf("MaxHeadBytes is %d: want at least %d", cfg.MaxHeadBytes, minHeadBytes))
	}
	if cfg.MaxIdlePerServer == 0 {
		cfg.MaxIdlePerServer = 256
	}
	if cfg.MaxConnsPerServer == 0 {
		cfg.MaxConnsPerServer = 2048
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return cfg, errors.Join(errs...)
}

func orDefault(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}
