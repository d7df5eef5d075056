package upstream

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A new CRD is served as soon as discovery shows it, though that is later than the
// event and no poll is due for an hour. What it cannot change is not read again.
func TestNewCRDIsSeenAtOnce(t *testing.T) {
	w := newWatched(t)
	p := runWatched(t, nil, w)
	state := func() *State { return p.View().Servers[0] }
	events := w.next(t, crdsTarget, 0).events

	w.set(widgetsTarget, widgetCRD("11", false, false, `{"type":"object"}`))
	events <- watchEvent("ADDED", meta(widgets, "11", 1, ""))
	eventually(t, "the CRD is read", func() bool { return state().CRDs[widgets] != nil })
	w.set(widgetsTarget, widgetCRD("12", true, false, `{"type":"object"}`))
	polls, _ := w.asked("/apis")
	events <- watchEvent("MODIFIED", meta(widgets, "12", 1, ""))
	eventually(t, "discovery is polled until it shows the CRD", func() bool { n, _ := w.asked("/apis"); return n > polls+2 })
	w.serves("example.com/v1 widgets")
	w.set("/openapi/v3", `{"paths":{"apis/example.com/v1":{"serverRelativeURL":"/openapi/v3/apis/example.com/v1?hash=A"}}}`)
	eventually(t, "it is served", func() bool { return state().Serves("example.com", "v1", "widgets") })
	eventually(t, "its schema is published", func() bool { return state().OpenAPIV3["apis/example.com/v1"] != "" })
	settled(t, p)
	versions, _ := w.asked("/version")
	cores, _ := w.asked("/api")
	if lists, _ := w.asked(crdsTarget); versions != 1 || cores != 1 || lists > 4 {
		t.Errorf("/version was read %d times, /api %d times, the CRDs were listed %d times: more than for the first round", versions, cores, lists)
	}
	if state().Streams() != 0 {
		t.Errorf("MVP's own watches count as %d streams of clients", state().Streams())
	}
}

func TestRemovedCRDIsSeenAtOnce(t *testing.T) {
	w := newWatched(t)
	w.serves("example.com/v1 widgets")
	w.set(crdsTarget, metadataList("10", meta(widgets, "9", 1, "")))
	w.set(widgetsTarget, widgetCRD("9", true, false, `{}`))
	p := runWatched(t, nil, w)
	state := func() *State { return p.View().Servers[0] }
	if state().CRDs[widgets] == nil || !state().Serves("example.com", "v1", "widgets") {
		t.Fatalf("state is %+v", state())
	}
	polls, _ := w.asked("/apis")
	w.next(t, crdsTarget, 0).events <- watchEvent("DELETED", meta(widgets, "11", 1, ""))
	eventually(t, "the CRD goes", func() bool { return state().CRDs[widgets] == nil })
	eventually(t, "discovery is polled until it goes there", func() bool { n, _ := w.asked("/apis"); return n > polls+2 })
	w.serves()
	eventually(t, "it is not served", func() bool { return !state().Serves("example.com", "v1", "widgets") })
}

// A version that is no longer served, and a field's other type.
func TestChangedCRDIsSeenAtOnce(t *testing.T) {
	w := newWatched(t)
	w.serves("example.com/v1 widgets", "example.com/v2 widgets")
	openAPI := func(hash string) string {
		return `{"paths":{"apis/example.com/v1":{"serverRelativeURL":"/openapi/v3/apis/example.com/v1?hash=` + hash + `"}}}`
	}
	w.set("/openapi/v3", openAPI("A"))
	w.set(crdsTarget, metadataList("10", meta(widgets, "9", 1, "")))
	w.set(widgetsTarget, widgetCRD("9", true, true, `{"type":"object"}`))
	p := runWatched(t, nil, w)
	state := func() *State { return p.View().Servers[0] }
	events := w.next(t, crdsTarget, 0).events

	polls, _ := w.asked("/apis")
	w.set(widgetsTarget, widgetCRD("11", true, false, `{"type":"object"}`))
	events <- watchEvent("MODIFIED", meta(widgets, "11", 2, ""))
	eventually(t, "discovery is polled", func() bool { n, _ := w.asked("/apis"); return n > polls+2 })
	w.serves("example.com/v1 widgets")
	eventually(t, "v2 goes", func() bool { return !state().Serves("example.com", "v2", "widgets") })
	if !state().Serves("example.com", "v1", "widgets") || state().CRDs[widgets].Versions["v2"].Served {
		t.Errorf("serves %s, CRD %+v", resources(state()), state().CRDs[widgets])
	}

	w.set(widgetsTarget, widgetCRD("12", true, false, `{"type":"array"}`))
	polls, _ = w.asked("/openapi/v3")
	events <- watchEvent("MODIFIED", meta(widgets, "12", 3, ""))
	eventually(t, "the schema is seen", func() bool { return string(state().CRDs[widgets].Versions["v1"].Schema) == `{"type":"array"}` })
	eventually(t, "OpenAPI is polled", func() bool { n, _ := w.asked("/openapi/v3"); return n > polls+2 })
	w.set("/openapi/v3", openAPI("B"))
	eventually(t, "its hash is seen", func() bool { return strings.HasSuffix(state().OpenAPIV3["apis/example.com/v1"], "hash=B") })
}

