// Package webhook is a conversion webhook as an operator would write one, beside
// which MVP is held: a custom kind in two versions, its CustomResourceDefinition
// with and without the webhook, and policies for MVP that mean what the webhook does.
//
// The webhook is plain Go on decoded objects: one pass to decode a ConversionReview,
// edits in place, one pass to encode. It does no more than it must, so that a
// comparison with it is fair. It converts this one kind and nothing else.
package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/pki"
)

// headerTimeout is how long a client may take for the head of a request.
const headerTimeout = 10 * time.Second

// A Server is a running webhook on loopback. Its methods may be called from any
// goroutine.
type Server struct {
	http   *http.Server
	url    string
	ca     []byte
	served chan error // what Serve returned

	calls, objects atomic.Int64
}

// Start starts a webhook with a certificate authority of its own. It serves until
// Close, over TLS, on a port that the system chooses.
func Start() (*Server, error) {
	ca, err := pki.NewCA("conversion webhook")
	if err != nil {
		return nil, err
	}
	pair, err := ca.Issue(pki.Leaf{CommonName: "webhook", Hosts: []string{"127.0.0.1"}})
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot use the webhook's certificate: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for conversion reviews: %w", err)
	}
	s := &Server{url: "https://" + listener.Addr().String() + path, ca: ca.Cert, served: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+path, s.serve)
	s.http = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: headerTimeout,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
	}
	go func() { s.served <- s.http.ServeTLS(listener, "", "") }()
	return s, nil
}

// path is where reviews are posted to.
const path = "/convert"

// URL is where kube-apiserver posts its reviews to.
func (s *Server) URL() string { return s.url }

// CABundle is the PEM certificate by which clients know the webhook.
func (s *Server) CABundle() []byte { return s.ca }

// Calls is how many reviews the webhook has answered, and Objects how many objects it
// has converted in them.
func (s *Server) Calls() int64   { return s.calls.Load() }
func (s *Server) Objects() int64 { return s.objects.Load() }

// closeWithin is how long reviews that have begun may take to end.
const closeWithin = 5 * time.Second

// Close ends the webhook and waits for the reviews that have begun. From then on
// kube-apiserver cannot serve what needs a conversion.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("cannot end the conversion webhook: %w", err)
	}
	return nil
}
