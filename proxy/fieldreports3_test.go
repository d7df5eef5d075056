package proxy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Kinds of an upgrade: one that both servers have, and one of each alone.
var (
	oldKinds = []served{{"acme.io", "v1", "things", "Thing"}, {"old.io", "v1", "olds", "Old"}}
	newKinds = []served{{"acme.io", "v1", "things", "Thing"}, {"new.io", "v1", "news", "New"}}
)

// upgradeRig is MVP before an older server and a newer one that can be taken down.
type upgradeRig struct {
	*rig
	a, b *recorder
	down atomic.Bool // b is, by its /readyz
}

func newUpgradeRig(t *testing.T, answer func(request) string) *upgradeRig {
	t.Helper()
	f := &upgradeRig{}
	f.a = record(t, "a", "1.31.14", oldKinds, answer)
	f.b = record(t, "b", "1.32.13", newKinds, answer)
	f.b.ready = func() string {
		if f.down.Load() {
			return respond(500, "text/plain", "[-]shutdown failed\n")
		}
		return respond(200, "text/plain", "ok")
	}
	f.rig = start(t, map[string]string{"things.yaml": rules}, nil, f.a, f.b)
	return f
}

// take takes b down or up again, and waits until MVP has seen it.
func (f *upgradeRig) take(down bool) {
	f.t.Helper()
	f.down.Store(down)
	f.eventually("MVP sees how b is", func() bool { return f.pool.View().Servers[1].Healthy != down })
	f.eventually("requests see it", func() bool {
		code := f.do("GET", "/apis/new.io/v1/news", "", "").code
		return code == map[bool]int{true: 503, false: 200}[down]
	})
}

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// groupVersions are those that /apis lists.
func (f *upgradeRig) groupVersions() (list []string) {
	f.t.Helper()
	var groups struct {
		Groups []struct {
			Versions []struct{ GroupVersion string }
		}
	}
	got := f.do("GET", "/apis", "", "", "Accept", "application/json")
	if err := json.Unmarshal([]byte(got.body), &groups); err != nil || got.code != 200 {
		f.t.Fatalf("/apis was answered %d %s, %v", got.code, got.body, err)
	}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			list = append(list, v.GroupVersion)
		}
	}
	slices.Sort(list)
	return list
}

// everyVersion is what is listed as long as both servers are registered.
var everyVersion = []string{"acme.io/v1", "acme.io/v1beta1", "new.io/v1", "old.io/v1"}

// A client without a cache that asks for one group reads them all, before, during and
// after a server is away.
func Test3_02_EveryGroupIsReadable(t *testing.T) {
	f := newUpgradeRig(t, nil)
	for round := range 6 {
		f.take(round%2 == 1)
		for range 20 {
			for _, path := range []string{"/api", "/apis"} {
				for _, accept := range []string{aggregated, "application/json"} {
					if got := f.do("GET", path, "", "", "Accept", accept); got.code != 200 {
						t.Fatalf("%s was answered %d %s", path, got.code, got.body)
					}
				}
			}
			for _, gv := range f.groupVersions() {
				if got := f.do("GET", "/apis/"+gv, "", ""); got.code != 200 || !strings.Contains(got.body, `"groupVersion":"`+gv+`"`) {
					t.Fatalf("/apis/%s is listed and was answered %d %s", gv, got.code, got.body)
				}
			}
		}
	}
}

// Whatever is listed can be listed and deleted, as the deletion of a namespace does,
// whichever server has it.
func Test3_03_NamespaceIsEmptied(t *testing.T) {
	f := newUpgradeRig(t, func(request) string {
		return ok(`{"apiVersion":"acme.io/v1","kind":"ThingList","metadata":{},"items":[]}`)
	})
	resources := map[string]string{"acme.io/v1": "things", "acme.io/v1beta1": "things", "new.io/v1": "news", "old.io/v1": "olds"}
	if got := f.groupVersions(); !slices.Equal(got, everyVersion) {
		t.Fatalf("listed are %v, want %v", got, everyVersion)
	}
	for i := range callers {
		for gv, resource := range resources {
			for _, method := range []string{"GET", "DELETE", "GET"} {
				got := f.do(method, "/apis/"+gv+"/namespaces/gone/"+resource, "", "", "Authorization", fmt.Sprintf("Bearer %d", i))
				if got.code != 200 {
					t.Fatalf("%s of %s in %s was answered %d %s", method, resource, gv, got.code, got.body)
				}
			}
		}
	}
}

