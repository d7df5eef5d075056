package discovery

import (
	"net/http"
	"slices"
	"testing"
)

func TestMergeOpenAPI(t *testing.T) {
	x := MergeOpenAPI([]OpenAPISource{
		{Server: "a", Version: "v1.31.0", Reachable: true, Paths: map[string]string{
			"api/v1":       "/openapi/v3/api/v1?hash=A1",
			"apis/apps/v1": "/openapi/v3/apis/apps/v1?hash=SAME",
			"apis/flowcontrol.apiserver.k8s.io/v1beta3": "/openapi/v3/apis/flowcontrol.apiserver.k8s.io/v1beta3?hash=A3",
			"version": "/openapi/v3/version",
		}},
		{Server: "b", Version: "v1.32.0", Reachable: true, Paths: map[string]string{
			"api/v1":       "https://elsewhere.example/openapi/v3/api/v1?hash=B1",
			"apis/apps/v1": "/openapi/v3/apis/apps/v1?hash=SAME",
		}},
		{Server: "c", Version: "v1.33.0", Paths: map[string]string{ // which is away
			"apis/away/v1":        "/openapi/v3/apis/away/v1?hash=C",
			"apis/apps/v1":        "/openapi/v3/apis/apps/v1?hash=C",
			"apis/policy/v1beta1": "/openapi/v3/apis/policy/v1beta1?hash=C",
		}},
	}, map[string]string{
		"apis/policy/v1beta1":                       "OWN",
		"apis/flowcontrol.apiserver.k8s.io/v1beta3": "OWN",
	})

	want := `{"paths":{` +
		`"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=B1"},` +
		`"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=SAME"},` +
		`"apis/away/v1":{"serverRelativeURL":"/openapi/v3/apis/away/v1?hash=C"},` +
		`"apis/flowcontrol.apiserver.k8s.io/v1beta3":{"serverRelativeURL":"/openapi/v3/apis/flowcontrol.apiserver.k8s.io/v1beta3?hash=A3"},` +
		`"apis/policy/v1beta1":{"serverRelativeURL":"/openapi/v3/apis/policy/v1beta1?hash=OWN"},` +
		`"version":{"serverRelativeURL":"/openapi/v3/version"}}}`
	a := x.Answer("")
	if string(a.Body) != want || a.ContentType != "application/json" {
		t.Errorf("\n got %s\nwant %s", a.Body, want)
	}
	if again := x.Answer(a.ETag); again.Status != http.StatusNotModified || again.Body != nil {
		t.Errorf("asked again: %+v", again)
	}

	servers := func(path, hash string, want ...string) {
		t.Helper()
		if got := x.Servers(path, hash); !slices.Equal(got, want) {
			t.Errorf("servers of %s with hash %q are %v, want %v", path, hash, got, want)
		}
	}
	servers("api/v1", "", "b", "a")
	servers("api/v1", "B1", "b")
	servers("api/v1", "A1", "a")
	servers("apis/apps/v1", "SAME", "b", "a")
	servers("apis/flowcontrol.apiserver.k8s.io/v1beta3", "A3", "a")
	servers("apis/away/v1", "C", "c")
	servers("apis/policy/v1beta1", "OWN")

	if hash, ok := x.Own("apis/policy/v1beta1"); !ok || hash != "OWN" {
		t.Errorf("policy/v1beta1 is not our own")
	}
	if _, ok := x.Own("apis/flowcontrol.apiserver.k8s.io/v1beta3"); ok {
		t.Errorf("a server has flowcontrol v1beta3, yet it is taken for our own")
	}
}
