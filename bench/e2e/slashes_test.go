package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// testSlashes compares what paths with odd slashes are answered through MVP and by a
// server: the status, and of a refusal every line and the body. MVP refuses two slashes
// at the beginning, which no server has anything for.
func testSlashes(t *testing.T, l *lab) {
	m := l.serve(t, nil)
	client := m.client()
	both := func(path string) (through, direct string) {
		t.Helper()
		return ask(t, client, http.MethodGet, m.url+path, ""), ask(t, client, http.MethodGet, l.URL("b")+path, "")
	}
	for _, path := range []string{
		"/version/", "/healthz/", "/readyz/ping/", "/api/", "/api/v1/", "/apis/", "/apis/apps/", "/apis/apps/v1/",
		"/api/v1/namespaces/", "/apis/apps/v1/deployments/", "/api/v1//namespaces", "/api//v1/namespaces",
		"/apis/apps/v1/namespaces/default/deployments//x", "/apis//apps/v1/deployments",
	} {
		through, direct := both(path)
		if status, _, _ := strings.Cut(direct, "\n"); through != direct && (!strings.HasPrefix(status, "2") || !strings.HasPrefix(through, status+"\n")) {
			t.Errorf("%s through mvp:\n%s\ndirect:\n%s", path, through, direct)
		}
	}
	for _, path := range []string{"//version", "//api/v1/secrets"} {
		if through, direct := both(path); !strings.HasPrefix(through, "400 ") || !strings.HasPrefix(direct, "4") {
			t.Errorf("%s through mvp:\n%s\ndirect:\n%s\nwant it refused by both", path, through, direct)
		}
	}
}