// A CRD of which only the status changes changes nothing that MVP answers.
func TestStatusOfCRDIsNotSignificant(t *testing.T) {
	w := newWatched(t)
	w.serves("example.com/v1 widgets")
	w.set(crdsTarget, metadataList("10", meta(widgets, "9", 1, "")))
	w.set(widgetsTarget, widgetCRD("9", true, false, `{}`))
	p := runWatched(t, nil, w)
	before := p.View().Generation
	w.set(widgetsTarget, widgetCRD("11", true, false, `{}`))
	w.next(t, crdsTarget, 0).events <- watchEvent("MODIFIED", meta(widgets, "11", 1, ""))
	eventually(t, "it is read", func() bool { return p.View().Servers[0].CRDs[widgets].resourceVersion == "11" })
	settled(t, p)
	if after := p.View().Generation; after != before {
		t.Errorf("generation %d became %d", before, after)
	}
}

func TestAPIServicesAreSeenAtOnce(t *testing.T) {
	const own = `"kube-aggregator.kubernetes.io/automanaged":"onstart"`
	w := newWatched(t)
	w.set(apiServicesTarget, metadataList("10", meta("v1.apps", "9", 0, own)))
	p := runWatched(t, nil, w)
	state := func() *State { return p.View().Servers[0] }
	events := w.next(t, apiServicesTarget, 0).events
	const name = "v1beta1.metrics.example.com"
	expect := func(what string, served bool) {
		t.Helper()
		polls, _ := w.asked("/apis")
		eventually(t, what+": discovery is polled", func() bool { n, _ := w.asked("/apis"); return n > polls+2 })
		w.serves(map[bool][]string{true: {"metrics.example.com/v1beta1 nodes"}}[served]...)
		eventually(t, what, func() bool { return state().Serves("metrics.example.com", "v1beta1", "nodes") == served })
	}

	events <- watchEvent("ADDED", meta(name, "11", 0, ""))
	expect("it is served", true)
	settled(t, p)
	// Whether it is available now, metadata does not tell.
	events <- watchEvent("MODIFIED", meta(name, "12", 0, ""))
	expect("it has no resources for a while", false)
	expect("it has them again", true)
	events <- watchEvent("DELETED", meta(name, "13", 0, ""))
	expect("it is gone", false)
	settled(t, p)

	// The server's own change their status at each of its starts.
	events <- watchEvent("MODIFIED", meta("v1.apps", "14", 0, own))
	events <- watchEvent("ADDED", meta(name, "15", 0, ""))
	expect("what follows is seen", true)
	m := p.current()[0]
	m.news.mu.Lock()
	defer m.news.mu.Unlock()
	if a := m.news.items[newsKey{"apiservices", "v1.apps"}]; a != nil {
		t.Errorf("the event is taken for news: %+v", a)
	}
}

// Each server is watched for itself: they show one change at different times.
func TestEachServerIsWatched(t *testing.T) {
	a, b := newWatched(t), newWatched(t)
	p := runWatched(t, func(c *Config) { c.Token = "secret" }, a, b)
	a.set(widgetsTarget, widgetCRD("11", true, false, `{}`))
	b.set(widgetsTarget, widgetCRD("11", true, false, `{}`))
	a.serves("example.com/v1 widgets")
	a.next(t, crdsTarget, 0).events <- watchEvent("ADDED", meta(widgets, "11", 1, ""))
	eventually(t, "a serves it", func() bool { return p.View().Servers[0].Serves("example.com", "v1", "widgets") })
	if p.View().Servers[1].Serves("example.com", "v1", "widgets") {
		t.Error("b serves it without saying so")
	}
	b.serves("example.com/v1 widgets")
	b.next(t, crdsTarget, 0).events <- watchEvent("ADDED", meta(widgets, "11", 1, ""))
	eventually(t, "b serves it", func() bool { return p.View().Servers[1].Serves("example.com", "v1", "widgets") })
	for _, w := range []*watched{a, b} {
		r := w.next(t, crdsTarget, 0).request
		if r.Header.Get("Authorization") != "Bearer secret" || r.UserAgent() != "mvp" || r.URL.Query().Get("allowWatchBookmarks") != "true" {
			t.Errorf("watched by %s with %v", r.URL, r.Header)
		}
	}
}

