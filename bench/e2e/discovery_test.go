package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
	"github.com/mixed-version-proxy/mvp/examples/demo"
)

// TestDiscovery compares every document of discovery and OpenAPI with what the
// servers say directly.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	t.Run("one server", func(t *testing.T) {
		l := startLabWith(t, controlplane.Config{Versions: []string{"1.32.13"}})
		m := l.serve(t, nil)
		testOneServer(t, m)
	})
	l := startLab(t)
	m := l.serve(t, nil)
	t.Run("union", func(t *testing.T) { testUnion(t, m) })
	t.Run("negotiation", func(t *testing.T) { testNegotiation(t, m) })
	t.Run("explain", func(t *testing.T) { testExplain(t, l) })
	if *recordServers {
		recordDocuments(t, m.lab.URL("a"), "1.31.14", m.client())
		recordDocuments(t, m.lab.URL("b"), "1.32.13", m.client())
	}
}

// Accept values of the forms that documents have.
const (
	jsonType       = "application/json"
	protobufV2Type = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
)

func aggregatedType(version string) string {
	return "application/json;g=apidiscovery.k8s.io;v=" + version + ";as=APIGroupDiscoveryList"
}

// documents is what one endpoint says, by path, with the aggregated forms under
// "/apis v2". What is not there is missing.
type documents map[string]any

// readDocuments reads all documents that the index documents lead to, but those of
// OpenAPI v3.
func readDocuments(t *testing.T, client *http.Client, url string) documents {
	t.Helper()
	docs := documents{}
	for _, path := range []string{"/api", "/apis"} {
		for _, version := range []string{"v2", "v2beta1"} {
			docs.read(t, client, url, path+" "+version, aggregatedType(version))
		}
	}
	for _, path := range []string{"/api", "/apis", "/api/v1", "/openapi/v3", "/openapi/v2", "/version"} {
		docs.read(t, client, url, path, jsonType)
	}
	for _, group := range list(docs["/apis v2"], "items") {
		name := group["metadata"].(map[string]any)["name"].(string)
		docs.read(t, client, url, "/apis/"+name, jsonType)
		for _, version := range list(group, "versions") {
			docs.read(t, client, url, "/apis/"+name+"/"+version["version"].(string), jsonType)
		}
	}
	return docs
}

func (d documents) read(t *testing.T, client *http.Client, url, name, accept string) {
	t.Helper()
	path, _, _ := strings.Cut(name, " ")
	code, _, body := get(t, client, "GET", url+path, accept)
	if code == http.StatusNotFound {
		return
	}
	var doc any
	if err := json.Unmarshal(body, &doc); err != nil || code != http.StatusOK {
		t.Fatalf("GET %s answered %d %.200s: %v", url+path, code, body, err)
	}
	d[name] = doc
}

func get(t *testing.T, client *http.Client, method, url, accept string) (int, http.Header, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, body
}

// list is the list of objects under a key.
func list(v any, key string) []map[string]any {
	object, _ := v.(map[string]any)
	values, _ := object[key].([]any)
	var out []map[string]any
	for _, value := range values {
		if o, ok := value.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// reduced makes a server's documents what MVP repeats of them: without null fields,
// and with the versions that the server serves in its unaggregated lists. It lists
// those of which there is an APIService in etcd, and an upgrade adds and removes these
// for all servers at once: some then list what only others serve, or not what they
// serve themselves.
func (d documents) reduced() documents {
	for name, doc := range d {
		withoutNulls(doc)
		for _, group := range append(list(doc, "groups"), doc.(map[string]any)) {
			if _, ok := group["preferredVersion"]; ok && strings.HasPrefix(name, "/apis") {
				d.listServed(group)
			}
		}
	}
	delete(d["/api"].(map[string]any), "serverAddressByClientCIDRs") // the address that was asked
	return d
}

// listServed makes the versions of an unaggregated group those that are served.
func (d documents) listServed(group map[string]any) {
	versions := slices.DeleteFunc(group["versions"].([]any), func(v any) bool {
		return d["/apis/"+v.(map[string]any)["groupVersion"].(string)] == nil
	})
	prefix := "/apis/" + group["name"].(string) + "/"
	for path := range d {
		version, ok := strings.CutPrefix(path, prefix)
		known := slices.ContainsFunc(versions, func(v any) bool { return v.(map[string]any)["version"] == version })
		if ok && !known {
			versions = append(versions, map[string]any{"groupVersion": strings.TrimPrefix(path, "/apis/"), "version": version})
		}
	}
	group["versions"] = versions
}

func withoutNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, e any) bool { return e == nil })
		for _, e := range v {
			withoutNulls(e)
		}
	case []any:
		for _, e := range v {
			withoutNulls(e)
		}
	}
}

