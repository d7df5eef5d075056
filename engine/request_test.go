package engine

import (
	"bufio"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

func TestParseRequest(t *testing.T) {
	tests := []struct {
		name   string
		method string
		target string
		want   string // Request.String: verb group/version resource[/subresource] [namespace/]name
	}{
		{"list is GET without a name", "GET", "/api/v1/namespaces/web/pods", "list /v1 pods web/"},
		{"watch by query", "GET", "/apis/apps/v1/deployments?watch=1", "watch apps/v1 deployments"},
		{"watch without a value", "GET", "/api/v1/pods?watch", "watch /v1 pods"},
		{"watch=false is a list", "GET", "/api/v1/pods?watch=false", "list /v1 pods"},
		{"watch=False is a list", "GET", "/api/v1/pods?watch=False", "list /v1 pods"},
		{"watch=0 is a list", "GET", "/api/v1/pods?watch=0", "list /v1 pods"},
		{"the first watch counts", "GET", "/api/v1/pods?watch=0&watch=1", "list /v1 pods"},
		{"an escaped watch", "GET", "/api/v1/pods?%77atch=%31", "watch /v1 pods"},
		{"a parameter with a semicolon is ignored", "GET", "/api/v1/pods?watch=1;x", "list /v1 pods"},
		{"a parameter with a bad escape is ignored", "GET", "/api/v1/pods?watch=1%", "list /v1 pods"},
		{"watch of long ago", "GET", "/api/v1/watch/namespaces/web/pods", "watch /v1 pods web/"},
		{"watching one by its path is a get", "GET", "/api/v1/namespaces/web/pods/p?watch=1", "get /v1 pods web/p"},
		{"HEAD reads", "HEAD", "/api/v1/nodes/n1", "get /v1 nodes n1"},
		{"create", "POST", "/api/v1/namespaces/web/pods", "create /v1 pods web/"},
		{"patch", "PATCH", "/apis/apps/v1/namespaces/web/deployments/shop", "patch apps/v1 deployments web/shop"},
		{"subresource", "PUT", "/api/v1/namespaces/web/pods/p/status", "update /v1 pods/status web/p"},
		{"what follows a subresource is its own", "GET", "/api/v1/namespaces/web/services/s/proxy/a/b", "get /v1 services/proxy web/s"},
		{"a namespace is its own scope", "GET", "/api/v1/namespaces/web", "get /v1 namespaces web/web"},
		{"a namespace's subresource", "PUT", "/api/v1/namespaces/web/finalize", "update /v1 namespaces/finalize web/web"},
		{"all namespaces", "GET", "/api/v1/namespaces", "list /v1 namespaces"},
		{"delete one", "DELETE", "/api/v1/namespaces/web/pods/p", "delete /v1 pods web/p"},
		{"delete without a name", "DELETE", "/api/v1/pods", "deletecollection /v1 pods"},
		{"a field selector is a name", "GET", "/api/v1/namespaces/web/pods?fieldSelector=metadata.name%3Dp", "list /v1 pods web/p"},
		{"and so in a watch", "GET", "/api/v1/pods?watch=1&fieldSelector=metadata.name=p", "watch /v1 pods p"},
		{"not one of several values", "GET", "/api/v1/pods?fieldSelector=metadata.name!%3Dp", "list /v1 pods"},
		{"not one that is no path segment", "GET", "/api/v1/pods?fieldSelector=metadata.name=a/b", "list /v1 pods"},
		{"not beside an option that is wrong", "GET", "/api/v1/pods?limit=x&fieldSelector=metadata.name=p", "list /v1 pods"},
		{"not beside a label selector that is wrong", "GET", "/api/v1/pods?labelSelector=a=%24&fieldSelector=metadata.name=p", "list /v1 pods"},
		{"escapes are decoded", "GET", "/api/v1/namespaces/kube%2Dsystem/secrets/%61", "get /v1 secrets kube-system/a"},
		{"an escaped slash separates", "GET", "/api/v1/namespaces%2Fkube-system/secrets", "list /v1 secrets kube-system/"},
		{"escaped slashes at the ends do not", "GET", "/%2Fapi/v1/pods/%2f", "list /v1 pods"},
		{"a trailing slash does not count", "GET", "/api/v1/pods/", "list /v1 pods"},
		{"an empty element counts", "GET", "/api/v1/namespaces/web//secrets", "get /v1  web/secrets"},
		{"dot segments are names", "GET", "/api/v1/namespaces/web/../secrets", "get /v1 .. web/secrets"},
		{"the path only is cut at a ?", "GET", "/api/v1/pods?a=/b?c", "list /v1 pods"},
		{"an unknown method", "PURGE", "/api/v1/pods/p", " /v1 pods p"},
		{"a group is no resource", "GET", "/apis/apps", "get /apis/apps"},
		{"a group version is no resource", "GET", "/apis/apps/v1", "get /apis/apps/v1"},
		{"the core version is no resource", "GET", "/api/v1", "get /api/v1"},
		{"not a resource", "GET", "/healthz", "get /healthz"},
		{"the root", "OPTIONS", "/", "options /"},
		{"other prefixes are no resources", "GET", "/openapi/v3/apis/apps/v1", "get /openapi/v3/apis/apps/v1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := ParseRequest(tt.method, tt.target)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.String(); got != tt.want {
				t.Errorf("ParseRequest(%q, %q)\n got %q\nwant %q", tt.method, tt.target, got, tt.want)
			}
			compareWithRequestInfo(t, tt.method, tt.target)
		})
	}
}