// While a namespace is emptied and written to, a server that goes takes nothing with
// it: each deletion and each write is executed once.
func Test3_04_NothingIsLeftBehind(t *testing.T) {
	const each = 40
	var stops atomic.Bool
	var mu sync.Mutex
	executed := map[string]int{}
	answer := func(server string) func(request) string {
		return func(q request) string {
			if server == "a" && stops.Load() {
				return stopping
			}
			mu.Lock()
			defer mu.Unlock()
			executed[q.method+" "+q.target]++
			if len(executed) == each/2 {
				stops.Store(true)
			}
			return ok(`{"kind":"Status","apiVersion":"v1","status":"Success"}`)
		}
	}
	a := record(t, "a", "1.32.13", things, answer("a"))
	b := record(t, "b", "1.32.13", things, answer("b"))
	r := start(t, nil, nil, a, b)
	var all sync.WaitGroup
	for i := range each {
		for _, method := range []string{"DELETE", "POST"} {
			all.Go(func() {
				got := r.do(method, fmt.Sprintf("/apis/acme.io/v1/namespaces/n%d/things", i), "application/json", "{}", "Authorization", fmt.Sprintf("Bearer %d", i))
				if got.code != 200 {
					t.Errorf("%s %d was answered %d %s", method, i, got.code, got.body)
				}
			})
		}
	}
	all.Wait()
	for request, n := range executed {
		if n != 1 {
			t.Errorf("%s was executed %d times", request, n)
		}
	}
	if len(executed) != 2*each || !stops.Load() {
		t.Errorf("%d requests were executed, want %d", len(executed), 2*each)
	}
}

// A write in a form that the older server does not take goes to the newer; when that
// is away, the client gets the refusal, and falls back.
func Test3_07_MediaTypeOfTheNewer(t *testing.T) {
	const protobuf, target = "application/vnd.kubernetes.protobuf", "/apis/acme.io/v1/namespaces/d/things/t"
	var b *recorder
	refuse := func(q request) string {
		if strings.Contains(q.raw, protobuf) {
			return unsupported
		}
		return ok("{}")
	}
	a := record(t, "a", "1.31.14", things, refuse)
	second := record(t, "a2", "1.31.14", things, refuse)
	b = record(t, "b", "1.32.13", things, nil)
	r := start(t, map[string]string{"a.route.cel": `upstream.name == 'b' ? 1 : 2`}, nil, a, second, b)
	for i := range callers {
		got := r.do("PUT", target, protobuf, "k8s\x00x", "Authorization", fmt.Sprintf("Bearer %d", i))
		if got.code != 200 {
			t.Fatalf("answered %d %s", got.code, got.body)
		}
	}
	if old := len(a.got()) + len(second.got()); old != callers || len(b.got()) != callers {
		t.Errorf("the older servers were asked %d times, the newer %d times, want %d each", old, len(b.got()), callers)
	}
	b.listener.Close()
	b.hangUp()
	if got := r.do("PUT", target, protobuf, "k8s\x00x"); got.code != 415 || got.body != parsed(t, unsupported).body {
		t.Errorf("without the newer it was answered %d %s", got.code, got.body)
	}
}

// What is listed never shrinks while a server comes and goes.
func Test3_09_DiscoveryDoesNotFlutter(t *testing.T) {
	f := newUpgradeRig(t, nil)
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if got := f.groupVersions(); !slices.Equal(got, everyVersion) {
				t.Errorf("listed are %v, want %v", got, everyVersion)
				return
			}
		}
	})
	for round := range 20 {
		f.take(round%2 == 0)
	}
	close(stop)
	watching.Wait()
}

// A kind whose server is away stays listed and is answered 503, so that whoever
// deletes a namespace waits; when the server is back, it goes on.
func Test3_10_NamespaceWaitsForItsServer(t *testing.T) {
	f := newUpgradeRig(t, nil)
	const path = "/apis/new.io/v1/namespaces/gone/news"
	f.take(true)
	if got := f.groupVersions(); !slices.Equal(got, everyVersion) {
		t.Errorf("listed are %v, want %v", got, everyVersion)
	}
	for _, method := range []string{"GET", "DELETE", "POST"} {
		got := f.do(method, path, "", "")
		if got.code != 503 || got.header.Get("Retry-After") == "" {
			t.Errorf("%s was answered %d %v %s", method, got.code, got.header, got.body)
		}
		wantStatus(t, got)
	}
	f.take(false)
	for _, method := range []string{"GET", "DELETE", "POST"} {
		if got := f.do(method, path, "", ""); got.code != 200 {
			t.Errorf("%s was answered %d %s when the server was back", method, got.code, got.body)
		}
	}
}