// testOneServer: every document is the server's, in its order.
func testOneServer(t *testing.T, m *mvp) {
	client, direct := m.client(), m.lab.URL("a")
	var wrong []string
	if !eventually(func() bool {
		want := readDocuments(t, client, direct).reduced()
		got := readDocuments(t, client, m.url).reduced()
		wrong = nil
		for name := range want {
			if !reflect.DeepEqual(got[name], want[name]) {
				wrong = append(wrong, fmt.Sprintf("%s\n got %.2000v\nwant %.2000v", name, got[name], want[name]))
			}
		}
		return len(wrong) == 0 && len(got) == len(want)
	}) {
		t.Errorf("documents differ: %s", strings.Join(wrong, "\n"))
	}
	_, _, protobuf := get(t, client, "GET", direct+"/openapi/v2", protobufV2Type)
	if _, _, through := get(t, client, "GET", m.url+"/openapi/v2", protobufV2Type); !bytes.Equal(through, protobuf) {
		t.Errorf("OpenAPI v2 in protobuf differs")
	}
	testOpenAPIV3Documents(t, m, "a")
}

// eventually polls for a condition of servers that have just started: they still add
// to what they serve, and each document of theirs takes its own time for it.
func eventually(condition func() bool) bool {
	_, ok := polled(time.Minute, time.Second, condition)
	return ok
}

// testOpenAPIV3Documents follows every link of the index: the document is that of the
// first of the servers that has one, byte for byte.
func testOpenAPIV3Documents(t *testing.T, m *mvp, servers ...string) {
	t.Helper()
	client := m.client()
	for path, link := range openAPILinks(t, client, m.url) {
		_, header, got := get(t, client, "GET", m.url+link, jsonType)
		for _, server := range servers {
			own, ok := openAPILinks(t, client, m.lab.URL(server))[path]
			if !ok {
				continue
			}
			_, wantHeader, want := get(t, client, "GET", m.lab.URL(server)+own, jsonType)
			if link != own || !bytes.Equal(got, want) || header.Get("Etag") != wantHeader.Get("Etag") {
				t.Errorf("%s is not the document of %s under %s", link, server, own)
			}
			break
		}
	}
}

func openAPILinks(t *testing.T, client *http.Client, url string) map[string]string {
	t.Helper()
	_, _, body := get(t, client, "GET", url+"/openapi/v3", jsonType)
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal(body, &index); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{}
	for path, entry := range index.Paths {
		links[path] = entry.ServerRelativeURL
	}
	return links
}

// testUnion: every document is the union of what the two servers say, the newer
// server's where they differ.
func testUnion(t *testing.T, m *mvp) {
	client := m.client()
	var wrong []string
	settled := func() bool {
		older := readDocuments(t, client, m.lab.URL("a")).reduced()
		newer := readDocuments(t, client, m.lab.URL("b")).reduced()
		got := readDocuments(t, client, m.url).reduced()
		wrong = unlikeUnion(got, newer, older)
		return len(wrong) == 0 && older["/apis/flowcontrol.apiserver.k8s.io/v1beta3"] != nil && newer["/apis/flowcontrol.apiserver.k8s.io/v1beta3"] == nil
	}
	if !eventually(settled) {
		t.Errorf("the servers and MVP did not settle")
	}
	for _, line := range wrong[:min(len(wrong), 50)] {
		t.Error(line)
	}
	testOpenAPIV3Documents(t, m, "b", "a")
	testProtobufV2(t, client, m.url)
}

// unlikeUnion says what differs from the union of what two servers say; /version is
// the older one's.
func unlikeUnion(got, newer, older documents) (wrong []string) {
	names := map[string]bool{}
	for _, docs := range []documents{older, newer, got} {
		for name := range docs {
			names[name] = true
		}
	}
	if !reflect.DeepEqual(got["/version"], older["/version"]) {
		wrong = append(wrong, "/version is not the lower one")
	}
	delete(names, "/version")
	for name := range names {
		for _, difference := range differences(factsOf(got[name]), union(name, newer[name], older[name])) {
			wrong = append(wrong, name+": "+difference)
		}
	}
	return wrong
}

