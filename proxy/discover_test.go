package proxy_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
)

const (
	newBudget   = "io.k8s.api.policy.v1.PodDisruptionBudget"
	oldBudget   = "io.k8s.api.policy.v1beta1.PodDisruptionBudget"
	oldSchema   = "io.k8s.api.flowcontrol.v1beta3.FlowSchema"
	protobufV2  = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	flowControl = "/apis/flowcontrol.apiserver.k8s.io/v1beta3"
)

// While there is only one OpenAPI v2 document it is the server's own, byte for byte,
// and MVP reads it only when a client has asked.
func TestOpenAPIV2OfOneServer(t *testing.T) {
	for _, names := range [][]string{{"a"}, {"a", "b"}} {
		var servers []*recorder
		var a *describer
		for _, name := range names {
			a = describe(t, name, "1.32.13")
			servers = append(servers, a.recorder)
		}
		r := start(t, nil, nil, servers...)
		if n := a.count("own /openapi/v2"); n != 0 {
			t.Errorf("read %d times before a client asked", n)
		}
		got := r.do("GET", "/openapi/v2", "", "")
		if got.body != a.text("/openapi/v2") {
			t.Errorf("with %v: it is not the server's document", names)
		}
		again := r.do("GET", "/openapi/v2", "", "", "If-None-Match", got.header.Get("Etag"))
		if again.code != http.StatusNotModified || again.body != "" {
			t.Errorf("with %v, asked again: %d %.100s", names, again.code, again.body)
		}
	}
}

// Of servers of two versions it is the union, in JSON and protobuf, zipped and not,
// also while one of them is away.
func TestOpenAPIV2OfMixedServers(t *testing.T) {
	a, b := describe(t, "a", "1.31.14"), describe(t, "b", "1.32.13")
	r := start(t, nil, nil, a.recorder, b.recorder)
	got := r.do("GET", "/openapi/v2", "", "", "Accept-Encoding", "identity")
	if got.code != 200 || got.header.Get("Content-Type") != "application/json" || got.header.Get("Vary") != "Accept-Encoding, Accept" {
		t.Fatalf("answered %d %v", got.code, got.header)
	}
	doc := got.decoded(t)
	if in(doc, "definitions", oldSchema) == nil || in(doc, "paths", flowControl+"/flowschemas") == nil {
		t.Errorf("what only the older server has is missing")
	}
	if spec := "io.k8s.api.core.v1.PodSpec"; !reflect.DeepEqual(in(doc, "definitions", spec), in(b.docs["/openapi/v2"], "definitions", spec)) {
		t.Errorf("%s is not the newer server's", spec)
	}
	tag := got.header.Get("Etag")
	if again := r.do("GET", "/openapi/v2", "", "", "If-None-Match", tag); again.code != http.StatusNotModified || again.header.Get("Etag") != tag {
		t.Errorf("asked again: %d %v", again.code, again.header)
	}
	head := r.do("HEAD", "/openapi/v2", "", "", "Accept-Encoding", "identity")
	if head.code != 200 || head.header.Get("Etag") != tag || head.header.Get("Content-Length") == "0" {
		t.Errorf("HEAD: %d %v", head.code, head.header)
	}

	pb := r.do("GET", "/openapi/v2", "", "", "Accept", protobufV2, "Accept-Encoding", "identity")
	var document openapiv2.Document
	if err := proto.Unmarshal([]byte(pb.body), &document); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, d := range document.Definitions.AdditionalProperties {
		found = found || d.Name == oldSchema
	}
	if !found || pb.header.Get("Content-Type") != "application/com.github.proto-openapi.spec.v2.v1.0+protobuf" || pb.header.Get("Etag") != tag {
		t.Errorf("in protobuf: found %v, %v", found, pb.header)
	}
	if zipped := r.do("GET", "/openapi/v2", "", "", "Accept-Encoding", "gzip"); zipped.header.Get("Content-Encoding") != "gzip" || len(zipped.body) > len(got.body)/4 {
		t.Errorf("zipped: %v, %d of %d bytes", zipped.header, len(zipped.body), len(got.body))
	}
	if none := r.do("GET", "/openapi/v2", "", "", "Accept", "text/html"); none.code != http.StatusNotAcceptable {
		t.Errorf("for text/html it is %d", none.code)
	}

	a.down.Store(true)
	r.eventually("a is away", func() bool { return !r.proxy.Synced() })
	if away := r.do("GET", "/openapi/v2", "", ""); away.header.Get("Etag") != tag {
		t.Errorf("while a is away it is another document: %d %v", away.code, away.header)
	}
}

