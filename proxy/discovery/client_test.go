package discovery

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
)

const serverA = `
v1 pods Pod Namespaced short=po sub=status
apps/v1 deployments Deployment Namespaced sub=status,scale:autoscaling/v1/Scale
policy/v1 poddisruptionbudgets PodDisruptionBudget Namespaced short=pdb sub=status
flowcontrol.apiserver.k8s.io/v1beta3 flowschemas FlowSchema Cluster
`

func mixed(t testing.TB) *Merged {
	t.Helper()
	return Merge([]Source{
		{Server: "a", Version: "v1.31.14", Reachable: true, Groups: groups(t, serverA)},
		{Server: "b", Version: "v1.32.13", Reachable: true, Groups: groups(t, serverB)},
	}, conversions(t, "policy/v1beta1 poddisruptionbudgets -> policy/v1 poddisruptionbudgets"), nil)
}

// serve answers as the proxy does, on loopback.
func serve(t *testing.T, m *Merged, more http.HandlerFunc) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := m.Answer(Request{Path: r.URL.Path, Accept: r.Header.Get("Accept"), IfNoneMatch: r.Header.Get("If-None-Match"), Host: r.Host})
		if !ok {
			more(w, r)
			return
		}
		write(w, a)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func write(w http.ResponseWriter, a *Answer) {
	w.Header().Set("Content-Type", a.ContentType)
	w.Header().Set("ETag", a.ETag)
	w.Header().Set("Vary", a.Vary)
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body)
}

// The real client finds the same in the aggregated form and, told to be of an
// older kubectl's age, in the unaggregated one.
func TestRealClient(t *testing.T) {
	config := serve(t, mixed(t), http.NotFound)
	for _, legacy := range []bool{false, true} {
		client, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		client.UseLegacyDiscovery = legacy
		_, lists, err := client.ServerGroupsAndResources()
		if err != nil {
			t.Fatalf("legacy %v: %v", legacy, err)
		}
		found := map[string]bool{}
		for _, list := range lists {
			for _, r := range list.APIResources {
				found[list.GroupVersion+" "+r.Name+" "+r.Kind] = true
			}
		}
		for _, want := range []string{
			"v1 pods Pod", "v1 pods/status Pod", "apps/v1 deployments/scale Scale",
			"policy/v1beta1 poddisruptionbudgets PodDisruptionBudget", "policy/v1beta1 poddisruptionbudgets/status PodDisruptionBudget",
			"flowcontrol.apiserver.k8s.io/v1beta3 flowschemas FlowSchema",
		} {
			if !found[want] {
				t.Errorf("legacy %v: %q is missing in %v", legacy, want, found)
			}
		}
		preferred, err := client.ServerPreferredResources()
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range preferred {
			if list.GroupVersion == "policy/v1beta1" && len(list.APIResources) > 0 {
				t.Errorf("legacy %v: the converted version is preferred: %v", legacy, list)
			}
		}
	}
}

// The unaggregated documents are those that client-go derives from the aggregated
// one. It repeats what a subresource inherits; kube-apiserver leaves it out.
func TestUnaggregatedIsSplitAggregated(t *testing.T) {
	m := mixed(t)
	for _, path := range []string{"/api", "/apis"} {
		var list apidiscoveryv2.APIGroupDiscoveryList
		answered(t, m, Request{Path: path, Accept: jsonV2}, &list)
		wantGroups, wantResources, failed := discovery.SplitGroupsAndResources(list)
		if len(failed) > 0 {
			t.Errorf("stale: %v", failed)
		}
		if path == "/apis" {
			var got metav1.APIGroupList
			answered(t, m, Request{Path: path}, &got)
			if !reflect.DeepEqual(got.Groups, wantGroups.Groups) {
				t.Errorf("groups\n got %v\nwant %v", got.Groups, wantGroups.Groups)
			}
		}
		for gv, want := range wantResources {
			var got metav1.APIResourceList
			answered(t, m, Request{Path: versionPath(gv.Group, gv.Version)}, &got)
			for i := range want.APIResources {
				if i < len(got.APIResources) && got.APIResources[i].SingularName == "" {
					want.APIResources[i].SingularName = ""
				}
			}
			if !reflect.DeepEqual(got.APIResources, want.APIResources) {
				t.Errorf("%v\n got %v\nwant %v", gv, got.APIResources, want.APIResources)
			}
		}
	}
}

func answered(t *testing.T, m *Merged, req Request, into any) {
	t.Helper()
	a, ok := m.Answer(req)
	if !ok {
		t.Fatalf("%+v is not answered", req)
	}
	if err := json.Unmarshal(a.Body, into); err != nil {
		t.Fatalf("%+v: %v", req, err)
	}
}

// client-go reads the index and the derived document of a converted version.
func TestRealOpenAPIClient(t *testing.T) {
	doc, err := ConvertV3([]byte(policyDocument), conversions(t, "policy/v1beta1 poddisruptionbudgets -> policy/v1 poddisruptionbudgets"), ConvertOptions{})
	if err != nil {
		t.Fatal(err)
	}
	index := MergeOpenAPI(nil, map[string]string{"apis/policy/v1beta1": Hash(doc)})
	config := serve(t, mixed(t), func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/openapi/v3":
			write(w, index.Answer(""))
		case r.URL.Path == "/openapi/v3/apis/policy/v1beta1" && r.URL.Query().Get("hash") == Hash(doc):
			write(w, &Answer{Status: http.StatusOK, ContentType: "application/json", Body: doc})
		default:
			http.NotFound(w, r)
		}
	})
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := openapi3.NewRoot(client.OpenAPIV3()).GVSpec(schema.GroupVersion{Group: "policy", Version: "v1beta1"})
	if err != nil {
		t.Fatal(err)
	}
	path := spec.Paths.Paths["/apis/policy/v1beta1/namespaces/{namespace}/poddisruptionbudgets"]
	if path == nil || path.Post == nil {
		t.Fatalf("no create operation in %v", spec.Paths.Paths)
	}
	if len(path.Post.Parameters) != 2 || path.Post.Parameters[1].Name != "fieldValidation" {
		t.Errorf("parameters are %v, want fieldValidation among them", path.Post.Parameters)
	}
}