// testProtobufV2: the protobuf form is the one of the JSON form.
func testProtobufV2(t *testing.T, client *http.Client, url string) {
	t.Helper()
	_, head, text := get(t, client, "GET", url+"/openapi/v2", jsonType)
	_, protobufHead, binary := get(t, client, "GET", url+"/openapi/v2", protobufV2Type)
	want, err := openapiv2.ParseDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	var got openapiv2.Document
	if err := proto.Unmarshal(binary, &got); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(&got, want) || head.Get("Etag") != protobufHead.Get("Etag") {
		t.Errorf("OpenAPI v2 in protobuf is another document than in JSON")
	}
}

// testNegotiation: status and type of an answer are the newer server's, whatever the
// client accepts, also for HEAD.
func testNegotiation(t *testing.T, m *mvp) {
	client, direct := m.client(), m.lab.URL("b")
	accepts := []string{
		"", "*/*", jsonType, aggregatedType("v2"), aggregatedType("v2beta1"), aggregatedType("v2") + "," + jsonType,
		aggregatedType("v3") + "," + jsonType, aggregatedType("v3"), aggregatedType("v2") + ";q=0," + jsonType,
		"application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor", "text/html", "text/html,*/*;q=0.1",
		"application/json;q=0", "application/json;q=0.1,application/yaml;q=0.2", "application/json;pretty=1", "application/json;sv=v1",
		"application/json;stream=watch", "application/json;stream=x", "application/yaml;stream=watch", "application/json;as=Table;g=meta.k8s.io;v=v1",
		"application/json;as=Table;g=meta.k8s.io;v=v1,application/json", "Application/JSON", protobufV2Type,
		"application/com.github.proto-openapi.spec.v2.v1.0+protobuf,application/json;q=0.5", "nonsense",
	}
	for _, path := range []string{"/api", "/api/", "/api/v1", "/apis", "/apis/", "/apis/apps", "/apis/apps/v1", "/openapi/v2"} {
		for _, method := range []string{"GET", "HEAD"} {
			for _, accept := range accepts {
				code, header, body := get(t, client, method, m.url+path, accept)
				wantCode, wantHeader, wantBody := get(t, client, method, direct+path, accept)
				if code != wantCode || header.Get("Content-Type") != wantHeader.Get("Content-Type") {
					t.Errorf("%s %s of %q: %d %s, want %d %s", method, path, accept, code, header.Get("Content-Type"), wantCode, wantHeader.Get("Content-Type"))
				}
				if code >= 400 && !sameStatus(body, wantBody) {
					t.Errorf("%s %s of %q: %s, want %s", method, path, accept, body, wantBody)
				}
			}
		}
	}
}

func sameStatus(got, want []byte) bool {
	var a, b any
	if json.Unmarshal(got, &a) != nil || json.Unmarshal(want, &b) != nil {
		return bytes.Equal(got, want)
	}
	return reflect.DeepEqual(a, b)
}

// testExplain: a kubectl that reads OpenAPI v2 explains a kind that only the older
// server has, one that is converted, and a custom resource's old version.
func testExplain(t *testing.T, l *lab) {
	m := l.serveWith(t, map[string]string{"mvp-rules.yaml": read(t, demo.Manifests, "mvp-rules.yaml")}, "--library", "flowcontrol-v1beta3")
	for _, version := range []string{"1.20", "1.24", "1.31"} {
		k := m.kubectl(version).in(t)
		k.says("matchingPrecedence", "explain", "flowschemas.spec", "--api-version=flowcontrol.apiserver.k8s.io/v1beta3")
		k.says("minAvailable", "explain", "poddisruptionbudgets.spec", "--api-version=policy/v1beta1")
		k.says("legacyTimeout", "explain", "customresources.spec.config", "--api-version=myapps.example.com/v1alpha1")
		k.says("nodeName", "explain", "pods.spec")
	}
	// They look up in OpenAPI v2 whether a kind knows dryRun at all.
	file := manifest(t, "pdb-v1beta1.yaml")
	for _, version := range []string{"1.20", "1.24"} {
		k := m.kubectl(version).in(t)
		k.says("created (server dry run)", "apply", "--dry-run=server", "-f", file)
		k.fails("+  minAvailable: ", "diff", "-f", file) // it ends with 1 where there is a difference
	}
	m.kubectl("1.20").in(t).fails("couldn't find resource", "explain", "pods", "--api-version=v7")
}