// A converted version is in it; once its server is gone, as that server described it.
func TestOpenAPIV2OfConvertedVersions(t *testing.T) {
	a, b := describe(t, "a", "1.31.14"), describe(t, "b", "1.32.13")
	r := start(t, nil, []string{"policy-v1beta1", "flowcontrol-v1beta3"}, a.recorder, b.recorder)
	definitions := func() any { return in(r.do("GET", "/openapi/v2", "", "").decoded(t), "definitions") }
	before := definitions()
	// As v1beta1 had it: in v1 alone a patch replaces the selector.
	selector := in(before, oldBudget, "properties", "spec", "properties", "selector")
	if in(selector, "$ref") != "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector" || in(selector, "x-kubernetes-patch-strategy") != nil {
		t.Errorf("the converted kind is %v", in(before, oldBudget))
	}

	// a is upgraded: nobody serves v1beta3 any more.
	upgraded := describe(t, "x", "1.32.13")
	a.with(func() { a.docs = upgraded.docs })
	r.eventually("the document is made without a's", func() bool {
		return in(r.do("GET", "/openapi/v2", "", "").decoded(t), "parameters", "tailLines-2fRTNzbP") == nil // only 1.31 has it
	})
	if after := in(definitions(), oldSchema); after == nil || !reflect.DeepEqual(after, in(before, oldSchema)) {
		t.Errorf("after the upgrade\n got %v\nwant %v", after, in(before, oldSchema))
	}
}

// A new kind at one server is in it for the next request that comes after MVP has
// seen that server's OpenAPI change.
func TestOpenAPIV2Changes(t *testing.T) {
	a, b := describe(t, "a", "1.31.14"), describe(t, "b", "1.32.13")
	r := start(t, nil, nil, a.recorder, b.recorder)
	before := r.do("GET", "/openapi/v2", "", "").header.Get("Etag")
	b.with(func() {
		in(b.docs["/openapi/v2"], "definitions").(map[string]any)["io.acme.v1.Fresh"] = map[string]any{"type": "object"}
		in(b.docs["/openapi/v3"], "paths").(map[string]any)["apis/acme.io/v1"] = map[string]any{"serverRelativeURL": "/openapi/v3/apis/acme.io/v1?hash=1"}
		b.docs["/apis v2"].(map[string]any)["items"] = append(in(b.docs["/apis v2"], "items").([]any), map[string]any{
			"metadata": map[string]any{"name": "acme.io"}, "versions": []any{map[string]any{"version": "v1", "freshness": "Current"}},
		})
	})
	r.eventually("the new definition is there, under another ETag", func() bool {
		got := r.do("GET", "/openapi/v2", "", "")
		return in(got.decoded(t), "definitions", "io.acme.v1.Fresh") != nil && got.header.Get("Etag") != before
	})
}

// Where MVP's own credential cannot read the documents, the newest server's answers.
func TestOpenAPIV2Unreadable(t *testing.T) {
	a, b := describe(t, "a", "1.31.14"), describe(t, "b", "1.32.13")
	for _, d := range []*describer{a, b} {
		d.broken["/openapi/v2"] = true
	}
	r := start(t, nil, nil, a.recorder, b.recorder)
	if got := r.do("GET", "/openapi/v2", "", ""); got.body != b.text("/openapi/v2") {
		t.Errorf("answered %d, not the newer server's document", got.code)
	}
}

// A server that hangs holds a request up for a bounded time only.
func TestOpenAPIV2OfAHungServer(t *testing.T) {
	a, b := describe(t, "a", "1.31.14"), describe(t, "b", "1.32.13")
	b.hung = make(chan struct{})
	t.Cleanup(func() { close(b.hung) })
	r := start(t, nil, nil, a.recorder, b.recorder)
	if got := r.do("GET", "/openapi/v2", "", ""); got.body != b.text("/openapi/v2") {
		t.Errorf("answered %d, not the newer server's document", got.code)
	}
}

// Nobody learns from the merged documents what his own credential does not open.
func TestDiscoveryIsAuthorized(t *testing.T) {
	a, b := describe(t, "a", "1.31.14"), describe(t, "b", "1.32.13")
	for _, d := range []*describer{a, b} {
		d.refuses = "nobody"
	}
	r := start(t, nil, nil, a.recorder, b.recorder)
	if got := r.do("GET", "/openapi/v2", "", "", "Authorization", "Bearer nobody"); got.code != 401 || a.count("own /openapi/v2") > 0 {
		t.Errorf("nobody gets %d, and MVP read the document %d times for him", got.code, a.count("own /openapi/v2"))
	}
	for _, path := range []string{"/openapi/v2", "/openapi/v3", "/apis", "/api", "/api/v1", "/apis/apps", "/apis/apps/v1"} {
		if got := r.do("GET", path, "", "", "Authorization", "Bearer nobody"); got.code != 401 || got.body != "who are you\n" {
			t.Errorf("%s: nobody gets %d %.80s", path, got.code, got.body)
		}
		if got := r.do("GET", path, "", "", "Authorization", "Bearer somebody"); got.code != 200 || len(got.body) < 100 {
			t.Errorf("%s: somebody gets %d %.80s", path, got.code, got.body)
		}
	}
}

