package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/policies"
)

// apiserver is as much of a kube-apiserver as the package asks for, and records what it
// was asked. Every object has its path as key.
type apiserver struct {
	*httptest.Server

	mu       sync.Mutex
	revision int
	objects  map[string]map[string]any
	watches  map[chan string]string // the path that is watched
	refused  map[string]int         // the status that requests get, by method and path
	wrote    []string               // writes: method, path and body
}

func newAPIServer(t *testing.T) *apiserver {
	s := &apiserver{objects: map[string]map[string]any{}, watches: map[chan string]string{}, refused: map[string]int{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

const (
	crdPath    = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/transformationrules.mvp.k8s.io"
	rulesPath  = "/apis/mvp.k8s.io/v1/transformationrules"
	mapsPath   = "/api/v1/namespaces/kube-system/configmaps"
	leasesPath = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
	eventsPath = "/apis/events.k8s.io/v1/namespaces/"
)

// install makes the server serve TransformationRules.
func (s *apiserver) install() { s.put(crdPath, map[string]any{"spec": map[string]any{}}) }

// put makes an object, or changes it.
func (s *apiserver) put(path string, o map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(path, o)
}

// store is put with the lock held. What the server fills in is filled in.
func (s *apiserver) store(path string, o map[string]any) map[string]any {
	s.revision++
	collection, name := path[:strings.LastIndex(path, "/")], path[strings.LastIndex(path, "/")+1:]
	old, kind := s.objects[path], "ADDED"
	m, _ := o["metadata"].(map[string]any)
	if m == nil {
		m = map[string]any{}
	}
	meta := map[string]any{
		"name": name, "resourceVersion": fmt.Sprint(s.revision), "generation": 1, "labels": m["labels"],
		"uid": fmt.Sprint("uid-", s.revision), "creationTimestamp": time.Unix(int64(1_700_000_000+s.revision), 0).UTC().Format(time.RFC3339),
	}
	if _, after, ok := strings.Cut(collection, "/namespaces/"); ok {
		meta["namespace"], _, _ = strings.Cut(after, "/")
	}
	if old != nil {
		kind = "MODIFIED"
		was := old["metadata"].(map[string]any)
		meta["uid"], meta["creationTimestamp"], meta["generation"] = was["uid"], was["creationTimestamp"], was["generation"]
		if fmt.Sprint(old["spec"]) != fmt.Sprint(o["spec"]) {
			meta["generation"] = was["generation"].(int) + 1
		}
		if o["status"] == nil {
			o["status"] = old["status"]
		}
	}
	o["metadata"] = meta
	kinds := map[string][2]string{rulesPath: {"mvp.k8s.io/v1", "TransformationRules"}, mapsPath: {"v1", "ConfigMap"}, leasesPath: {"coordination.k8s.io/v1", "Lease"}}
	if k, ok := kinds[collection]; ok {
		o["apiVersion"], o["kind"] = k[0], k[1]
	}
	s.objects[path] = o
	s.tell(collection, kind, o)
	return o
}

func (s *apiserver) remove(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	o := s.objects[path]
	delete(s.objects, path)
	s.tell(path[:strings.LastIndex(path, "/")], "DELETED", o)
}

func (s *apiserver) tell(collection, kind string, o map[string]any) {
	event, _ := json.Marshal(map[string]any{"type": kind, "object": o})
	for c, path := range s.watches {
		if path == collection {
			c <- string(event)
		}
	}
}

// refuse has requests of a method for what begins with path answered with a status; 0:
// no more.
func (s *apiserver) refuse(method, path string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[method+" "+path] = status
}

// writes are the writes to what begins with path.
func (s *apiserver) writes(method, path string) (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.wrote {
		if strings.HasPrefix(w, method+" "+path) {
			list = append(list, w)
		}
	}
	return list
}

// object is what is stored, as JSON.
func (s *apiserver) object(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, _ := json.Marshal(s.objects[path])
	return string(data)
}

func (s *apiserver) answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

func (s *apiserver) fail(w http.ResponseWriter, code int, reason string) {
	s.answer(w, code, map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": "the test says " + reason,
	})
}

// ServeHTTP answers a request.
func (s *apiserver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.URL.Query().Get("watch") == "true" {
		s.serveWatch(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	path := r.URL.Path
	if r.Method != "GET" {
		s.wrote = append(s.wrote, r.Method+" "+path+"?"+r.URL.RawQuery+" "+string(body))
	}
	for what, status := range s.refused {
		if status != 0 && strings.HasPrefix(r.Method+" "+path, what) {
			s.fail(w, status, map[int]string{403: "Forbidden", 503: "ServiceUnavailable"}[status])
			return
		}
	}
	var o map[string]any
	_ = json.Unmarshal(body, &o)
	target, isStatus := strings.CutSuffix(path, "/status")
	switch {
	case strings.HasPrefix(path, rulesPath) && s.objects[crdPath] == nil, r.Method == "GET" && !isCollection(path) && s.objects[path] == nil,
		isStatus && s.objects[target] == nil:
		s.fail(w, 404, "NotFound")
	case r.Method == "GET" && isCollection(path):
		list := []any{}
		for key, o := range s.objects {
			if key[:strings.LastIndex(key, "/")] == path && matches(o, r.URL.Query()) {
				list = append(list, o)
			}
		}
		s.answer(w, 200, map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": fmt.Sprint(s.revision)}, "items": list})
	case r.Method == "GET":
		s.answer(w, 200, s.objects[path])
	case isStatus && r.Method == "PATCH":
		if o["metadata"].(map[string]any)["uid"] != s.objects[target]["metadata"].(map[string]any)["uid"] {
			s.fail(w, 409, "Conflict")
			return
		}
		s.answer(w, 200, s.store(target, map[string]any{"spec": s.objects[target]["spec"], "status": o["status"]}))
	case r.Method == "POST" && strings.HasPrefix(path, eventsPath):
		s.answer(w, 201, o)
	case r.Method == "POST":
		name := o["metadata"].(map[string]any)["name"].(string)
		s.answer(w, 201, s.store(path+"/"+name, o))
	case r.Method == "PUT":
		if v := o["metadata"].(map[string]any)["resourceVersion"]; s.objects[path] == nil || v != s.objects[path]["metadata"].(map[string]any)["resourceVersion"] {
			s.fail(w, 409, "Conflict")
			return
		}
		s.answer(w, 200, s.store(path, o))
	default:
		s.fail(w, 405, "MethodNotAllowed")
	}
}

func isCollection(path string) bool { return path == rulesPath || path == mapsPath }

// matches reports whether the one label that a selector asks for is there.
func matches(o map[string]any, query url.Values) bool {
	key, value, _ := strings.Cut(query.Get("labelSelector"), "=")
	labels, _ := o["metadata"].(map[string]any)["labels"].(map[string]any)
	return key == "" || labels[key] == value
}

func (s *apiserver) serveWatch(w http.ResponseWriter, r *http.Request) {
	events := make(chan string, 1000)
	var missed []string
	s.mu.Lock()
	s.watches[events] = r.URL.Path
	var since int
	_, _ = fmt.Sscan(r.URL.Query().Get("resourceVersion"), &since)
	for key, o := range s.objects { // what changed since the list
		var revision int
		_, _ = fmt.Sscan(o["metadata"].(map[string]any)["resourceVersion"].(string), &revision)
		if key[:strings.LastIndex(key, "/")] == r.URL.Path && revision > since {
			event, _ := json.Marshal(map[string]any{"type": "MODIFIED", "object": o})
			missed = append(missed, string(event))
		}
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watches, events)
		s.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "application/json")
	for _, event := range missed {
		_, _ = io.WriteString(w, event+"\n")
	}
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case event := <-events:
			_, _ = io.WriteString(w, event+"\n")
			w.(http.Flusher).Flush()
		}
	}
}

// to sends every request to one server, wherever it is for, as a Cluster does.
type to struct {
	server *apiserver
	next   *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (d to) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = "http", d.server.Listener.Addr().String(), ""
	return d.next.RoundTrip(r)
}

// logged is a log that a test can read while it is written.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// replica is a Watcher that runs, with its store.
type replica struct {
	*Watcher
	t     *testing.T
	store *policies.Store
	log   *logged
	stop  func()
}

// start runs a replica at a server.
func (s *apiserver) start(t *testing.T, change func(*Config)) *replica {
	t.Helper()
	r := &replica{t: t, log: &logged{}}
	log := slog.New(slog.NewTextHandler(r.log, nil))
	dir := t.TempDir()
	store, err := policies.Open(policies.Options{Dirs: []string{dir}}, log, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.store = store
	transport := &http.Transport{}
	cfg := Config{
		Store: store, Cluster: to{s, transport}, Rules: true, LeaseNamespace: "kube-system", Log: log,
		ConfigMaps: []ConfigMaps{{"kube-system", "mvp=yes"}}, lease: leaseTimes{2 * time.Second, time.Second, 100 * time.Millisecond},
	}
	if change != nil {
		change(&cfg)
	}
	if r.Watcher, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := r.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	r.stop = sync.OnceFunc(func() { cancel(); <-ended; transport.CloseIdleConnections() })
	t.Cleanup(r.stop)
	return r
}

// waitFor polls until ok, and fails the test when that takes too long.
func (r *replica) waitFor(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			r.t.Fatalf("never: %s; status: %+v\nlog:\n%s", what, r.store.Status(), r.log)
		}
		time.Sleep(time.Millisecond) // the step of a bounded poll: what others see of the replica has no event
	}
}

// waitLive waits until the live policies are called names.
func (r *replica) waitLive(names ...string) {
	r.t.Helper()
	r.waitFor(fmt.Sprintf("live are %q", names), func() bool {
		var live []string
		for _, info := range r.store.Current().Policies() {
			live = append(live, info.Name)
		}
		return slices.Equal(live, names)
	})
}