// The same holds for a subresource that only the server has that is away.
func Test3_10_SubresourceWaitsForItsServer(t *testing.T) {
	a := record(t, "a", "1.31.14", pods, nil)
	b := record(t, "b", "1.32.13", pods, nil)
	b.subresources = map[string][]string{"pods": {"resize"}}
	r := start(t, nil, nil, a, b)
	b.listener.Close()
	b.hangUp()
	r.eventually("MVP sees that b is away", func() bool { return !r.pool.View().Servers[1].Healthy })
	var got answer
	r.eventually("requests see it", func() bool {
		got = r.do("PATCH", "/api/v1/namespaces/d/pods/p/resize", "application/merge-patch+json", "{}")
		return got.code == 503
	})
	if got.header.Get("Retry-After") == "" || !strings.Contains(got.body, "patch of v1 pods/resize is served by b, which cannot be reached now") || len(a.got()) > 0 {
		t.Errorf("answered %v %s, sent %d times to the other server", got.header, got.body, len(a.got()))
	}
	if got := r.do("PATCH", "/api/v1/namespaces/d/pods/p", "application/merge-patch+json", "{}"); got.code != 200 {
		t.Errorf("the pod itself was answered %d %s", got.code, got.body)
	}
}

// What an older server cannot decode is read from a newer one; a write is not repeated.
func Test3_14_OldServerCannotReadIt(t *testing.T) {
	a := record(t, "a", "1.31.14", things, func(request) string { return noKind })
	b := record(t, "b", "1.32.13", things, nil)
	r := start(t, map[string]string{"a.route.cel": `upstream.name == 'a' ? 1 : 0`}, nil, a, b)
	for _, target := range []string{"/apis/acme.io/v1/things", "/apis/acme.io/v1/namespaces/d/things/t"} {
		if got := r.do("GET", target, "", ""); got.code != 200 {
			t.Errorf("%s was answered %d %s", target, got.code, got.body)
		}
	}
	if len(a.got()) != 2 || len(b.got()) != 2 {
		t.Errorf("a was asked %d times, b %d times, want 2 each", len(a.got()), len(b.got()))
	}
	got := r.do("PUT", "/apis/acme.io/v1/namespaces/d/things/t", "application/json", "{}")
	if got.code != 500 || !strings.Contains(got.body, "no kind") || len(b.got()) != 2 {
		t.Errorf("a write was answered %d %s, and b asked %d times", got.code, got.body, len(b.got())-2)
	}
}

// Everybody is told the same version, the lowest.
func Test3_15_OneVersion(t *testing.T) {
	f := newUpgradeRig(t, nil)
	for i := range 200 {
		got := f.do("GET", "/version", "", "", "Authorization", fmt.Sprintf("Bearer %d", i))
		if got.code != 200 || !strings.Contains(got.body, `"gitVersion":"v1.31.14"`) {
			t.Fatalf("/version was answered %d %s", got.code, got.body)
		}
	}
}

// A version that is no longer served leaves discovery under another ETag, and its
// path is answered in the server's own words.
func Test3_16_RemovedVersionIsSeen(t *testing.T) {
	var gone atomic.Bool
	a := record(t, "a", "1.32.13", append(slices.Clone(oldKinds), served{"acme.io", "v1alpha1", "things", "Thing"}), func(q request) string {
		if strings.Contains(q.target, "v1alpha1") {
			return notFoundPage
		}
		return ok("{}")
	})
	less := &recorder{t: t, serves: oldKinds}
	a.own = func(q request) (string, bool) {
		if strings.HasPrefix(q.target, "/apis/acme.io/v1alpha1") && !strings.Contains(q.target, "things") && gone.Load() {
			return notFoundPage, true
		}
		return less.discovery(false), q.target == "/apis" && gone.Load()
	}
	r := start(t, nil, nil, a)
	before := r.do("GET", "/apis", "", "", "Accept", aggregated)
	if !strings.Contains(before.body, "v1alpha1") {
		t.Fatalf("the version is not listed: %s", before.body)
	}
	gone.Store(true)
	// The first request that meets it has MVP look at once.
	if got := r.do("GET", "/apis/acme.io/v1alpha1/things", "", ""); got.code != 404 || got.body != parsed(t, notFoundPage).body {
		t.Errorf("its path was answered %d %s", got.code, got.body)
	}
	var after answer
	r.eventually("the version leaves discovery", func() bool {
		after = r.do("GET", "/apis", "", "", "Accept", aggregated)
		return !strings.Contains(after.body, "v1alpha1")
	})
	if etag := after.header.Get("Etag"); etag == "" || etag == before.header.Get("Etag") {
		t.Errorf("the ETag is %q, and was %q", etag, before.header.Get("Etag"))
	}
	for _, path := range []string{"/apis/acme.io/v1alpha1", "/apis/acme.io/v1alpha1/things"} {
		if got := r.do("GET", path, "", ""); got.code != http.StatusNotFound || got.body != parsed(t, notFoundPage).body {
			t.Errorf("%s was answered %d %s", path, got.code, got.body)
		}
	}
}
