package upstream

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeServer is a kube-apiserver as far as probing sees one.
type fakeServer struct {
	mu       sync.Mutex
	answers  map[string]string // by path; one that begins with a digit is a status, "hang up" is none
	byAccept func(path, accept string) (contentType, body string)
	requests []*http.Request
	handled  int // answered with 304

	watch func(w http.ResponseWriter, r *http.Request) // answers watches; nil: like the rest
	*httptest.Server
}

func newFake(t *testing.T) *fakeServer {
	t.Helper()
	f := &fakeServer{answers: map[string]string{
		"/readyz":     "ok",
		"/version":    `{"major":"1","minor":"32","gitVersion":"v1.32.13"}`,
		"/api":        groupList("", "v1", "pods/log:get", "configmaps"),
		"/apis":       groupList("apps", "v1", "deployments/status:get,patch"),
		"/openapi/v3": `{"paths":{"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=A"}}}`,
		crdsTarget:    `{"kind":"PartialObjectMetadataList","items":[]}`,
	}}
	f.Server = httptest.NewUnstartedServer(f)
	f.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	f.StartTLS()
	t.Cleanup(f.Close)
	return f
}

// groupList is an APIGroupDiscoveryList of one group version. A resource is
// "name/subresource:verbs" or "name".
func groupList(group, version string, resources ...string) string {
	var items []string
	for _, r := range resources {
		name, sub, _ := strings.Cut(r, "/")
		sub, verbs, _ := strings.Cut(sub, ":")
		subs := ""
		if sub != "" {
			subs = fmt.Sprintf(`,"subresources":[{"subresource":%q,"verbs":["%s"]}]`, sub, strings.ReplaceAll(verbs, ",", `","`))
		}
		items = append(items, fmt.Sprintf(`{"resource":%q,"responseKind":{"group":%q,"version":%q,"kind":%q},"scope":"Namespaced",`+
			`"singularResource":"","verbs":["get","list","watch"]%s}`, name, group, version, "Kind-of-"+name, subs))
	}
	return fmt.Sprintf(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[`+
		`{"metadata":{"name":%q,"creationTimestamp":null},"versions":[{"version":%q,"resources":[%s],"freshness":"Current"}]}]}`,
		group, version, strings.Join(items, ","))
}

func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r)
	if watch := f.watch; watch != nil && r.URL.Query().Has("watch") {
		f.mu.Unlock()
		defer f.mu.Lock()
		watch(w, r)
		return
	}
	contentType, body := "application/json", f.answers[r.URL.Path]
	if f.byAccept != nil {
		if ct, b := f.byAccept(r.URL.Path, r.Header.Get("Accept")); b != "" {
			contentType, body = ct, b
		}
	}
	if body == "hang up" {
		panic(http.ErrAbortHandler)
	}
	status := 200
	if body == "" {
		status = 404
	}
	if n, _ := fmt.Sscanf(body, "%d ", &status); n == 1 {
		_, body, _ = strings.Cut(body, " ")
	}
	etag := fmt.Sprintf("%q", fmt.Sprint(len(body), body[max(0, len(body)-20):]))
	if status == 200 && strings.HasPrefix(r.URL.Path, "/api") {
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			f.handled++
			status, body = 304, ""
		}
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

func (f *fakeServer) set(path, answer string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[path] = answer
}

// asked returns how often path was asked for, and the last such request.
func (f *fakeServer) asked(path string) (n int, last *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if r.URL.Path == path {
			n, last = n+1, r
		}
	}
	return n, last
}

// caFile writes the CA that verifies the fake servers.
func (f *fakeServer) caFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ca.crt")
	writeFile(t, name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw}))
	return name
}

func writeFile(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// runPool probes the fakes, quickly, until the test ends. It returns once synced.
func runPool(t *testing.T, change func(*Config), fakes ...*fakeServer) *Pool {
	t.Helper()
	cfg := Config{
		CAFile: fakes[0].caFile(t), Log: slog.New(slog.DiscardHandler),
		ProbeInterval: 5 * time.Millisecond, DiscoveryInterval: 5 * time.Millisecond, CRDInterval: 5 * time.Millisecond,
	}
	for i, f := range fakes {
		cfg.Servers = append(cfg.Servers, ServerConfig{Name: string(rune('a' + i)), URL: f.URL})
	}
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := within(t, ended, "the end of Run"); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	if err := p.WaitSynced(testContext(t)); err != nil {
		t.Fatal(err)
	}
	return p
}

// resources lists what a state serves, as "group/version resource", sorted.
func resources(s *State) string {
	var all []string
	for key := range s.index {
		all = append(all, fmt.Sprintf("%s/%s %s", key.group, key.version, key.resource))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
