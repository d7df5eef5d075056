package controlplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/flock"
)

const (
	// readyTimeout is how long a server may take to become ready, on a slow and
	// busy machine.
	readyTimeout = 2 * time.Minute

	// probeTimeout bounds one question whether a server is ready.
	probeTimeout = 3 * time.Second
)

// WaitReady waits until the named servers are ready, or all kube-apiservers when
// none is named. It fails at once when one does not run.
func (c *ControlPlane) WaitReady(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		names = c.Names()
	}
	return c.each(names, func(name string) error {
		if err := c.check(name); err != nil {
			return err
		}
		return c.waitReady(ctx, name)
	})
}

func (c *ControlPlane) waitReady(ctx context.Context, name string) error {
	client, err := c.probeClient(name)
	if err != nil {
		return err
	}
	return c.waitFor(ctx, name, func(ctx context.Context) error { return c.probe(ctx, client, name) })
}

// waitFor waits until a probe of a server that runs succeeds.
func (c *ControlPlane) waitFor(ctx context.Context, name string, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("waited %s", readyTimeout))
	defer cancel()
	for {
		// First whether it runs: it may have ended since it answered.
		running, err := flock.Held(c.pidFile(name))
		if err != nil {
			return err
		}
		if !running {
			return fmt.Errorf("%s does not run\n%s", name, c.logTail(name))
		}
		err = probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; last answer: %w\n%s", name, context.Cause(ctx), err, c.logTail(name))
		case <-time.After(pollInterval):
		}
	}
}

// Ready asks a server once whether it is ready. It is nil when it is.
func (c *ControlPlane) Ready(ctx context.Context, name string) error {
	if err := c.check(name); err != nil {
		return err
	}
	client, err := c.probeClient(name)
	if err != nil {
		return err
	}
	return c.probe(ctx, client, name)
}

func (c *ControlPlane) probe(ctx context.Context, client *http.Client, name string) error {
	path := "/readyz"
	if name == Kubelet || name == controllerManager {
		path = "/healthz"
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL(name)+path, nil)
	if err != nil {
		return err
	}
	return do(client, req)
}

// probeClient makes a client that has its own connection for each request: what
// a connection that is still open says of a server that stops is no answer.
func (c *ControlPlane) probeClient(name string) (*http.Client, error) {
	if name == controllerManager || isAPIServer(name) {
		return c.newClient(Admin, true)
	}
	cert, err := tls.LoadX509KeyPair(c.pki(name+"-client.crt"), c.pki(name+"-client.key"))
	if err != nil {
		return nil, fmt.Errorf("cannot load client certificate for %s: %w", name, err)
	}
	roots, err := loadRoots(c.pki(name + "-ca.crt"))
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}},
	}}, nil
}

// HTTPClient makes a client that trusts the lab's CA and sends the token of a
// user; an unknown user is anonymous. It speaks HTTP/2 where the server does, and
// uses no proxy.
func (c *ControlPlane) HTTPClient(user string) (*http.Client, error) {
	return c.newClient(user, false)
}

func (c *ControlPlane) newClient(user string, oneRequestPerConn bool) (*http.Client, error) {
	roots, err := loadRoots(c.Files().CA)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &bearer{
		token: c.Token(user),
		next: &http.Transport{
			ForceAttemptHTTP2: true,
			DisableKeepAlives: oneRequestPerConn,
			TLSClientConfig:   &tls.Config{RootCAs: roots},
		},
	}}, nil
}

// bearer adds a token to requests that have no Authorization of their own.
type bearer struct {
	token string
	next  *http.Transport
}

func (b *bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	if b.token != "" && req.Header.Get("Authorization") == "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(req)
}

// CloseIdleConnections lets http.Client.CloseIdleConnections work.
func (b *bearer) CloseIdleConnections() { b.next.CloseIdleConnections() }

func loadRoots(file string) (*x509.CertPool, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot load certificate authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("cannot load certificate authority: no certificate in %s", file)
	}
	return roots, nil
}

// statusError is an answer other than success.
type statusError struct {
	url  string
	code int
	body string // cut short
}

func (e *statusError) Error() string { return fmt.Sprintf("%s answered %d: %s", e.url, e.code, e.body) }

// do sends a request whose answer matters only if it is no success.
func do(client *http.Client, req *http.Request) error {
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("cannot read answer of %s: %w", req.URL, err)
	}
	if resp.StatusCode >= 300 {
		return &statusError{url: req.URL.String(), code: resp.StatusCode, body: strings.TrimSpace(string(body))}
	}
	return nil
}

// maxAnswer is how much of an answer an error shows: a list of health checks.
const maxAnswer = 4 << 10

// maxLogTail is how much of a log an error shows, in bytes.
const maxLogTail = 3 << 10

// logTail returns the end of the log of a server, with its path before it.
func (c *ControlPlane) logTail(name string) string {
	path := c.path("log", name+".log")
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return "it has no log yet"
	}
	if err != nil {
		return "its log cannot be read: " + err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > maxLogTail {
		_, _ = f.Seek(-maxLogTail, io.SeekEnd)
	}
	tail, _ := io.ReadAll(io.LimitReader(f, maxLogTail))
	return "end of " + path + ":\n" + string(bytes.TrimSpace(tail))
}
