package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// watchStream reads the events of a watch.
type watchStream struct {
	t       *testing.T
	body    io.ReadCloser
	decoder *json.Decoder
}

type received struct {
	Type   string         `json:"type"`
	Object map[string]any `json:"object"`
}

func openWatch(t *testing.T, c *client, target string, headers ...string) *watchStream {
	t.Helper()
	response, err := c.http.Do(c.request("GET", target, "", headers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != 200 {
		data, _ := io.ReadAll(response.Body)
		t.Fatalf("GET %s: %d %s", target, response.StatusCode, data)
	}
	return &watchStream{t: t, body: response.Body, decoder: json.NewDecoder(response.Body)}
}

func (w *watchStream) event() received {
	w.t.Helper()
	var e received
	if err := w.decoder.Decode(&e); err != nil {
		w.t.Fatalf("no further event: %v", err)
	}
	return e
}

// next checks the type and the name of the next event's object.
func (w *watchStream) next(typ, name string) map[string]any {
	w.t.Helper()
	e := w.event()
	meta, _ := e.Object["metadata"].(map[string]any)
	if got := fmt.Sprint(meta["name"]); e.Type != typ || got != name {
		w.t.Fatalf("event %s %s, want %s %s", e.Type, got, typ, name)
	}
	return e.Object
}

func (w *watchStream) end() {
	w.t.Helper()
	var e received
	if err := w.decoder.Decode(&e); err != io.EOF {
		w.t.Fatalf("event %v, error %v, want the end", e, err)
	}
}

const configMaps = "/api/v1/namespaces/default/configmaps"

func (c *client) put(name, body string) {
	c.t.Helper()
	const query = "?fieldManager=test"
	c.do("PATCH", configMaps+"/"+name+query, `{"apiVersion":"v1","kind":"ConfigMap",`+body+`}`, "Content-Type: application/apply-patch+yaml")
}

func TestWatchFromARevision(t *testing.T) {
	older, newer := clients(t)
	older.put("a", `"data":{"k":"1"}`)
	revision := fmt.Sprint(older.want(200, "GET", configMaps, "").get("metadata.resourceVersion"))
	watch := openWatch(t, older, configMaps+"?watch=1&resourceVersion="+revision)

	newer.put("a", `"data":{"k":"2"}`)
	newer.put("b", `"data":{}`)
	newer.want(201, "POST", "/api/v1/namespaces/kube-system/configmaps", `{"metadata":{"name":"elsewhere"}}`)
	newer.want(200, "DELETE", configMaps+"/a", "")

	obj := watch.next("MODIFIED", "a")
	equal(t, "data", obj["data"], map[string]any{"k": "2"})
	equal(t, "kind", obj["kind"], "ConfigMap")
	watch.next("ADDED", "b")
	watch.next("DELETED", "a")
}

func TestWatchStartsWithWhatIsThere(t *testing.T) {
	older, _ := clients(t)
	older.put("b", `"data":{}`)
	older.put("a", `"data":{}`)
	watch := openWatch(t, older, configMaps+"?watch=true")
	watch.next("ADDED", "a")
	watch.next("ADDED", "b")
	older.put("c", `"data":{}`)
	watch.next("ADDED", "c")
}

// An object that comes to match a selector is added, one that no longer does is
// deleted.
func TestWatchWithSelector(t *testing.T) {
	older, _ := clients(t)
	older.put("a", `"metadata":{"labels":{"app":"x"}}`)
	watch := openWatch(t, older, configMaps+"?watch=1&labelSelector=app%3Dx")
	watch.next("ADDED", "a")
	older.put("b", `"metadata":{"labels":{"app":"y"}}`)
	older.put("b", `"metadata":{"labels":{"app":"x"}}`)
	watch.next("ADDED", "b")
	older.put("b", `"metadata":{"labels":{"app":"y"}}`)
	gone := watch.next("DELETED", "b")
	equal(t, "labels of the last state that matched", gone["metadata"].(map[string]any)["labels"], map[string]any{"app": "x"})

	named := openWatch(t, older, configMaps+"?watch=1&fieldSelector=metadata.name%3Da")
	named.next("ADDED", "a")
	older.want(200, "DELETE", configMaps+"/b", "")
	older.want(200, "DELETE", configMaps+"/a", "")
	named.next("DELETED", "a")
}

func TestWatchEndsWithABookmark(t *testing.T) {
	older, _ := clients(t)
	older.put("a", `"data":{}`)
	watch := openWatch(t, older, configMaps+"?watch=1&allowWatchBookmarks=true&timeoutSeconds=1")
	added := watch.next("ADDED", "a")
	mark := watch.next("BOOKMARK", "<nil>")
	equal(t, "kind", mark["kind"], "ConfigMap")
	equal(t, "revision", mark["metadata"].(map[string]any)["resourceVersion"], added["metadata"].(map[string]any)["resourceVersion"])
	watch.end()
}

func TestWatchTooOld(t *testing.T) {
	c := start(t, Options{})
	client := newClient(t, c, c.Servers()[0])
	for range maxChanges + 1 {
		_, err := c.store.write(crdResource, "", "x", func(*unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return &unstructured.Unstructured{Object: map[string]any{}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	watch := openWatch(t, client, configMaps+"?watch=1&resourceVersion=2")
	e := watch.event()
	equal(t, "type", e.Type, "ERROR")
	equal(t, "code", e.Object["code"], 410)
	equal(t, "reason", e.Object["reason"], "Expired")
	watch.end()
}

// Newer clients list and watch in one request; 1.31 refuses that and they fall
// back.
func TestWatchSendsInitialEvents(t *testing.T) {
	older, newer := clients(t)
	older.put("a", `"data":{}`)
	const query = "?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	r := older.want(422, "GET", configMaps+query, "")
	equal(t, "message", r.get("message"), `ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled`)

	watch := openWatch(t, newer, configMaps+query)
	watch.next("ADDED", "a")
	mark := watch.next("BOOKMARK", "<nil>")
	equal(t, "annotations", mark["metadata"].(map[string]any)["annotations"], map[string]any{"k8s.io/initial-events-end": "true"})
}

func TestWatchAsTable(t *testing.T) {
	older, _ := clients(t)
	older.put("a", `"data":{}`)
	watch := openWatch(t, older, configMaps+"?watch=1", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io")
	first := watch.event()
	equal(t, "kind", first.Object["kind"], "Table")
	if first.Object["columnDefinitions"] == nil {
		t.Error("the first event has no columns")
	}
	older.put("b", `"data":{}`)
	second := watch.event()
	if second.Object["columnDefinitions"] != nil {
		t.Error("the second event names the columns again")
	}
	row := second.Object["rows"].([]any)[0].(map[string]any)
	equal(t, "cell", row["cells"].([]any)[0], "b")
	equal(t, "object", row["object"].(map[string]any)["kind"], "PartialObjectMetadata")
}

func TestLogs(t *testing.T) {
	older, _ := clients(t)
	older.want(201, "POST", "/api/v1/namespaces/default/pods", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	equal(t, "log", older.want(200, "GET", "/api/v1/namespaces/default/pods/p/log", "").text, "p line 1\np line 2\np line 3\n")
	older.want(404, "GET", "/api/v1/namespaces/default/pods/q/log", "")

	response, err := older.http.Do(older.request("GET", "/api/v1/namespaces/default/pods/p/log?follow=true", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := make([]byte, len("p line 1\n")*4) // one more than there are without follow
	if _, err := io.ReadFull(response.Body, lines); err != nil {
		t.Errorf("%v after %q", err, lines)
	}
}