func TestParseRequestRefuses(t *testing.T) {
	f := func(method, target, want string) {
		t.Helper()
		_, err := ParseRequest(method, target)
		var bad *BadTargetError
		if !errors.As(err, &bad) {
			t.Fatalf("ParseRequest(%q, %q): got error %v, want a BadTargetError", method, target, err)
		}
		if err.Error() != want {
			t.Errorf("ParseRequest(%q, %q)\n got %s\nwant %s", method, target, err, want)
		}
	}
	const noPath = `the target must be a path that starts with one "/"`
	f("GET", "", `cannot accept request "GET" "": `+noPath)
	f("GET", "*", `cannot accept request "GET" "*": `+noPath)
	f("GET", "api/v1/pods", `cannot accept request "GET" "api/v1/pods": `+noPath)
	f("GET", "http://a/api/v1/pods", `cannot accept request "GET" "http://a/api/v1/pods": `+noPath)
	f("GET", "//a/api/v1/pods", `cannot accept request "GET" "//a/api/v1/pods": `+noPath)
	f("CONNECT", "a:443", `cannot accept request "CONNECT" "a:443": `+noPath)
	f("GET", "/api/v1/pods#x", `cannot accept request "GET" "/api/v1/pods#x": the target has a "#"`)
	f("GET", "/api/v1/pods?a=#x", `cannot accept request "GET" "/api/v1/pods?a=#x": the target has a "#"`)
	f("GET", "/api/v1/%zz", `cannot accept request "GET" "/api/v1/%zz": invalid escape in the path`)
	f("GET", "/api/v1/pods/%2", `cannot accept request "GET" "/api/v1/pods/%2": invalid escape in the path`)
	f("GET", "/a b", `cannot accept request "GET" "/a b": the target has a space or a control byte`)
	f("GET", "/a\r\nHost: b", `cannot accept request "GET" "/a\r\nHost: b": the target has a space or a control byte`)
	f("GET", "/a\x7f", `cannot accept request "GET" "/a\x7f": the target has a space or a control byte`)
	f("GET", "/api/v1/watch", `cannot accept request "GET" "/api/v1/watch": no resource after watch`)
	f("", "/a", `cannot accept request "" "/a": the method is not a token`)
	f("GET /x", "/a", `cannot accept request "GET /x" "/a": the method is not a token`)
	f("GET", "/a?"+strings.Repeat("a&", maxQueryParameters),
		`cannot accept request "GET" "/a?`+strings.Repeat("a&", 30)+`a"…: too many query parameters`)
}

func TestParseRequestQuery(t *testing.T) {
	r, err := ParseRequest("PATCH", "/api/v1/namespaces/web/pods/p?dryRun=All&fieldManager=kubectl%20edit&fieldManager=b")
	if err != nil {
		t.Fatal(err)
	}
	if !r.DryRun || r.FieldManager != "kubectl edit" {
		t.Errorf("got dryRun %v, fieldManager %q", r.DryRun, r.FieldManager)
	}
	want := map[string]any{
		"method": "PATCH", "path": "/api/v1/namespaces/web/pods/p", "verb": "patch",
		"group": "", "version": "v1", "resource": "pods", "subresource": "", "namespace": "web", "name": "p",
		"query":     map[string]any{"dryRun": []any{"All"}, "fieldManager": []any{"kubectl edit", "b"}},
		"userAgent": "", "contentType": "", "fieldManager": "kubectl edit", "dryRun": true,
	}
	if got := r.Vars(); !reflect.DeepEqual(got, want) {
		t.Errorf("Vars:\n got %v\nwant %v", got, want)
	}
}

