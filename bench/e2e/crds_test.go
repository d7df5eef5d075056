package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// seenWithin is how long MVP may take to show a change of what the servers serve
// before a test fails. What MVP promises is a second; the test prints what it measured,
// and leaves room for a machine that does too much at once.
const seenWithin = 5 * time.Second

// TestCustomResourceDefinitions measures how soon after the servers MVP shows what
// CRDs and APIServices change.
func TestCustomResourceDefinitions(t *testing.T) {
	t.Parallel()
	l := startLab(t)
	m := l.serve(t, nil)
	x := &extensions{t: t, m: m, client: m.client(), direct: l.URL("a"), other: l.URL("b"), figures: &figures{took: map[string][]time.Duration{}}}
	defer x.figures.report(t)
	t.Run("one by one", func(t *testing.T) {
		for i := range 20 {
			x.in(t).testLife(fmt.Sprintf("one%d.example.com", i))
		}
	})
	t.Run("at once", func(t *testing.T) {
		for i := range 20 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				x.in(t).testLife(fmt.Sprintf("many%d.example.com", i))
			})
		}
	})
	t.Run("versions", func(t *testing.T) { x.in(t).testVersions("versions.example.com") })
	t.Run("schema", func(t *testing.T) { x.in(t).testSchema("schema.example.com") })
	t.Run("API service", func(t *testing.T) { x.in(t).testAPIService("aggregated.example.com") })
}

// extensions changes what the servers serve, at one of them, and looks at MVP.
type extensions struct {
	t      *testing.T
	m      *mvp
	client *http.Client

	direct, other string // URLs of the server that is changed, and of the other

	figures *figures
}

// figures are what was measured.
type figures struct {
	mu   sync.Mutex
	took map[string][]time.Duration // by what it is
}

// in is x within a subtest.
func (x *extensions) in(t *testing.T) *extensions {
	y := *x
	y.t = t
	return &y
}

const (
	crdsPath        = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	apiServicesPath = "/apis/apiregistration.k8s.io/v1/apiservices"
)

// testLife makes a CRD, and removes it again.
func (x *extensions) testLife(group string) {
	x.create(group)
	x.seen("listed -> GET", func() bool { code, _ := x.get(x.m.url, "/apis/"+group+"/v1/widgets"); return code == 200 })
	for range 10 { // a server may say 429 for a moment: its storage is initializing
		if code, body := x.get(x.m.url, "/apis/"+group+"/v1/widgets"); code == 404 {
			x.t.Errorf("the list is %d %s after it was 200", code, body)
		}
	}
	x.remove(group)
	x.seen("removed -> 404", func() bool { code, _ := x.get(x.m.url, "/apis/"+group+"/v1/widgets"); return code == 404 })
	wantCode, want := x.get(x.direct, "/apis/"+group+"/v1/widgets")
	if code, body := x.get(x.m.url, "/apis/"+group+"/v1/widgets"); code != wantCode || body != want {
		x.t.Errorf("what is gone answers %d %q, want the server's own %d %q", code, body, wantCode, want)
	}
}

