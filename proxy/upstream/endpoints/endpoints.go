// Package endpoints finds the kube-apiservers of the cluster that MVP runs in. They
// write their addresses into the EndpointSlices of the service default/kubernetes
// themselves; a client-go reflector follows those.
//
// An API server that is in trouble, or too old a cache of one, must never look like a
// cluster without API servers. So a list that is empty or cannot be read changes
// nothing, and an address that is gone is kept for a while: a server that restarts
// takes itself out and comes back, and what only it serves must not come and go in
// discovery. The pool probes it meanwhile, and sends it nothing when it does not answer.
package endpoints

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/rest"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// ServerName is what the certificate of every kube-apiserver is good for, at whatever
// address it listens.
const ServerName = "kubernetes.default.svc"

// DefaultLinger is time enough for a kube-apiserver to be stopped, and for the next
// version of it to be fetched and started.
const DefaultLinger = 2 * time.Minute

// serviceAccountDir is where a pod has the credential of its service account.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// Config says where the EndpointSlices are read.
type Config struct {
	// URL is that of the service whose endpoints are wanted, as this process reaches
	// it. Required.
	URL string

	// Access is how the service is trusted, and MVP's own credential for it. The
	// servers that are found are accessed as the pool's Config says; that is the same
	// as a rule.
	Access upstream.Access

	// Namespace and Service name the service. Default: default and kubernetes.
	Namespace, Service string

	// Linger is how long an address is kept that has left the EndpointSlices. Default
	// DefaultLinger; negative: not at all.
	Linger time.Duration

	// Log gets what is found and what cannot be read. Default: slog.Default().
	Log *slog.Logger
}

// pod is the surroundings of a process, as far as they tell of a cluster.
type pod struct {
	getenv         func(string) string
	serviceAccount string // a directory
}

var thisPod = pod{os.Getenv, serviceAccountDir}

// InCluster reports whether this process runs in a cluster and has a service account
// there.
func InCluster() bool {
	_, err := thisPod.config(upstream.Access{})
	return err == nil
}

// PodConfig is the configuration of a process that runs in a pod. What access does not
// say is the service account's.
func PodConfig(access upstream.Access) (Config, error) { return thisPod.config(access) }

func (p pod) config(access upstream.Access) (Config, error) {
	host, port := p.getenv("KUBERNETES_SERVICE_HOST"), p.getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return Config{}, errors.New("MVP does not run in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
	}
	if access.ServerName == "" {
		access.ServerName = ServerName
	}
	var err error
	if access.CAFile == "" {
		access.CAFile, err = p.file("ca.crt")
	}
	if !access.HasCredential() && err == nil {
		access.TokenFile, err = p.file("token")
	}
	return Config{URL: "https://" + net.JoinHostPort(host, port), Access: access}, err
}

// file is the path of a file of the service account.
func (p pod) file(name string) (string, error) {
	path := filepath.Join(p.serviceAccount, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("MVP's pod has no service account: %w", err)
	}
	return path, nil
}

// Source follows the EndpointSlices.
type Source struct {
	cfg  Config
	http *http.Client
	api  discoveryclient.EndpointSliceInterface
	pool *upstream.Pool

	mu       sync.Mutex
	slices   map[string]slice
	servers  map[string]time.Time // by address: when it left, zero while it is there
	told     bool                 // the pool has them
	empty    bool                 // the slices name no server
	problem  string               // as last logged
	failures int                  // of lists and watches: which address is dialled first
}

// New checks cfg. It reads the files that cfg names, but connects nowhere before Run.
func New(cfg Config, pool *upstream.Pool) (*Source, error) {
	if cfg.Namespace == "" {
		cfg.Namespace = metav1.NamespaceDefault
	}
	if cfg.Service == "" {
		cfg.Service = "kubernetes"
	}
	if cfg.Linger == 0 {
		cfg.Linger = DefaultLinger
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	s := &Source{cfg: cfg, pool: pool, slices: map[string]slice{}, servers: map[string]time.Time{}}
	config := s.rest()
	var err error
	if s.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, fmt.Errorf("cannot make a client of %s: %w", cfg.URL, err)
	}
	client, err := discoveryclient.NewForConfigAndClient(config, s.http)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client of %s: %w", cfg.URL, err)
	}
	s.api = client.EndpointSlices(cfg.Namespace)
	return s, nil
}

func (s *Source) rest() *rest.Config {
	a := &s.cfg.Access
	return &rest.Config{
		Host: s.cfg.URL, UserAgent: "mvp", Dial: s.dial,
		BearerToken: a.Token, BearerTokenFile: a.TokenFile,
		TLSClientConfig: rest.TLSClientConfig{
			Insecure: a.InsecureSkipTLSVerify, ServerName: a.ServerName,
			CAFile: a.CAFile, CAData: a.CAData,
			CertFile: a.ClientCertFile, CertData: a.ClientCertData, KeyFile: a.ClientKeyFile, KeyData: a.ClientKeyData,
		},
		WarningHandlerWithContext: rest.NoWarnings{},
	}
}

// dialTimeout bounds the connect to one of the addresses that may answer.
const dialTimeout = 3 * time.Second

// dial connects to the service, or to one of the servers that are known to be healthy:
// the service's address may lead to the one that has just gone. After a failure it
// begins with another one, since one that accepts need not answer.
func (s *Source) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	addrs := []string{addr}
	for _, server := range s.pool.View().Healthy(nil) {
		addrs = append(addrs, strings.TrimPrefix(server.URL, "https://"))
	}
	s.mu.Lock()
	first := s.failures
	s.mu.Unlock()
	dialer := net.Dialer{Timeout: dialTimeout}
	var errs []error
	for i := range addrs {
		conn, err := dialer.DialContext(ctx, network, addrs[(first+i)%len(addrs)])
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}