// A watch that the server ends goes on after the last event or bookmark; after 410 what
// was missed is found by a list.
func TestWatchGoesOn(t *testing.T) {
	w := newWatched(t)
	p := runWatched(t, nil, w)
	first := w.next(t, crdsTarget, 0)
	if got := first.request.URL.Query().Get("resourceVersion"); got != "10" {
		t.Errorf("the watch begins at %q, want where the list was", got)
	}
	first.events <- watchEvent("BOOKMARK", meta("", "50", 0, ""))
	first.events <- ""
	second := w.next(t, crdsTarget, 1)
	if got := second.request.URL.Query().Get("resourceVersion"); got != "50" {
		t.Errorf("the watch goes on at %q, want where the bookmark was", got)
	}
	w.set(widgetsTarget, widgetCRD("60", true, false, `{}`))
	w.set(crdsTarget, metadataList("70", meta(widgets, "60", 1, "")))
	w.serves("example.com/v1 widgets")
	second.events <- watchEvent("ERROR", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
	eventually(t, "what was missed is seen", func() bool {
		s := p.View().Servers[0]
		return s.CRDs[widgets] != nil && s.Serves("example.com", "v1", "widgets")
	})
	if got := w.next(t, crdsTarget, 2).request.URL.Query().Get("resourceVersion"); got != "70" {
		t.Errorf("the watch goes on at %q, want where the new list was", got)
	}
}

// A server that ends each watch at once is not stormed.
func TestWatchesAreSpaced(t *testing.T) {
	w := newWatched(t)
	var mu sync.Mutex
	var times []time.Time
	w.watch = func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == crdsTarget {
			mu.Lock()
			times = append(times, time.Now())
			mu.Unlock()
		}
		_, _ = fmt.Fprintln(out, watchEvent("BOOKMARK", meta("", "50", 0, "")))
	}
	runPool(t, nil, w.fakeServer)
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(times)
	}
	eventually(t, "watches", func() bool { return count() >= 4 })
	mu.Lock()
	defer mu.Unlock()
	for i := range len(times) - 1 {
		if gap := times[i+1].Sub(times[i]); gap < watchGap/2 {
			t.Errorf("watch %d comes %v after the one before", i+1, gap)
		}
	}
}

// Watches end with the server's health and begin again with it. What changed meanwhile
// is seen.
func TestWatchesFollowHealth(t *testing.T) {
	w := newWatched(t)
	p := runWatched(t, nil, w)
	w.set("/readyz", "500 no")
	within(t, w.next(t, crdsTarget, 0).ended, "the end of the watch")
	within(t, w.next(t, apiServicesTarget, 0).ended, "the end of the watch")
	w.set(widgetsTarget, widgetCRD("60", true, false, `{}`))
	w.set(crdsTarget, metadataList("70", meta(widgets, "60", 1, "")))
	w.serves("example.com/v1 widgets")
	w.set("/readyz", "ok")
	w.next(t, crdsTarget, 1)
	w.next(t, apiServicesTarget, 1)
	eventually(t, "the CRD is seen", func() bool { return p.View().Servers[0].CRDs[widgets] != nil })
}

// A server that does not let MVP watch is polled as before. The log says so once, the
// state all the time, and the watch is left alone until much later or the server's next
// start.
func TestRefusedWatch(t *testing.T) {
	const forbidden = `403 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no right to watch"}`
	f := func(name, answer string, watchesOnly bool, reason string) {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t)
			w.refuse(answer, watchesOnly)
			var log lockedLog
			p := runPool(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) }, w.fakeServer)
			state := func() *State { return p.View().Servers[0] }
			eventually(t, "the state says so", func() bool {
				return slices.Equal(state().Unwatched, []string{"apiservices.apiregistration.k8s.io"})
			})
			asked, _ := w.asked(apiServicesTarget)
			lists, _ := w.asked(crdsTarget)
			eventually(t, "polls go on", func() bool { n, _ := w.asked(crdsTarget); return n > lists+10 })
			w.serves("example.com/v1 widgets")
			eventually(t, "a poll shows a change", func() bool { return state().Serves("example.com", "v1", "widgets") })
			if again, _ := w.asked(apiServicesTarget); again != asked {
				t.Errorf("asked for %d times more", again-asked)
			}
			if !state().Healthy || state().CRDsForbidden {
				t.Errorf("state is %+v", state())
			}
			text := log.String()
			if strings.Count(text, "cannot watch") != 1 || !strings.Contains(text, reason) ||
				!strings.Contains(text, "grant list and watch of apiservices.apiregistration.k8s.io to MVP's own credential") {
				t.Errorf("the log is\n%s\nwant it to say once that the watch is refused, with %q", text, reason)
			}

			w.set("/readyz", "500 no")
			eventually(t, "the server is down", func() bool { return !state().Healthy })
			w.set(apiServicesTarget, metadataList("10"))
			w.fakeServer.mu.Lock()
			w.watch = w.stream
			w.fakeServer.mu.Unlock()
			w.set("/readyz", "ok")
			w.next(t, apiServicesTarget, 0)
			eventually(t, "the state is silent", func() bool { return state().Unwatched == nil })
		})
	}

	f("forbidden", forbidden, false, "no right to watch")
	f("only the watch is forbidden", forbidden, true, "no right to watch")
	f("missing", "404 404 page not found\n", false, "the server could not find the requested resource")
}
