package demo

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// route finds what a path means and answers. An error that it returns was not
// answered yet.
func (s *Server) route(w http.ResponseWriter, r *http.Request) error {
	switch r.URL.Path {
	case "/version":
		return s.serveVersion(w)
	case "/healthz", "/livez", "/readyz":
		return s.serveHealth(w, r)
	case "/openapi/v2":
		return s.serveOpenAPIv2(w, r)
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "openapi" && len(parts) > 1 && parts[1] == "v3":
		return s.serveOpenAPIv3(w, r, strings.Join(parts[2:], "/"))
	case parts[0] == "api" && len(parts) <= 2, parts[0] == "apis" && len(parts) <= 3:
		return s.serveDiscovery(w, r, parts)
	case parts[0] == "api":
		return s.serveResource(w, r, schema.GroupVersion{Version: parts[1]}, parts[2:])
	case parts[0] == "apis":
		return s.serveResource(w, r, schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:])
	}
	return errNotFound
}

// A call is one request for a resource.
type call struct {
	server      *Server
	kind        *kind
	namespace   string
	name        string
	subresource string
	request     *http.Request
}

// serveResource takes the path from behind the group and version:
//
//	RESOURCE[/NAME[/SUBRESOURCE]]
//	namespaces/NAMESPACE/RESOURCE[/NAME[/SUBRESOURCE]]
func (s *Server) serveResource(w http.ResponseWriter, r *http.Request, gv schema.GroupVersion, parts []string) error {
	c := &call{server: s, request: r}
	namespaced := false
	if len(parts) >= 3 && parts[0] == "namespaces" && s.kindFor(gv, parts[2]) != nil {
		namespaced, c.namespace, parts = true, parts[1], parts[2:]
	}
	c.kind = s.kindFor(gv, parts[0])
	if c.kind == nil || len(parts) > 3 || (namespaced && !c.kind.namespaced) {
		return errNotFound
	}
	if len(parts) > 1 {
		c.name = parts[1]
	}
	if len(parts) > 2 {
		c.subresource = parts[2]
	}
	if c.kind.namespaced && !namespaced && c.name != "" {
		return errNotFound
	}
	return c.serve(w)
}

func (c *call) serve(w http.ResponseWriter) error {
	method := c.request.Method
	switch {
	case c.subresource == "log" && c.kind.logs && method == http.MethodGet:
		return c.streamLogs(w)
	case c.subresource == "scale" && c.kind.scale != nil:
		return c.serveScale(w)
	case c.subresource == "status" && c.kind.status, c.subresource == "":
	default:
		return errNotFound
	}
	switch {
	case method == http.MethodHead, method == http.MethodGet:
		return c.read(w)
	case method == http.MethodPost && c.name == "":
		return c.create(w)
	case method == http.MethodPut && c.name != "":
		return c.update(w)
	case method == http.MethodPatch && c.name != "":
		return c.patch(w)
	case method == http.MethodDelete && c.subresource == "":
		return c.delete(w)
	}
	return apierrors.NewMethodNotSupported(c.groupResource(), strings.ToLower(method))
}

func (c *call) groupResource() schema.GroupResource { return c.kind.groupResource() }

func (s *Server) serveVersion(w http.ResponseWriter) error {
	return writeJSON(w, http.StatusOK, version.Info{
		Major:      fmt.Sprint(s.release.Major()),
		Minor:      fmt.Sprint(s.release.Minor()),
		GitVersion: "v" + s.Version,
		GoVersion:  "go1.26",
		Compiler:   "gc",
		Platform:   "linux/amd64",
	})
}

func (s *Server) serveHealth(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if r.URL.Path == "/readyz" && s.notReady.Load() {
		w.WriteHeader(http.StatusInternalServerError)
		_, err := w.Write([]byte("[-]shutdown failed: reason withheld\nreadyz check failed\n"))
		return wrapWrite(err)
	}
	_, err := w.Write([]byte("ok"))
	return wrapWrite(err)
}
