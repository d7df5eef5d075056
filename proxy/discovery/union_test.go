package discovery

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
)

// These tests hold what clients see against documents that real kube-apiservers of
// two versions on one etcd answered, as the end-to-end tests record them: by path,
// with the aggregated forms under "/apis v2"; of OpenAPI v2 with empty descriptions.

// recorded is all documents of one kube-apiserver.
type recorded map[string]any

func readRecorded(t testing.TB, version string) recorded {
	t.Helper()
	file, err := os.Open("testdata/servers/" + version + ".json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var docs recorded
	if err := json.NewDecoder(z).Decode(&docs); err != nil {
		t.Fatal(err)
	}
	return docs
}

// source is the server as the proxy knows it: by its aggregated documents.
func (docs recorded) source(t testing.TB, server, version string) Source {
	t.Helper()
	s := Source{Server: server, Version: "v" + version, Reachable: true}
	for _, path := range []string{"/api v2", "/apis v2"} {
		var list apidiscoveryv2.APIGroupDiscoveryList
		recode(t, docs[path], &list)
		s.Groups = append(s.Groups, list.Items...)
	}
	return s
}

func (docs recorded) openAPIV2(t testing.TB) *OpenAPIV2 {
	t.Helper()
	d, err := ParseOpenAPIV2(marshal(t, docs["/openapi/v2"]))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (docs recorded) openAPIV3(t testing.TB, server, version string) OpenAPISource {
	t.Helper()
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	recode(t, docs["/openapi/v3"], &index)
	s := OpenAPISource{Server: server, Version: "v" + version, Reachable: true, Paths: map[string]string{}}
	for path, entry := range index.Paths {
		s.Paths[path] = entry.ServerRelativeURL
	}
	return s
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func recode(t testing.TB, v, into any) {
	t.Helper()
	if err := json.Unmarshal(marshal(t, v), into); err != nil {
		t.Fatal(err)
	}
}

// withoutNulls takes null fields out: servers up to 1.33 write creationTimestamp so
// where nobody set it.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			if e == nil {
				delete(v, key)
			} else {
				withoutNulls(e)
			}
		}
	case []any:
		for _, e := range v {
			withoutNulls(e)
		}
	}
	return v
}

// servable takes out of an unaggregated list the versions that the server itself
// answers 404 for: it lists every APIService in etcd, also those that only another
// server of the control plane serves.
func (docs recorded) servable(doc any) any {
	groups, _ := asObject(doc)["groups"].([]any)
	for _, g := range append(groups, doc) {
		versions, ok := asObject(g)["versions"].([]any)
		if !ok || asObject(g)["kind"] == "APIVersions" {
			continue
		}
		asObject(g)["versions"] = slices.DeleteFunc(versions, func(v any) bool {
			_, served := docs["/apis/"+asObject(v)["groupVersion"].(string)]
			return !served
		})
	}
	return doc
}

// facts writes a document as facts, one for each value, that say where it stands; an
// element of a list by what names it instead of its place.
func facts(v any) map[string]string {
	out := map[string]string{}
	addFacts(out, "", v)
	return out
}

func addFacts(out map[string]string, at string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			addFacts(out, at+"/"+key, e)
		}
	case []any:
		for _, e := range v {
			addFacts(out, at+"/["+nameOf(e)+"]", e)
		}
	case nil:
	default:
		out[at] = fmt.Sprint(v)
	}
}

func nameOf(element any) string {
	object := asObject(element)
	for _, key := range []string{"resource", "subresource", "groupVersion", "version", "name", "clientCIDR"} {
		if name, ok := object[key].(string); ok {
			return name
		}
	}
	if metadata := asObject(object["metadata"]); metadata != nil {
		return fmt.Sprint(metadata["name"])
	}
	return fmt.Sprint(element)
}

// unionOf is what several documents say together, the first where they differ.
func unionOf(docs ...any) map[string]string {
	union := map[string]string{}
	for _, doc := range docs {
		for at, value := range facts(doc) {
			if _, known := union[at]; !known {
				union[at] = value
			}
		}
	}
	return union
}

func sameFacts(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for _, at := range slices.Sorted(maps.Keys(want)) {
		if value, ok := got[at]; !ok {
			t.Errorf("%s: lacks %s = %s", what, at, want[at])
		} else if value != want[at] {
			t.Errorf("%s: %s is %s, want %s", what, at, value, want[at])
		}
	}
	for _, at := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[at]; !ok {
			t.Errorf("%s: nobody says %s = %s", what, at, got[at])
		}
	}
}

// request is the request for a recorded document.
func requestFor(name string) Request {
	path, version, aggregated := strings.Cut(name, " ")
	req := Request{Path: path}
	if aggregated {
		req.Accept = "application/json;g=apidiscovery.k8s.io;v=" + version + ";as=APIGroupDiscoveryList"
	}
	return req
}

func isDiscovery(name string) bool { return strings.HasPrefix(name, "/api") }