var requestInfos = apirequest.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

// compareWithRequestInfo checks that what ParseRequest accepts is what
// kube-apiserver makes of the same bytes.
func compareWithRequestInfo(t *testing.T, method, target string) {
	t.Helper()
	r, err := ParseRequest(method, target)
	if err != nil {
		return // being stricter is safe
	}
	head := method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n"
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head)))
	if err != nil {
		t.Fatalf("ParseRequest(%q, %q) accepts what Go's server does not: %v", method, target, err)
	}
	want, err := requestInfos.NewRequestInfo(req)
	if err != nil {
		t.Fatalf("ParseRequest(%q, %q) accepts what RequestInfo does not: %v", method, target, err)
	}
	got := &apirequest.RequestInfo{
		IsResourceRequest: r.IsResource, Path: r.DecodedPath, Verb: r.Verb, APIPrefix: r.Prefix,
		APIGroup: r.Group, APIVersion: r.Version, Namespace: r.Namespace,
		Resource: r.Resource, Subresource: r.Subresource, Name: r.Name,
	}
	want.Parts, want.FieldSelector, want.LabelSelector = nil, "", ""
	if !reflect.DeepEqual(got, want) {
		t.Errorf("ParseRequest(%q, %q)\n got %+v\nwant %+v", method, target, got, want)
	}
	if r.Path != strings.SplitN(target, "?", 2)[0] || r.Query != req.URL.RawQuery {
		t.Errorf("ParseRequest(%q, %q): got path %q and query %q", method, target, r.Path, r.Query)
	}
	if got, want := decodeQuery(r.Query), map[string][]string(req.URL.Query()); !reflect.DeepEqual(got, want) {
		t.Errorf("ParseRequest(%q, %q)\n got query %q\nwant %q", method, target, got, want)
	}
}

// FuzzParseRequest holds ParseRequest against the RequestInfo that
// kube-apiserver makes of what Go's server reads, and the target in another
// version against the same.
func FuzzParseRequest(f *testing.F) {
	for _, target := range []string{
		"/api/v1/namespaces/web/pods?watch=1&fieldSelector=metadata.name%3Dp&limit=500&labelSelector=a%21%3Db",
		"/apis/apps/v1/namespaces/web/deployments/shop/scale",
		"/apis/policy/v1beta1/watch/namespaces/web/poddisruptionbudgets/a?timeoutSeconds=5m&fieldSelector=spec.a\\,b=c,metadata.name=x",
		"/api%2fv1%2F%2Fnamespaces/a%252Fb/finalize/", "/api/v1/proxy/pods/a/b/c", "/apis//v1/pods/x", "/%2F%2f/api/v1/x;y?a;b&%77atch=fal%C5%BFe&limit=",
		"/", "/healthz?verbose", "/api/v1/pods?", "/a?&&=&watch", "/api/v1/namespaces/a/status/b",
	} {
		for _, method := range []string{"GET", "DELETE", "POST"} {
			f.Add(method, target)
		}
	}
	f.Fuzz(func(t *testing.T, method, target string) {
		if method == "PRI" {
			t.Skip("Go's server takes it for the start of HTTP/2")
		}
		compareWithRequestInfo(t, method, target)
		compareVersions(t, method, target)
	})
}

// compareVersions checks that WithVersion changes what it is to change and
// nothing else.
func compareVersions(t *testing.T, method, target string) {
	r, err := ParseRequest(method, target)
	if err != nil || !r.IsResource {
		return
	}
	for _, to := range []gvr{{"policy", "v1", "pdbs"}, {"", "v2", "pods"}} {
		if r.Resource == "namespaces" {
			to.resource = "namespaces" // what stands after it is read differently
		}
		other, err := r.WithVersion(to.group, to.version, to.resource, nil)
		if err != nil {
			t.Fatalf("WithVersion of %q: %v", target, err)
		}
		got, err := ParseRequest(method, other)
		if err != nil {
			t.Fatalf("WithVersion of %q gave %q: %v", target, other, err)
		}
		want := r
		want.Path, want.DecodedPath, want.at, want.Prefix = got.Path, got.DecodedPath, got.at, got.Prefix
		want.Group, want.Version, want.Resource = to.group, to.version, to.resource
		if got != want {
			t.Errorf("WithVersion of %q gave %q\n got %+v\nwant %+v", target, other, got, want)
		}
	}
}
