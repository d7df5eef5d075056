// Package tour is what `mvp demo` shows: the same requests sent to the servers
// of the demo control plane and to MVP before them. Each step checks what it
// shows, so that a demo that ends well has proved it.
package tour

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/mixed-version-proxy/mvp/examples/demo"
)

// Config says what to show.
type Config struct {
	// Plane is the control plane behind MVP, two servers with the manifests of the
	// demo package applied. Required.
	Plane *demo.ControlPlane

	// URL is MVP's address and CA the certificate that verifies it, in PEM.
	URL string
	CA  []byte

	// Synced reports whether MVP sees every server as healthy. Required.
	Synced func() bool

	// Out gets the report.
	Out io.Writer
}

// stepTimeout bounds one step: all of them together take a second or two.
const stepTimeout = 20 * time.Second

// Run shows every step. It returns an error when one does not come out as it
// says.
func Run(ctx context.Context, cfg Config) error {
	t, err := newTour(cfg)
	if err != nil {
		return err
	}
	defer t.client.CloseIdleConnections()
	steps := []struct {
		title string
		run   func(*tour, context.Context) error
	}{
		{"A CI job applies a v1alpha1 object. Every server has moved on to v1beta1.", (*tour).createCustomResource},
		{"The same job reads and patches it back, in v1alpha1.", (*tour).patchCustomResource},
		{"An operator from last year watches v1alpha1.", (*tour).watchCustomResources},
		{"A chart still has a policy/v1beta1 PodDisruptionBudget, without minAvailable.", (*tour).createBudget},
		{"A controller lists flowschemas in v1beta3, which only the 1.31 server has.", (*tour).listFlowSchemas},
		{"Deployments prefer the 1.32 server; it is taken down for its upgrade.", (*tour).preferNewServer},
	}
	for i, step := range steps {
		fmt.Fprintf(cfg.Out, "\n%d. %s\n", i+1, step.title)
		stepCtx, cancel := context.WithTimeout(ctx, stepTimeout)
		err := t.synced(stepCtx)
		if err == nil {
			err = step.run(t, stepCtx)
		}
		cancel()
		if err != nil {
			return fmt.Errorf("step %d of the demo did not come out as it should: %w", i+1, err)
		}
	}
	return nil
}

// tour is one run.
type tour struct {
	Config
	client *http.Client
	old    *demo.Server // the server of the lower version
	newer  *demo.Server
}

func newTour(cfg Config) (*tour, error) {
	servers := cfg.Plane.Servers()
	if len(servers) != 2 {
		return nil, fmt.Errorf("cannot show the demo on %d servers: it is about two", len(servers))
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(cfg.CA) || !roots.AppendCertsFromPEM(cfg.Plane.CAPEM()) {
		return nil, errors.New("cannot show the demo: a CA certificate is not PEM")
	}
	return &tour{
		Config: cfg,
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}},
		old:    servers[0], newer: servers[1],
	}, nil
}

// request is one request and where it goes.
type request struct {
	to           string // the name shown
	url          string // of the server
	method, path string
	contentType  string
	body         []byte
}

func (t *tour) mvp(method, path string) request {
	return request{to: "MVP", url: t.URL, method: method, path: path}
}

func direct(s *demo.Server, method, path string) request {
	return request{to: s.Version, url: s.URL(), method: method, path: path}
}

// with adds a manifest of the demo as the body.
func (r request) with(manifest string) (request, error) {
	raw, err := fs.ReadFile(demo.Manifests, manifest)
	if err != nil {
		return r, err
	}
	r.body, err = yaml.YAMLToJSON(raw)
	r.contentType = "application/json"
	return r, err
}

// answer is what came back.
type answer struct {
	code int
	body []byte
}

// send sends r and shows it with its answer.
func (t *tour) send(ctx context.Context, r request, want int) (answer, error) {
	got, err := t.do(ctx, r)
	if err != nil {
		return answer{}, err
	}
	t.show(r.to, r.method+" "+r.path, fmt.Sprintf("%d %s", got.code, got.summary()))
	if got.code != want {
		return got, fmt.Errorf("%s answered %d to %s %s, want %d: %s", r.to, got.code, r.method, r.path, want, got.body)
	}
	return got, nil
}

func (t *tour) do(ctx context.Context, r request) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, r.url+r.path, bytes.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, body}, err
}

// show prints who was asked what, and on a line of its own what came of it.
func (t *tour) show(who, what, result string) {
	fmt.Fprintf(t.Out, "   %-8s %s\n", who, what)
	if result != "" {
		fmt.Fprintf(t.Out, "            -> %s\n", result)
	}
}

// syncPoll is how often a step looks whether MVP has seen a server come back.
const syncPoll = 20 * time.Millisecond

// synced waits until MVP sees all servers again, so that each step begins alike.
func (t *tour) synced(ctx context.Context) error {
	ticker := time.NewTicker(syncPoll)
	defer ticker.Stop()
	for !t.Synced() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("MVP does not see every server as healthy: %w", ctx.Err())
		case <-ticker.C:
		}
	}
	return nil
}

// summary is the answer in a few words: a Status' message, or what is asked for
// of an object.
func (a answer) summary() string {
	var object struct {
		Kind    string            `json:"kind"`
		Message string            `json:"message"`
		Items   []json.RawMessage `json:"items"`
		Spec    json.RawMessage   `json:"spec"`
	}
	if json.Unmarshal(a.body, &object) != nil {
		return strings.TrimSpace(string(a.body))
	}
	switch {
	case object.Kind == "Status":
		return object.Message
	case strings.HasSuffix(object.Kind, "List"):
		return fmt.Sprintf("%s of %d", object.Kind, len(object.Items))
	case len(object.Spec) < 200:
		return fmt.Sprintf("%s, spec %s", object.Kind, object.Spec)
	}
	return object.Kind
}

// field reads one field of an answer's object.
func (a answer) field(path ...string) any {
	var value any
	if json.Unmarshal(a.body, &value) != nil {
		return nil
	}
	for _, key := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[key]
	}
	return value
}

func expect(a answer, want any, path ...string) error {
	if got := a.field(path...); got != want {
		return fmt.Errorf("%s is %v, want %v", strings.Join(path, "."), got, want)
	}
	return nil
}
