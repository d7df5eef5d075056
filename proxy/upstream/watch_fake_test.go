package upstream

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	apiServicesTarget = "/apis/apiregistration.k8s.io/v1/apiservices"

	// widgets is the CRD of these tests.
	widgets       = "widgets.example.com"
	widgetsTarget = crdsTarget + "/" + widgets
)

// watched is a fake whose CRDs and APIServices can be watched.
type watched struct {
	*fakeServer

	mu      sync.Mutex
	streams []*stream // of all watches so far
}

// stream is one watch.
type stream struct {
	request *http.Request
	events  chan string   // to send; "" ends the stream
	ended   chan struct{} // closed when it has ended, whoever ended it
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{fakeServer: newFake(t)}
	w.serves()
	w.set(crdsTarget, metadataList("10"))
	w.set(apiServicesTarget, metadataList("10"))
	w.watch = w.stream
	return w
}

// serves sets discovery to CRDs, APIServices and the given "group/version resource"s.
func (w *watched) serves(more ...string) {
	groups := []string{
		groupList("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
		groupList("apiregistration.k8s.io", "v1", "apiservices"),
	}
	for _, name := range more {
		gv, resource, _ := strings.Cut(name, " ")
		group, version, _ := strings.Cut(gv, "/")
		groups = append(groups, groupList(group, version, resource))
	}
	var items []string
	for _, g := range groups {
		_, item, _ := strings.Cut(g, `"items":[`)
		items = append(items, strings.TrimSuffix(item, "]}"))
	}
	w.set("/apis", `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[`+strings.Join(items, ",")+`]}`)
}

// meta is a PartialObjectMetadata.
func meta(name, resourceVersion string, generation int, labels string) string {
	return fmt.Sprintf(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":%q,"uid":"u-%s","resourceVersion":%q,"generation":%d,"labels":{%s}}}`,
		name, name, resourceVersion, generation, labels)
}

func metadataList(resourceVersion string, items ...string) string {
	return fmt.Sprintf(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":%q},"items":[%s]}`,
		resourceVersion, strings.Join(items, ","))
}

func watchEvent(kind, object string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`, kind, object)
}

// widgetCRD is a CRD of version v1, which is served, and v2, which may be.
func widgetCRD(resourceVersion string, established, v2Served bool, schema string) string {
	status := map[bool]string{true: "True", false: "False"}[established]
	return fmt.Sprintf(`{"metadata":{"name":%q,"uid":"u-%s","resourceVersion":%q},"spec":{"group":"example.com","names":{"plural":"widgets","kind":"Widget"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":%s}},{"name":"v2","served":%v,"storage":false}]},
		"status":{"conditions":[{"type":"NamesAccepted","status":"True"},{"type":"Established","status":%q}]}}`,
		widgets, widgets, resourceVersion, schema, v2Served, status)
}

// stream answers a watch with what the test sends.
func (w *watched) stream(out http.ResponseWriter, r *http.Request) {
	s := &stream{request: r, events: make(chan string, 100), ended: make(chan struct{})}
	defer close(s.ended)
	w.mu.Lock()
	w.streams = append(w.streams, s)
	w.mu.Unlock()
	out.Header().Set("Content-Type", "application/json")
	flush := http.NewResponseController(out).Flush
	for flush() == nil {
		select {
		case <-r.Context().Done():
			return
		case e := <-s.events:
			if e == "" {
				return
			}
			_, _ = out.Write([]byte(e + "\n"))
		}
	}
}

// watches are the watches of a path so far.
func (w *watched) watches(path string) []*stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []*stream
	for _, s := range w.streams {
		if s.request.URL.Path == path {
			all = append(all, s)
		}
	}
	return all
}

// next waits for watch n, from 0, of a path.
func (w *watched) next(t *testing.T, path string, n int) *stream {
	t.Helper()
	eventually(t, fmt.Sprintf("watch %d of %s", n, path), func() bool { return len(w.watches(path)) > n })
	return w.watches(path)[n]
}

// runWatched probes the fakes with no polls but the first ones and those that events
// bring about, and waits for both watches of each.
func runWatched(t *testing.T, change func(*Config), fakes ...*watched) *Pool {
	t.Helper()
	var servers []*fakeServer
	for _, w := range fakes {
		servers = append(servers, w.fakeServer)
	}
	p := runPool(t, func(c *Config) {
		c.DiscoveryInterval, c.CRDInterval = time.Hour, time.Hour
		if change != nil {
			change(c)
		}
	}, servers...)
	for i, w := range fakes {
		w.next(t, crdsTarget, 0)
		w.next(t, apiServicesTarget, 0)
		m := p.current()[i]
		// What comes later is the work of events: the first lists have been taken in.
		eventually(t, "the first round", func() bool {
			return m.watchesCRDs() && !m.details.relist.Load() && len(m.apisNow) == 0 && len(m.detailsNow) == 0
		})
	}
	return p
}

// settled waits until nothing is awaited any more.
func settled(t *testing.T, p *Pool) {
	t.Helper()
	n := &p.current()[0].news
	eventually(t, "the news is settled", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return len(n.items) == 0
	})
}

// refuse answers lists and watches of APIServices with a status; lists only if
// watchesOnly is not set.
func (w *watched) refuse(answer string, watchesOnly bool) {
	if !watchesOnly {
		w.set(apiServicesTarget, answer)
	}
	w.watch = func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == crdsTarget {
			w.stream(out, r)
			return
		}
		var status int
		_, _ = fmt.Sscanf(answer, "%d", &status)
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(status)
		_, _ = out.Write([]byte(answer[4:]))
	}
}

// lockedLog is a buffer that several goroutines may write to.
type lockedLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
