package demo

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	utilversion "k8s.io/apimachinery/pkg/util/version"
)

const (
	// maxRecords is how many of its newest answers a server remembers.
	maxRecords = 10_000

	// readHeaderTimeout ends a connection that sends no request.
	readHeaderTimeout = 30 * time.Second
)

// A Server is one kube-apiserver of the control plane. Its methods may be called
// from any goroutine.
type Server struct {
	// Name is short and unique in its control plane: "kube-apiserver-1.31".
	Name string

	// Version is the full version without "v": "1.31.14".
	Version string

	plane   *ControlPlane
	minor   int
	release *utilversion.Version
	cert    tls.Certificate

	notReady  atomic.Bool
	documents documents

	mu      sync.Mutex
	address string // host:port, kept from the first Start on
	running *http.Server
	records []Request
}

// A Request is one that a server answered.
type Request struct {
	Method string
	Target string // path and query as sent
	User   string // whose token it was; "unverified" without [Options].Tokens; without a token "system:anonymous"
	Agent  string // User-Agent
	Accept string
	Code   int // of the answer; of a stream, the code that it began with
}

// newServer makes a server that is not started yet. names counts the servers of
// each minor version, so that two of the same one get different names.
func newServer(c *ControlPlane, version string, names map[string]int) (*Server, error) {
	release, err := utilversion.ParseSemantic(strings.TrimPrefix(version, "v"))
	if err != nil {
		return nil, fmt.Errorf("cannot start a server of version %q: want one like 1.32.13: %w", version, err)
	}
	name := fmt.Sprintf("kube-apiserver-%d.%d", release.Major(), release.Minor())
	names[name]++
	if n := names[name]; n > 1 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	cert, err := c.ca.serverCertificate(int64(len(c.servers) + 2)) // the CA has serial 1
	if err != nil {
		return nil, err
	}
	return &Server{
		Name:    name,
		Version: release.String(),
		plane:   c,
		minor:   int(release.Minor()),
		release: release,
		cert:    cert,
	}, nil
}

// URL is where the server listens, "https://127.0.0.1:PORT", the same over all
// stops and starts.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "https://" + s.address
}

// Start makes the server listen, again on its port if it was stopped. It does
// nothing if the server runs.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return nil
	}
	address := s.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return fmt.Errorf("cannot start %s: %w", s.Name, err)
	}
	s.address = listener.Addr().String()
	s.running = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{s.cert}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: readHeaderTimeout,
		ErrorLog:          log.New(io.Discard, "", 0), // a client that hangs up is no news here
	}
	go func(running *http.Server) {
		// ServeTLS returns when Stop closes the server; it has no other end.
		_ = running.ServeTLS(listener, "", "")
	}(s.running)
	return nil
}

// Stop closes the listener and every connection, as a kube-apiserver that is
// killed does; watches end in the middle. It does nothing if the server is stopped.
func (s *Server) Stop() {
	s.mu.Lock()
	running := s.running
	s.running = nil
	s.mu.Unlock()
	if running != nil {
		_ = running.Close() // an error of one connection does not matter to a killed server
	}
}

// SetReady makes /readyz answer 200 (true, as at the start) or 500. All else
// works on, as in a kube-apiserver that is about to shut down.
func (s *Server) SetReady(ready bool) { s.notReady.Store(!ready) }

// Requests returns what the server answered, oldest first: the newest 10,000. The
// answer to a request is recorded before its first byte is sent.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.records...)
}

// serve answers one request: who asks, what for, and then the answer or the one
// place that writes errors.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	user, err := s.plane.authenticate(r)
	rec := &recorder{ResponseWriter: w, server: s, request: Request{
		Method: r.Method,
		Target: r.URL.RequestURI(),
		User:   user,
		Agent:  r.UserAgent(),
		Accept: r.Header.Get("Accept"),
	}}
	if err == nil {
		err = s.route(rec, r)
	}
	if err != nil {
		writeError(rec, err)
	}
}

// authenticate returns the user behind a request. Its error is a Status.
func (c *ControlPlane) authenticate(r *http.Request) (string, error) {
	token, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch user, known := c.tokens[token]; {
	case c.tokens == nil && isBearer:
		return "unverified", nil
	case c.tokens == nil:
		return "system:anonymous", nil
	case isBearer && known:
		return user, nil
	}
	return "system:anonymous", errUnauthorized
}

// recorder notes the code of an answer before it is sent.
type recorder struct {
	http.ResponseWriter
	server  *Server
	request Request
	begun   bool
}

func (w *recorder) WriteHeader(code int) {
	if !w.begun {
		w.begun = true
		w.request.Code = code
		w.server.record(w.request)
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *recorder) Write(p []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(p)
	if err != nil {
		return n, fmt.Errorf("cannot write the answer: %w", err)
	}
	return n, nil
}

// Unwrap lets http.ResponseController flush.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (s *Server) record(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.records) == maxRecords {
		s.records = s.records[1:]
	}
	s.records = append(s.records, r)
}