// With one server behind it, every document is that server's, in its order.
func TestOneServerIsItself(t *testing.T) {
	for _, version := range []string{"1.31.14", "1.32.13"} {
		docs := readRecorded(t, version)
		m := Merge([]Source{docs.source(t, "a", version)}, nil, nil)
		for name, doc := range docs {
			if !isDiscovery(name) {
				continue
			}
			req := requestFor(name)
			req.StorageHashes = StorageHashes(marshal(t, doc))
			if name == "/api" {
				req.Host = asObject(asObject(doc)["serverAddressByClientCIDRs"].([]any)[0])["serverAddress"].(string)
			}
			var got any
			answered(t, m, req, &got)
			if want := withoutNulls(docs.servable(doc)); !reflect.DeepEqual(withoutNulls(got), want) {
				t.Errorf("%s %s\n got %v\nwant %v", version, name, got, want)
			}
		}
		if d := docs.openAPIV2(t); MergeOpenAPIV2([]OpenAPIV2Source{{"a", version, d}}) != d {
			t.Errorf("%s: OpenAPI v2 is not the server's own document", version)
		}
		var got any
		index := MergeOpenAPI([]OpenAPISource{docs.openAPIV3(t, "a", version)}, nil)
		if err := json.Unmarshal(index.Answer("").Body, &got); err != nil || !reflect.DeepEqual(got, docs["/openapi/v3"]) {
			t.Errorf("%s: the OpenAPI v3 index\n got %v\nwant %v", version, got, docs["/openapi/v3"])
		}
	}
}

// With two servers, every document is their union, field by field.
func TestTwoServersAreTheirUnion(t *testing.T) {
	oldDocs, newDocs := readRecorded(t, "1.31.14"), readRecorded(t, "1.32.13")
	m := Merge([]Source{oldDocs.source(t, "a", "1.31.14"), newDocs.source(t, "b", "1.32.13")}, nil, nil)
	names := map[string]bool{}
	for _, docs := range []recorded{oldDocs, newDocs} {
		for name := range docs {
			names[name] = isDiscovery(name) && name != "/api" // which names the client's own address
		}
	}
	for name, compared := range names {
		if !compared {
			continue
		}
		req := requestFor(name)
		req.StorageHashes = StorageHashes(marshal(t, oldDocs[name]))
		maps.Copy(req.StorageHashes, StorageHashes(marshal(t, newDocs[name])))
		var got any
		answered(t, m, req, &got)
		sameFacts(t, name, facts(got), unionOf(newDocs.servable(newDocs[name]), oldDocs.servable(oldDocs[name])))
	}
	var got any
	index := MergeOpenAPI([]OpenAPISource{oldDocs.openAPIV3(t, "a", "1.31.14"), newDocs.openAPIV3(t, "b", "1.32.13")}, nil)
	if err := json.Unmarshal(index.Answer("").Body, &got); err != nil {
		t.Fatal(err)
	}
	sameFacts(t, "the OpenAPI v3 index", facts(got), unionOf(newDocs["/openapi/v3"], oldDocs["/openapi/v3"]))
}

// The OpenAPI v2 document of two servers has what either has: operations by path,
// definitions by name, the newer server's where both have one, and the kinds of both.
func TestOpenAPIV2OfTwoServers(t *testing.T) {
	oldDocs, newDocs := readRecorded(t, "1.31.14"), readRecorded(t, "1.32.13")
	merged := MergeOpenAPIV2([]OpenAPIV2Source{
		{"a", "v1.31.14", oldDocs.openAPIV2(t)}, {"b", "v1.32.13", newDocs.openAPIV2(t)},
	})
	written, err := merged.Write()
	if err != nil {
		t.Fatal(err)
	}
	want := unionV2(asObject(newDocs["/openapi/v2"]), asObject(oldDocs["/openapi/v2"]))
	got := answeredV2(t, written, "application/json")
	for _, section := range slices.Sorted(maps.Keys(want)) {
		for key, value := range asObject(want[section]) {
			if !reflect.DeepEqual(asObject(got[section])[key], value) {
				t.Errorf("%s of %s\n got %v\nwant %v", key, section, asObject(got[section])[key], value)
			}
		}
		if len(asObject(got[section])) != len(asObject(want[section])) {
			t.Errorf("%s has %d entries, want %d", section, len(asObject(got[section])), len(asObject(want[section])))
		}
	}
	if len(got) != len(want) {
		t.Errorf("the document has %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}

	answer, _ := written.Answer("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", "", "")
	var document openapiv2.Document
	if err := proto.Unmarshal(answer.Body, &document); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, d := range document.Definitions.AdditionalProperties {
		names[d.Name] = true
	}
	for name := range asObject(want["definitions"]) {
		if !names[name] {
			t.Errorf("the protobuf form lacks %s", name)
		}
	}
	if len(names) != len(asObject(want["definitions"])) || len(document.Paths.Path) != len(asObject(want["paths"])) {
		t.Errorf("the protobuf form has %d definitions and %d paths", len(names), len(document.Paths.Path))
	}
}

// unionV2 does on decoded documents, with maps, what merging does on their text.
func unionV2(newer, older map[string]any) map[string]any {
	for name, value := range older {
		section := asObject(newer[name])
		if section == nil {
			if _, ok := newer[name]; !ok {
				newer[name] = value
			}
			continue
		}
		for key, entry := range asObject(value) {
			switch have := asObject(section[key]); {
			case name == "info":
			case have == nil:
				section[key] = entry
			case name == "paths":
				for operation, e := range asObject(entry) {
					if _, ok := have[operation]; !ok {
						have[operation] = e
					}
				}
			case name == "definitions":
				kinds, _ := have[extensionGVK].([]any)
				more, _ := asObject(entry)[extensionGVK].([]any)
				for _, k := range more {
					if !slices.ContainsFunc(kinds, func(o any) bool { return reflect.DeepEqual(o, k) }) {
						kinds = append(kinds, k)
						have[extensionGVK] = kinds
					}
				}
			}
		}
	}
	return newer
}

func answeredV2(t testing.TB, d *OpenAPIV2Document, accept string) map[string]any {
	t.Helper()
	a, ok := d.Answer(accept, "", "")
	if !ok {
		t.Fatalf("Accept: %s is not answered", accept)
	}
	var got map[string]any
	if err := json.Unmarshal(a.Body, &got); err != nil {
		t.Fatal(err)
	}
	return got
}
