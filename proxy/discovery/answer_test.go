package discovery

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"
)

const serverB = `
v1 pods Pod Namespaced short=po sub=status
apps/v1 deployments Deployment Namespaced sub=status,scale:autoscaling/v1/Scale
policy/v1 poddisruptionbudgets PodDisruptionBudget Namespaced
`

func mergedB(t testing.TB) *Merged {
	t.Helper()
	return Merge([]Source{{Server: "b", Version: "v1.32.13", Reachable: true, Groups: groups(t, serverB)}}, nil, nil)
}

func TestAnswerPaths(t *testing.T) {
	m := mergedB(t)
	f := func(path string, want bool) {
		t.Helper()
		if _, got := m.Answer(Request{Path: path}); got != want {
			t.Errorf("%q answered here: %v, want %v", path, got, want)
		}
	}

	f("/api", true)
	f("/api/", true)
	f("/api/v1", true)
	f("/api/v1/", true)
	f("/apis", true)
	f("/apis/", true)
	f("/apis/apps", true)
	f("/apis/apps/v1", true)
	f("/apis/apps/v1/", true)

	// Not discovery, or not known: a server says so.
	f("", false)
	f("/", false)
	f("/apis//", false)
	f("/api/v1/pods", false)
	f("/api/v2", false)
	f("/apis/apps/v2", false)
	f("/apis/none", false)
	f("/apis/apps/v1/deployments", false)
	f("/version", false)
	f("/openapi/v3", false)
}

func TestNothingKnown(t *testing.T) {
	var none *Merged
	for name, m := range map[string]*Merged{"nil": none, "no source": Merge(nil, nil, nil), "a source that says nothing": Merge([]Source{{Server: "a", Reachable: true}}, nil, nil)} {
		if !m.Empty() || m.Has("", "v1", "pods") || m.Converted("", "v1", "pods") {
			t.Errorf("%s: not empty", name)
		}
		if _, ok := m.Answer(Request{Path: "/apis"}); ok {
			t.Errorf("%s: /apis answered with an empty list", name)
		}
		if _, ok := m.PreferredVersion("apps"); ok {
			t.Errorf("%s: prefers something", name)
		}
	}
}

func TestNotModified(t *testing.T) {
	m := mergedB(t)
	first, _ := m.Answer(Request{Path: "/apis", Accept: jsonV2})
	if first.Status != http.StatusOK || first.ContentType != jsonV2 || first.Vary != "Accept" || first.CacheControl != "public" {
		t.Errorf("unexpected head %+v", first)
	}
	if !strings.HasPrefix(first.ETag, `"`) || !strings.HasSuffix(string(first.Body), "}\n") {
		t.Errorf("ETag %s, body ends %q", first.ETag, first.Body[len(first.Body)-3:])
	}
	for _, header := range []string{first.ETag, "W/" + first.ETag, `"x", ` + first.ETag, "*"} {
		a, ok := m.Answer(Request{Path: "/apis", Accept: jsonV2, IfNoneMatch: header})
		if !ok || a.Status != http.StatusNotModified || a.Body != nil || a.ContentType != "" || a.ETag != first.ETag {
			t.Errorf("If-None-Match: %s: %+v", header, a)
		}
	}
	for _, req := range []Request{
		{Path: "/apis", Accept: jsonV2, IfNoneMatch: `"x"`},
		{Path: "/apis", Accept: jsonV2beta1, IfNoneMatch: first.ETag},
		{Path: "/apis", IfNoneMatch: first.ETag},
		{Path: "/api", Accept: jsonV2, IfNoneMatch: first.ETag},
	} {
		if a, ok := m.Answer(req); !ok || a.Status != http.StatusOK {
			t.Errorf("%+v: status %d, want 200", req, a.Status)
		}
	}
}

// The tag changes if and only if the document does: one of a group that is not
// touched stays.
func TestETagFollowsDocument(t *testing.T) {
	tag := func(m *Merged, path string) string {
		a, _ := m.Answer(Request{Path: path})
		return a.ETag
	}
	before := mergedB(t)
	again := mergedB(t)
	after := Merge(before.sources, conversions(t, "policy/v1beta1 poddisruptionbudgets -> policy/v1 poddisruptionbudgets"), before)
	for _, path := range []string{"/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/apis/policy"} {
		if tag(before, path) != tag(again, path) {
			t.Errorf("%s: the tag differs without a change", path)
		}
		changed := path == "/apis" || path == "/apis/policy"
		if (tag(before, path) != tag(after, path)) != changed {
			t.Errorf("%s: the tag changed: %v, want %v", path, !changed, changed)
		}
	}
}

func TestNotAcceptable(t *testing.T) {
	a, ok := mergedB(t).Answer(Request{Path: "/apis/apps", Accept: "text/html"})
	if !ok || a.Status != http.StatusNotAcceptable {
		t.Fatalf("unexpected answer %+v", a)
	}
	want := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",` +
		`"message":"only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf",` +
		`"reason":"NotAcceptable","code":406}` + "\n"
	if string(a.Body) != want {
		t.Errorf("\n got %s\nwant %s", a.Body, want)
	}
}

func TestEncodings(t *testing.T) {
	m := mergedB(t)
	plain, _ := m.Answer(Request{Path: "/apis/apps/v1"})

	a, _ := m.Answer(Request{Path: "/apis/apps/v1", Accept: "application/yaml", Pretty: true})
	if got, err := yaml.YAMLToJSONStrict(a.Body); err != nil || a.ContentType != "application/yaml" || a.ETag != plain.ETag {
		t.Errorf("yaml: %v, %s, %s", err, a.ContentType, got)
	}

	a, _ = m.Answer(Request{Path: "/apis/apps/v1", Accept: "application/vnd.kubernetes.protobuf"})
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.Unversioned)
	decoded, _, err := protobuf.NewSerializer(scheme, scheme).Decode(a.Body, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	list := decoded.(*metav1.APIResourceList)
	if list.GroupVersion != "apps/v1" || len(list.APIResources) != 3 || list.APIResources[2].Kind != "Scale" {
		t.Errorf("protobuf says %v", list)
	}

	for _, accept := range []string{protoV2, strings.Replace(protoV2, "v=v2", "v=v2beta1", 1)} {
		if a, ok := m.Answer(Request{Path: "/apis", Accept: accept}); !ok || a.ContentType != accept || !strings.HasPrefix(string(a.Body), "k8s\x00") {
			t.Errorf("Accept: %s: %+v", accept, a)
		}
	}
}

// A Merged is shared by all requests; documents are written on first use.
func TestAnswerConcurrently(t *testing.T) {
	m := mergedB(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, accept := range []string{"", jsonV2, jsonV2beta1, protoV2, "application/yaml"} {
				for _, path := range []string{"/api", "/apis", "/apis/apps/v1"} {
					m.Answer(Request{Path: path, Accept: accept})
				}
			}
		})
	}
	wg.Wait()
}
