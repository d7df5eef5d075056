package upstream

import (
	"errors"
	"fmt"
	"net"
	"net/url"
)

var errNoServers = errors.New("no upstream servers: give at least one URL")

// parseServers checks the servers of a pool and returns them parsed, or every mistake
// in them.
func (cfg *Config) parseServers(servers []ServerConfig) ([]endpoint, error) {
	if len(servers) == 0 && !cfg.Dynamic {
		return nil, errNoServers
	}
	var errs []error
	ends, names := make([]endpoint, 0, len(servers)), map[string]bool{}
	for _, sc := range servers {
		end, err := sc.parse()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if names[end.name] {
			errs = append(errs, fmt.Errorf("two upstream servers are called %q: give them distinct names", end.name))
		}
		names[end.name] = true
		errs = append(errs, cfg.checkServer(sc, end))
		ends = append(ends, end)
	}
	return ends, errors.Join(errs...)
}

// checkServer looks for what does not go together.
func (cfg *Config) checkServer(sc ServerConfig, end endpoint) error {
	if cfg.FrontProxyCertFile != "" && !end.tls {
		return fmt.Errorf("cannot use upstream URL %q with a front-proxy certificate: want https, where it can be presented", sc.URL)
	}
	if sc.Access == nil {
		return nil
	}
	if err := sc.Access.check(); err != nil {
		return fmt.Errorf("upstream server %q: %w", end.name, err)
	}
	return nil
}

// endpoint is a parsed ServerConfig.
type endpoint struct {
	name string
	url  string // scheme://host:port
	tls  bool
	host string // without port and brackets
	addr string // host:port to dial

	access *Access // nil: the pool's
}

// parse checks a ServerConfig. A path, query or user in the URL is refused because
// requests carry their whole target, which would silently replace it.
func (sc ServerConfig) parse() (endpoint, error) {
	u, err := url.Parse(sc.URL)
	if err != nil {
		return endpoint{}, fmt.Errorf("cannot use upstream URL %q: %w", sc.URL, errors.Unwrap(err))
	}
	port := u.Port()
	switch u.Scheme {
	case "https":
		port = orDefault(port, "443")
	case "http":
		port = orDefault(port, "80")
	default:
		return endpoint{}, fmt.Errorf("cannot use upstream URL %q: want https://host:port or http://host:port", sc.URL)
	}
	if u.User != nil {
		return endpoint{}, fmt.Errorf("cannot use upstream URL %q: it must not hold a user or a password", u.Redacted())
	}
	if u.Hostname() == "" || (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return endpoint{}, fmt.Errorf("cannot use upstream URL %q: want only a scheme, a host and a port", sc.URL)
	}
	addr := net.JoinHostPort(u.Hostname(), port)
	return endpoint{
		name: orDefault(sc.Name, addr),
		url:  u.Scheme + "://" + addr,
		tls:  u.Scheme == "https",
		host: u.Hostname(),
		addr: addr,

		access: sc.Access,
	}, nil
}
