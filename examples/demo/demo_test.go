package demo

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// start makes a control plane with the article's custom resource.
func start(t *testing.T, opts Options) *ControlPlane {
	t.Helper()
	c, err := Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := c.Apply(manifest(t, "crd.yaml")); err != nil {
		t.Fatal(err)
	}
	return c
}

func manifest(t *testing.T, name string) []byte {
	t.Helper()
	data, err := fs.ReadFile(Manifests, name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A client talks to one server.
type client struct {
	t      *testing.T
	server *Server
	http   *http.Client
}

func newClient(t *testing.T, c *ControlPlane, s *Server) *client {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(c.CAPEM()) {
		t.Fatal("CAPEM holds no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{t: t, server: s, http: &http.Client{Transport: transport, Timeout: time.Minute}}
}

// reply is an answer with its body read.
type reply struct {
	code   int
	header http.Header
	text   string
	object map[string]any // nil if the body is not JSON
}

func (r *reply) get(path string) any {
	value, _, err := unstructured.NestedFieldNoCopy(r.object, splitPath(path)...)
	if err != nil {
		return err.Error()
	}
	return value
}

// do sends a request; headers are "Name: value".
func (c *client) do(method, target, body string, headers ...string) *reply {
	c.t.Helper()
	response, err := c.http.Do(c.request(method, target, body, headers...))
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	r := &reply{code: response.StatusCode, header: response.Header, text: string(data)}
	decoder := json.NewDecoder(bytes.NewReader(data))
	_ = decoder.Decode(&r.object) // a nil object is the test's to notice
	return r
}

func (c *client) request(method, target, body string, headers ...string) *http.Request {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.server.URL()+target, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		request.Header.Set(name, value)
	}
	return request
}

// want sends a request and checks the answer's code.
func (c *client) want(code int, method, target, body string, headers ...string) *reply {
	c.t.Helper()
	r := c.do(method, target, body, headers...)
	if r.code != code {
		c.t.Fatalf("%s %s: code %d, want %d: %s", method, target, r.code, code, r.text)
	}
	return r
}

// equal compares the JSON of two values.
func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	g, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	w, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if string(g) != string(w) {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

func clients(t *testing.T) (older, newer *client) {
	t.Helper()
	c := start(t, Options{})
	return newClient(t, c, c.Servers()[0]), newClient(t, c, c.Servers()[1])
}

func TestServersShareObjects(t *testing.T) {
	older, newer := clients(t)
	equal(t, "names", []string{older.server.Name, newer.server.Name}, []string{"kube-apiserver-1.31", "kube-apiserver-1.32"})
	equal(t, "version", older.want(200, "GET", "/version", "").get("gitVersion"), "v1.31.14")
	equal(t, "version", newer.want(200, "GET", "/version", "").get("minor"), "32")

	const path = "/api/v1/namespaces/default/configmaps"
	created := older.want(201, "POST", path, `{"metadata":{"name":"a"},"data":{"k":"v"}}`)
	read := newer.want(200, "GET", path+"/a", "")
	equal(t, "object", read.object, created.object)
}

// Every row is one that a real release answers the same way.
func TestWhatEachVersionServes(t *testing.T) {
	c := start(t, Options{Versions: []string{"v1.24.17", "1.31.14", "1.32.13", "1.32.0"}})
	names := map[string]*client{}
	for _, s := range c.Servers() {
		names[strings.TrimPrefix(s.Name, "kube-apiserver-")] = newClient(t, c, s)
	}
	f := func(path, want string) {
		t.Helper()
		var got []string
		for name, client := range names {
			r := client.do("GET", path, "")
			if r.code == http.StatusOK {
				got = append(got, name)
			} else if r.code != http.StatusNotFound || r.text != "404 page not found\n" {
				t.Errorf("%s of %s: %d %q, want kube-apiserver's plain 404", path, name, r.code, r.text)
			}
		}
		slices.Sort(got)
		if all := strings.Join(got, " "); all != want {
			t.Errorf("%s is served by %q, want %q", path, all, want)
		}
	}

	f("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", "1.31 1.32 1.32-2")
	f("/apis/flowcontrol.apiserver.k8s.io/v1beta3/flowschemas", "1.31")
	f("/apis/policy/v1beta1/poddisruptionbudgets", "1.24")
	f("/apis/batch/v1beta1/cronjobs", "1.24")
	f("/apis/batch/v1/cronjobs", "1.24 1.31 1.32 1.32-2")
	f("/apis/myapps.example.com/v1beta1/customresources", "1.24 1.31 1.32 1.32-2")
	f("/apis/myapps.example.com/v1alpha1/customresources", "")
	f("/apis/apps/v1/namespaces/default/nothings", "")
	f("/nothing", "")
}

// An object that one version wrote is read in the other by its new apiVersion.
func TestVersionsShareObjects(t *testing.T) {
	older, newer := clients(t)
	const spec = `,"metadata":{"name":"f"},"spec":{"matchingPrecedence":7,"priorityLevelConfiguration":{"name":"exempt"}}}`
	older.want(201, "POST", "/apis/flowcontrol.apiserver.k8s.io/v1beta3/flowschemas", `{"apiVersion":"flowcontrol.apiserver.k8s.io/v1beta3","kind":"FlowSchema"`+spec)
	r := newer.want(200, "GET", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/f", "")
	equal(t, "apiVersion", r.get("apiVersion"), "flowcontrol.apiserver.k8s.io/v1")
	equal(t, "spec", r.get("spec.matchingPrecedence"), 7)
}

func TestStopAndStart(t *testing.T) {
	older, newer := clients(t)
	url := older.server.URL()
	older.want(201, "POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"a"}}`)
	watch := openWatch(t, older, "/api/v1/configmaps?watch=true&resourceVersion=0")
	watch.next("ADDED", "a")

	older.server.Stop()
	older.server.Stop() // twice is once
	if _, err := io.ReadAll(watch.body); err == nil {
		t.Error("the watch ended cleanly, want a broken connection")
	}
	response, err := older.http.Do(older.request("GET", "/readyz", ""))
	if err == nil {
		_ = response.Body.Close()
		t.Fatal("a stopped server answers")
	}
	newer.want(200, "GET", "/readyz", "")

	if err := older.server.Start(); err != nil {
		t.Fatal(err)
	}
	equal(t, "URL", older.server.URL(), url)
	older.want(200, "GET", "/api/v1/namespaces/default/configmaps/a", "")
}

func TestHealth(t *testing.T) {
	older, _ := clients(t)
	for _, path := range []string{"/readyz", "/livez", "/healthz"} {
		equal(t, path, older.want(200, "GET", path, "").text, "ok")
	}
	older.server.SetReady(false)
	older.want(500, "GET", "/readyz", "")
	older.want(200, "GET", "/livez", "")
	older.want(200, "GET", "/api/v1/namespaces", "")
	older.server.SetReady(true)
	older.want(200, "GET", "/readyz", "")
}

func TestTokens(t *testing.T) {
	c := start(t, Options{Tokens: map[string]string{"secret": "alice"}})
	alice := newClient(t, c, c.Servers()[0])
	alice.want(200, "GET", "/api/v1/namespaces", "", "Authorization: Bearer secret")
	r := alice.want(401, "GET", "/api/v1/namespaces", "", "Authorization: Bearer wrong")
	equal(t, "reason", r.get("reason"), "Unauthorized")
	alice.want(401, "GET", "/api/v1/namespaces", "")
	var users []string
	for _, r := range alice.server.Requests() {
		users = append(users, r.User)
	}
	equal(t, "users", users, []string{"alice", "system:anonymous", "system:anonymous"})
}

func TestRequests(t *testing.T) {
	older, newer := clients(t)
	older.want(200, "GET", "/api/v1/pods?limit=5", "", "User-Agent: test/1", "Accept: application/json")
	older.want(404, "DELETE", "/api/v1/namespaces/default/pods/x", "", "User-Agent: test/1")
	got := older.server.Requests()
	want := []Request{
		{Method: "GET", Target: "/api/v1/pods?limit=5", User: "system:anonymous", Agent: "test/1", Accept: "application/json", Code: 200},
		{Method: "DELETE", Target: "/api/v1/namespaces/default/pods/x", User: "system:anonymous", Agent: "test/1", Code: 404},
	}
	equal(t, "requests", got, want)
	equal(t, "the other server's", len(newer.server.Requests()), 0)
}

func TestStartErrors(t *testing.T) {
	f := func(opts Options, want string) {
		t.Helper()
		c, err := Start(opts)
		if err == nil {
			_ = c.Close()
			t.Fatalf("Start(%+v) works", opts)
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Start(%+v): %v, want %q in it", opts, err, want)
		}
	}

	f(Options{Versions: []string{"1.31.14", "new"}}, `cannot start a server of version "new": want one like 1.32.13`)
	f(Options{Dir: "/nonexistent"}, "cannot write the CA certificate")
}

func TestCAFile(t *testing.T) {
	dir := t.TempDir()
	c := start(t, Options{Dir: dir})
	data, err := os.ReadFile(c.CAFile())
	if err != nil || !bytes.Equal(data, c.CAPEM()) {
		t.Errorf("CAFile holds other bytes than CAPEM: %v", err)
	}
	temporary, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := temporary.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(temporary.CAFile()); !os.IsNotExist(err) {
		t.Errorf("after Close the CA file is still there: %v", err)
	}
	if err := temporary.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

func TestApplyErrors(t *testing.T) {
	c := start(t, Options{})
	f := func(manifests, want string) {
		t.Helper()
		err := c.Apply([]byte(manifests))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Apply(%q): %v, want %q in it", manifests, err, want)
		}
	}

	f("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\nkind: [", "cannot apply document 2: not YAML")
	f("apiVersion: v1\nkind: Nothing", "cannot apply document 1: there is no kind /v1, Kind=Nothing")
	f("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndate: {}", `unknown field "date"`)
	f("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: A}", "metadata.name: Invalid value")
}
