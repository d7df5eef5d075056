package endpoints

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cluster is one etcd with EndpointSlices, and kube-apiservers before it that have a
// certificate for nothing but ServerName.
type cluster struct {
	t    *testing.T
	pair tls.Certificate
	ca   string // a file

	mu      sync.Mutex
	version int // of the last change
	slices  map[string]*discoveryv1.EndpointSlice
	events  []event
	oldest  int           // versions before are compacted
	changed chan struct{} // closed at the next change
	watches int           // begun
	refuse  int           // the status that slices are answered with, if not 0
}

type event struct {
	version int
	Type    string                     `json:"type"`
	Object  *discoveryv1.EndpointSlice `json:"object"`
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, DNSNames: []string{ServerName},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{
		t: t, pair: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca: filepath.Join(t.TempDir(), "ca.crt"),
		version: 10, slices: map[string]*discoveryv1.EndpointSlice{}, changed: make(chan struct{}),
	}
	if err := os.WriteFile(c.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// apiserver is one kube-apiserver of a cluster.
type apiserver struct {
	*httptest.Server
	cluster *cluster
	mu      sync.Mutex
	status  int // that slices are answered with, if not 0
}

func (c *cluster) apiserver() *apiserver {
	c.t.Helper()
	s := &apiserver{cluster: c}
	s.Server = httptest.NewUnstartedServer(s)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{c.pair}}
	s.EnableHTTP2 = true
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	c.t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (s *apiserver) addr() string { return s.Listener.Addr().String() }

func (s *apiserver) port() int32 { return int32(s.Listener.Addr().(*net.TCPAddr).Port) }

func (s *apiserver) answerSlices(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

func (s *apiserver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Header.Get("Authorization") != "Bearer secret":
		w.WriteHeader(401)
	case r.URL.Path == "/readyz":
		_, _ = w.Write([]byte("ok"))
	case r.URL.Path == "/version":
		_, _ = w.Write([]byte(`{"major":"1","minor":"32","gitVersion":"v1.32.0"}`))
	case r.URL.Path == "/api", r.URL.Path == "/apis":
		_, _ = w.Write([]byte(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[]}`))
	case r.URL.Path == "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices":
		s.mu.Lock()
		status := s.status
		s.mu.Unlock()
		s.cluster.serve(w, r, status)
	default:
		w.WriteHeader(404)
	}
}

func (c *cluster) serve(w http.ResponseWriter, r *http.Request, status int) {
	c.mu.Lock()
	if status == 0 {
		status = c.refuse
	}
	c.mu.Unlock()
	query := r.URL.Query()
	switch {
	case status != 0:
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"message":"no slices today"}`, status)
	case query.Get("labelSelector") != "kubernetes.io/service-name=kubernetes" || query.Get("sendInitialEvents") != "":
		w.WriteHeader(400)
	case query.Get("watch") != "":
		c.watch(w, r)
	default:
		c.list(w)
	}
}

func (c *cluster) list(w http.ResponseWriter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := discoveryv1.EndpointSliceList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(c.version)}}
	list.Kind, list.APIVersion = "EndpointSliceList", "discovery.k8s.io/v1"
	for _, es := range c.slices {
		list.Items = append(list.Items, *es)
	}
	_ = json.NewEncoder(w).Encode(list)
}

func (c *cluster) watch(w http.ResponseWriter, r *http.Request) {
	from, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		w.WriteHeader(400)
		return
	}
	c.mu.Lock()
	c.watches++
	gone := from < c.oldest
	c.mu.Unlock()
	w.(http.Flusher).Flush()
	if gone {
		_, _ = w.Write([]byte(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":410,"reason":"Expired","message":"too old resource version"}}` + "\n"))
		return
	}
	for {
		c.mu.Lock()
		var due []event
		for _, e := range c.events {
			if e.version > from {
				due = append(due, e)
				from = e.version
			}
		}
		changed := c.changed
		c.mu.Unlock()
		for _, e := range due {
			_ = json.NewEncoder(w).Encode(e)
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// put writes a slice with the endpoints, "address" or "address,condition=false"….
func (c *cluster) put(name string, port int32, endpoints ...string) {
	es := newSlice(name, port, endpoints...)
	c.change("MODIFIED", es, func() {
		c.slices[name] = es
	})
}

func (c *cluster) remove(name string) {
	c.mu.Lock()
	es := c.slices[name].DeepCopy()
	c.mu.Unlock()
	c.change("DELETED", es, func() { delete(c.slices, name) })
}

func (c *cluster) change(kind string, es *discoveryv1.EndpointSlice, do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kind == "MODIFIED" && c.slices[es.Name] == nil {
		kind = "ADDED"
	}
	c.version++
	es.ResourceVersion = strconv.Itoa(c.version)
	do()
	c.events = append(c.events, event{c.version, kind, es})
	close(c.changed)
	c.changed = make(chan struct{})
}

// compact forgets all events: whoever watches from before them is gone.
func (c *cluster) compact() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version += 10
	c.events, c.oldest = nil, c.version
}

func (c *cluster) watched() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watches
}

func (c *cluster) refuseAll(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse = status
}

func newSlice(name string, port int32, endpoints ...string) *discoveryv1.EndpointSlice {
	https, family := "https", discoveryv1.AddressTypeIPv4
	es := &discoveryv1.EndpointSlice{
		TypeMeta:    metav1.TypeMeta{Kind: "EndpointSlice", APIVersion: "discovery.k8s.io/v1"},
		ObjectMeta:  metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		AddressType: family,
		Ports:       []discoveryv1.EndpointPort{{Name: &https, Port: &port}},
	}
	yes, no := true, false
	for _, spec := range endpoints {
		address, conditions, _ := strings.Cut(spec, ",")
		e := discoveryv1.Endpoint{Addresses: []string{address}}
		switch conditions {
		case "ready":
			e.Conditions.Ready = &yes
		case "not ready":
			e.Conditions.Ready = &no
		case "serving":
			e.Conditions.Ready, e.Conditions.Serving, e.Conditions.Terminating = &no, &yes, &yes
		}
		es.Endpoints = append(es.Endpoints, e)
	}
	return es
}