// The unaggregated list of a group version has the storage versions that the servers
// say, each from the newest server that serves the resource.
func TestStorageVersionHashes(t *testing.T) {
	a, b := describe(t, "a", "1.31.14"), describe(t, "b", "1.32.13")
	onlyA := map[string]any{"name": "olds", "singularName": "old", "namespaced": true, "kind": "Old", "verbs": []any{"get"}, "storageVersionHash": "onlyA"}
	a.docs["/apis/apps/v1"].(map[string]any)["resources"] = append(in(a.docs["/apis/apps/v1"], "resources").([]any), onlyA)
	for _, g := range in(a.docs["/apis v2"], "items").([]any) {
		if in(g, "metadata", "name") == "apps" {
			version := in(g, "versions").([]any)[0].(map[string]any)
			version["resources"] = append(version["resources"].([]any), map[string]any{
				"resource": "olds", "scope": "Namespaced", "singularResource": "old", "verbs": []any{"get"},
				"responseKind": map[string]any{"group": "", "version": "", "kind": "Old"},
			})
		}
	}
	for _, r := range in(b.docs["/apis/apps/v1"], "resources").([]any) {
		if in(r, "name") == "deployments" {
			r.(map[string]any)["storageVersionHash"] = "newest"
		}
	}
	r := start(t, nil, nil, a.recorder, b.recorder)
	got := r.do("GET", "/apis/apps/v1", "", "")
	list := got.decoded(t)
	for name, want := range map[string]string{"deployments": "newest", "olds": "onlyA", "statefulsets": "H+vl74LkKdo=", "deployments/status": "<nil>"} {
		if hash := resourceHash(list, name); hash != want {
			t.Errorf("%s has the hash %s, want %s", name, hash, want)
		}
	}
	for range 10 {
		if again := r.do("GET", "/apis/apps/v1", "", "", "Authorization", "Bearer x"); again.header.Get("Etag") != got.header.Get("Etag") {
			t.Fatalf("another caller is told something else")
		}
	}

	a.with(func() { a.broken["/apis/apps/v1"] = true })
	list = r.do("GET", "/apis/apps/v1", "", "").decoded(t)
	if known, lost := resourceHash(list, "deployments"), resourceHash(list, "olds"); known != "newest" || lost != "<nil>" {
		t.Errorf("when a fails: deployments have %s, olds %s", known, lost)
	}
}

// HEAD is answered as kube-apiserver answers it: for /apis and its groups, and not
// where go-restful looks at the method.
func TestHeadOfDiscovery(t *testing.T) {
	a := describe(t, "a", "1.32.13")
	r := start(t, nil, nil, a.recorder)
	for path, want := range map[string]int{
		"/api": 405, "/api/v1": 405, "/apis": 200, "/apis/apps": 200, "/apis/apps/v1": 405, "/openapi/v3": 200, "/openapi/v2": 200,
	} {
		if got := r.do("HEAD", path, "", ""); got.code != want || got.body != "" {
			t.Errorf("HEAD %s: %d %q, want %d", path, got.code, got.body, want)
		}
	}
}

// JSON is indented for whom kube-apiserver indents it.
func TestPrettyDiscovery(t *testing.T) {
	a := describe(t, "a", "1.32.13")
	r := start(t, nil, nil, a.recorder)
	f := func(target, userAgent string, want bool) {
		t.Helper()
		got := r.do("GET", target, "", "", "User-Agent", userAgent)
		if indented := strings.HasPrefix(got.body, "{\n  "); indented != want {
			t.Errorf("GET %s by %s: %.30q", target, userAgent, got.body)
		}
	}
	f("/apis", "kubectl/v1.32", false)
	f("/apis?pretty=true", "kubectl/v1.32", true)
	f("/apis?pretty=1", "kubectl/v1.32", true)
	f("/apis?pretty=yes", "kubectl/v1.32", false)
	f("/apis", "curl/8.0", true)
	f("/apis/apps", "Mozilla/5.0 (X11)", true)
	f("/apis?pretty=false", "curl/8.0", false)
	f("/apis?pretty=", "Wget/1.2", true)
}