// testVersions stops serving a version, and begins again.
func (x *extensions) testVersions(group string) {
	x.create(group)
	for _, served := range []bool{false, true} {
		x.send("PATCH", crdsPath+"/widgets."+group, fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/1/served","value":%v}]`, served))
		x.seen(fmt.Sprintf("served: %v -> listed", served), func() bool { return x.listed(x.m.url, group+"/v1beta1") == served })
	}
	x.remove(group)
}

// testSchema changes the type of a field.
func (x *extensions) testSchema(group string) {
	x.create(group)
	path := "/openapi/v3/apis/" + group + "/v1"
	shows := func(url, kind string) bool {
		code, body := x.get(url, "/openapi/v3")
		var index struct {
			Paths map[string]struct{ ServerRelativeURL string }
		}
		if code != 200 || json.Unmarshal([]byte(body), &index) != nil {
			return false
		}
		link := index.Paths[strings.TrimPrefix(path, "/openapi/v3/")].ServerRelativeURL
		if link == "" {
			return false
		}
		code, body = x.get(url, link)
		return code == 200 && strings.Contains(strings.ReplaceAll(body, " ", ""), `"size":{"type":"`+kind+`"}`)
	}
	x.seen("established -> schema", func() bool { return shows(x.m.url, "integer") })
	x.send("PATCH", crdsPath+"/widgets."+group, `[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/size/type","value":"string"}]`)
	start := time.Now()
	x.seen("schema changed -> at the server", func() bool { return shows(x.direct, "string") })
	x.since("schema changed -> seen", start, func() bool { return shows(x.m.url, "string") })
	x.remove(group)
}

// testAPIService registers an aggregated API, of which there is no server.
func (x *extensions) testAPIService(group string) {
	x.send("POST", apiServicesPath, fmt.Sprintf(`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.%[1]s"},
		"spec":{"group":%[1]q,"version":"v1","groupPriorityMinimum":1000,"versionPriority":15,"insecureSkipTLSVerify":true,
		"service":{"name":"nobody","namespace":"default"}}}`, group))
	x.seen("APIService -> at the server", func() bool { return x.listed(x.direct, group+"/v1") })
	x.seen("APIService -> listed", func() bool { return x.listed(x.m.url, group+"/v1") })
	x.send("DELETE", apiServicesPath+"/v1."+group, "")
	x.seen("APIService removed -> at the server", func() bool { return !x.listed(x.direct, group+"/v1") })
	x.seen("APIService removed -> not listed", func() bool { return !x.listed(x.m.url, group+"/v1") })
}

// create makes the CRD of a group and waits until MVP lists it.
func (x *extensions) create(group string) {
	x.t.Helper()
	x.send("POST", crdsPath, fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.%[1]s"},
		"spec":{"group":%[1]q,"scope":"Namespaced","names":{"plural":"widgets","singular":"widget","kind":"Widget"},"versions":[
		{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"size":{"type":"integer"}}}}},
		{"name":"v1beta1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, group))
	x.until("the CRD is established", time.Now(), func() bool {
		_, body := x.get(x.direct, crdsPath+"/widgets."+group)
		return strings.Contains(body, `"type":"Established"`) && strings.Contains(body, "the initial names have been accepted")
	})
	x.seen("established -> listed", func() bool { return x.listed(x.m.url, group+"/v1") && x.listed(x.m.url, group+"/v1beta1") })
}

// remove removes the CRD of a group and waits until MVP does not list it.
func (x *extensions) remove(group string) {
	x.t.Helper()
	x.send("DELETE", crdsPath+"/widgets."+group, "")
	x.until("the CRD is gone", time.Now(), func() bool {
		code, _ := x.get(x.direct, crdsPath+"/widgets."+group)
		return code == 404
	})
	start := time.Now()
	x.since("removed -> not listed by a", start, func() bool { return !x.listed(x.direct, group+"/v1") })
	x.since("removed -> not listed by b", start, func() bool { return !x.listed(x.other, group+"/v1") })
	x.since("removed -> not listed", start, func() bool { return !x.listed(x.m.url, group+"/v1") && !x.listed(x.m.url, group+"/v1beta1") })
}

// listed reports whether aggregated discovery has the group version.
func (x *extensions) listed(url, groupVersion string) bool {
	x.t.Helper()
	code, body := x.get(url, "/apis")
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Versions []struct{ Version string }
		}
	}
	if err := json.Unmarshal([]byte(body), &list); code != 200 || err != nil {
		x.t.Fatalf("GET /apis answered %d %s: %v", code, body, err)
	}
	for _, group := range list.Items {
		for _, version := range group.Versions {
			if group.Metadata.Name+"/"+version.Version == groupVersion {
				return true
			}
		}
	}
	return false
}

// seen waits until MVP shows what has just happened, and takes down how long that took.
func (x *extensions) seen(what string, ok func() bool) {
	x.t.Helper()
	x.since(what, time.Now(), ok)
}

func (x *extensions) since(what string, start time.Time, ok func() bool) {
	x.t.Helper()
	took := x.until(what, start, ok)
	x.figures.mu.Lock()
	defer x.figures.mu.Unlock()
	x.figures.took[what] = append(x.figures.took[what], took)
}

func (x *extensions) until(what string, start time.Time, ok func() bool) time.Duration {
	x.t.Helper()
	if _, held := polled(seenWithin-time.Since(start), 20*time.Millisecond, ok); !held {
		x.t.Fatalf("not within %v: %s", seenWithin, what)
	}
	return time.Since(start)
}

// report prints what was measured.
func (f *figures) report(t *testing.T) {
	var lines []string
	for what, took := range f.took {
		slices.Sort(took)
		lines = append(lines, fmt.Sprintf("%-40s n=%-3d median %-8v max %v", what, len(took),
			took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond)))
	}
	slices.Sort(lines)
	t.Logf("how soon MVP shows a change:\n%s", strings.Join(lines, "\n"))
}

// get reads a path.
func (x *extensions) get(url, path string) (int, string) {
	x.t.Helper()
	return x.do("GET", url+path, "")
}

// send changes an object at the server; it must work.
func (x *extensions) send(method, path, body string) {
	x.t.Helper()
	if code, answer := x.do(method, x.direct+path, body); code/100 != 2 {
		x.t.Fatalf("%s %s answered %d %s", method, path, code, answer)
	}
}

func (x *extensions) do(method, url, body string) (int, string) {
	x.t.Helper()
	req, err := http.NewRequestWithContext(x.t.Context(), method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		x.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if method == "PATCH" {
		req.Header.Set("Content-Type", "application/json-patch+json")
	}
	if strings.HasSuffix(url, "/apis") {
		req.Header.Set("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	}
	resp, err := x.client.Do(req)
	if err != nil {
		x.t.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	return resp.StatusCode, string(content)
}
