package proxy_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// describer is an upstream that answers the documents that a real kube-apiserver
// answered, under its ETags and with its conditional requests.
type describer struct {
	*recorder

	down atomic.Bool
	hung chan struct{} // MVP's own requests for OpenAPI v2 wait for it; set before start

	mu      sync.Mutex
	docs    map[string]any    // by path, "/apis v2" for an aggregated form
	texts   map[string]string // docs as they are sent
	asked   map[string]int    // requests by path
	refuses string            // the token that it does not know
	broken  map[string]bool   // paths that fail
}

// describe starts a describer with the documents of a version.
func describe(t *testing.T, name, version string) *describer {
	t.Helper()
	raw, err := os.ReadFile("discovery/testdata/servers/" + version + ".json.gz")
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	d := &describer{texts: map[string]string{}, asked: map[string]int{}, broken: map[string]bool{}}
	if err := json.NewDecoder(z).Decode(&d.docs); err != nil {
		t.Fatal(err)
	}
	d.shorten()
	d.docs["/version"] = map[string]any{"major": "1", "minor": strings.Split(version, ".")[1], "gitVersion": "v" + version}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	d.recorder = &recorder{t: t, name: name, version: version, listener: server.Listener, closed: make(chan struct{}, 1)}
	return d
}

// shorten leaves of OpenAPI v2 what the tests look at: writing the whole of it as
// protobuf takes a busy machine under the race detector many seconds.
func (d *describer) shorten() {
	for _, section := range []string{"paths", "definitions"} {
		maps.DeleteFunc(in(d.docs["/openapi/v2"], section).(map[string]any), func(name string, _ any) bool {
			return !slices.ContainsFunc([]string{"flowcontrol", "policy", "apimachinery", "pods/{name}", "v1.PodSpec"}, func(part string) bool {
				return strings.Contains(name, part)
			})
		})
	}
}

func (d *describer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	own := r.UserAgent() == "mvp"
	if own && d.hung != nil && r.URL.Path == "/openapi/v2" {
		<-d.hung
		return
	}
	switch { // before what may take its time
	case d.down.Load():
		http.Error(w, "down", http.StatusInternalServerError)
		return
	case r.URL.Path == "/readyz":
		_, _ = w.Write([]byte("ok"))
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if own {
		d.asked["own "+r.URL.Path]++
	} else {
		d.asked[r.URL.Path]++
	}
	switch {
	case d.broken[r.URL.Path] && (own || r.URL.Path != "/openapi/v2"):
		http.Error(w, "broken", http.StatusInternalServerError)
	case d.refuses != "" && r.Header.Get("Authorization") == "Bearer "+d.refuses:
		http.Error(w, "who are you", http.StatusUnauthorized)
	default:
		d.serveDocument(w, r)
	}
}

func (d *describer) serveDocument(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path
	if strings.Contains(r.Header.Get("Accept"), "v=v2;as=APIGroupDiscoveryList") && d.docs[name+" v2"] != nil {
		name += " v2"
	}
	if d.docs[name] == nil {
		http.NotFound(w, r)
		return
	}
	if r.Method == http.MethodHead && name != "/apis" && !strings.HasPrefix(name, "/openapi/") {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body := d.written(name)
	w.Header().Set("Content-Type", "application/json")
	if strings.HasPrefix(name, "/openapi/") {
		w.Header().Set("Etag", fmt.Sprintf("%q", fmt.Sprint(maphash.String(etagSeed, body))))
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(body))
		return
	}
	_, _ = io.WriteString(w, body)
}

var etagSeed = maphash.MakeSeed()

// written is a document as it is sent; d.mu is held.
func (d *describer) written(name string) string {
	if d.texts[name] == "" {
		body, err := json.Marshal(d.docs[name])
		if err != nil {
			d.t.Error(err)
		}
		d.texts[name] = string(body)
	}
	return d.texts[name]
}

// with changes the describer while it serves.
func (d *describer) with(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
	clear(d.texts)
}

// count is how often path was asked for by clients; "own PATH" by MVP.
func (d *describer) count(path string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked[path]
}

// text is a document as this server sends it.
func (d *describer) text(path string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.written(path)
}

// decoded reads an answer's JSON.
func (a answer) decoded(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%d %.200s: %v", a.code, a.body, err)
	}
	return v
}

// in follows keys into a decoded document.
func in(v any, keys ...string) any {
	for _, key := range keys {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}

func resourceHash(list map[string]any, name string) string {
	resources, _ := list["resources"].([]any)
	for _, r := range resources {
		if in(r, "name") == name {
			return fmt.Sprint(in(r, "storageVersionHash"))
		}
	}
	return "not there"
}
