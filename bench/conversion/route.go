package main

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
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
	"github.com/mixed-version-proxy/mvp/bench/lab/webhook"
)

// route is one way to the objects of a group.
type route struct {
	name    string
	base    string // URL of what is asked
	group   string
	version string
	mvp     *mvp // on the way, or nil
	direct  int  // which of all routes it is compared with
	client  *http.Client
}

// path of the objects of the route in their namespace.
func (r *route) path() string {
	return "/apis/" + r.group + "/" + r.version + "/namespaces/default/" + webhook.Resource
}

// old reports whether the route is in the version that has to be converted.
func (r *route) old() bool { return r.version == webhook.Old }

// newClient is an HTTP client as the administrator.
func newClient(l *controlplane.ControlPlane) (*http.Client, error) {
	transport, err := newTransport(l)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &bearer{l.Token(controlplane.Admin), transport}}, nil
}

// newTransport speaks HTTP/1.1, as MVP does, and asks for no compression.
func newTransport(l *controlplane.ControlPlane) (*http.Transport, error) {
	ca, err := os.ReadFile(l.Files().CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("no certificate in %s", l.Files().CA)
	}
	var one http.Protocols
	one.SetHTTP1(true)
	return &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, Protocols: &one,
		DisableCompression: true, MaxIdleConnsPerHost: 16, ReadBufferSize: 64 << 10,
	}, nil
}

type bearer struct {
	token string
	next  *http.Transport
}

func (b *bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(req)
}

// CloseIdleConnections is what [http.Client.CloseIdleConnections] looks for.
func (b *bearer) CloseIdleConnections() { b.next.CloseIdleConnections() }

// requestTime is how long one request may take: a first list by a webhook takes long.
const requestTime = 2 * time.Minute

// do sends one request and reads the answer to its end.
func (r *route) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	var answer bytes.Buffer
	_, err := r.transfer(ctx, method, path, body, func(in io.Reader) error {
		_, err := answer.ReadFrom(in)
		return err
	})
	return answer.Bytes(), err
}

// transfer sends one request, hands its answer to read, and says how long both took.
func (r *route) transfer(ctx context.Context, method, path string, body []byte, read func(io.Reader) error) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	start := time.Now()
	resp, err := r.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", r.name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return 0, fmt.Errorf("%s: cannot %s %s: %w", r.name, method, path, refusal(resp))
	}
	if err := read(resp.Body); err != nil {
		return 0, fmt.Errorf("%s: %s %s: %w", r.name, method, path, err)
	}
	return time.Since(start), nil
}

// refusedError is an answer that says no.
type refusedError struct {
	code int
	text string
}

func (e *refusedError) Error() string { return fmt.Sprintf("%d: %s", e.code, e.text) }

// refusal is what the answer says, the beginning of it.
func refusal(resp *http.Response) error {
	const enough = 2 << 10
	text, err := io.ReadAll(io.LimitReader(resp.Body, enough))
	return errors.Join(&refusedError{resp.StatusCode, string(text)}, err)
}

// sink reads to the end and counts, in large pieces, as a client does that is not what
// is measured.
type sink struct {
	buf   []byte
	bytes int64
}

func newSink() *sink { return &sink{buf: make([]byte, 64<<10)} }

func (s *sink) read(in io.Reader) error {
	s.bytes = 0
	for {
		n, err := in.Read(s.buf)
		s.bytes += int64(n)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
