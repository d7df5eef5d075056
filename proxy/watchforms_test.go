package proxy_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	cborserializer "k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mixed-version-proxy/mvp/proxy"
)

// tables is how a server answers as=Table.
var tables = dialect{"application/json", func(c change) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"%d"},"columnDefinitions":null,`+
		`"rows":[{"cells":[%q],"object":{"kind":"PartialObjectMetadata","metadata":{"name":%[3]q,"resourceVersion":"5"}}}]}}`+"\n", c.kind, c.rv, c.name)
}}

// protoEvents writes events as kube-apiserver does in protobuf, with its own code.
func protoEvents(t testing.TB) dialect {
	return dialect{"application/vnd.kubernetes.protobuf;stream=watch", func(c change) string {
		var object runtime.Object = &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Name: c.name, ResourceVersion: fmt.Sprint(c.rv), Labels: map[string]string{"a": "b"}},
			Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		kind := c.kind
		switch c.kind {
		case "INITIAL":
			kind = "BOOKMARK"
			object.(*corev1.Pod).Annotations = map[string]string{"k8s.io/initial-events-end": "true", "x": "y"}
		case "ERROR":
			object = &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Message: c.name, Code: int32(c.rv)}
		}
		var raw, event bytes.Buffer
		if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &raw); err != nil {
			t.Fatal(err)
		}
		out := &metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: raw.Bytes()}}
		if err := protobuf.NewRawSerializer(scheme.Scheme, scheme.Scheme).Encode(out, &event); err != nil {
			t.Fatal(err)
		}
		return string(binary.BigEndian.AppendUint32(nil, uint32(event.Len()))) + event.String()
	}}
}

// cborEvents writes events as kube-apiserver does in CBOR, with its own code.
func cborEvents(t testing.TB) dialect {
	return dialect{"application/cbor-seq", func(c change) string {
		metadata := map[string]any{"name": c.name, "resourceVersion": fmt.Sprint(c.rv)}
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": map[string]any{"n": 1.0}}}
		kind := c.kind
		switch c.kind {
		case "INITIAL":
			kind = "BOOKMARK"
			metadata["annotations"] = map[string]any{"k8s.io/initial-events-end": "true", "x": "y"}
		case "ERROR":
			object.Object = map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": c.name, "code": int64(c.rv)}
		}
		serializer := cborserializer.NewSerializer(scheme.Scheme, scheme.Scheme)
		var raw, event bytes.Buffer
		if err := serializer.Encode(object, &raw); err != nil {
			t.Fatal(err)
		}
		if err := serializer.Encode(&metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: raw.Bytes()}}, &event); err != nil {
			t.Fatal(err)
		}
		return event.String()
	}}
}

// Watches in other forms go on as well, at every byte.
func TestWatchDialects(t *testing.T) {
	for name, d := range map[string]dialect{"protobuf": protoEvents(t), "CBOR": cborEvents(t), "table": tables} {
		t.Run(name, func(t *testing.T) {
			changes := []change{{10, "ADDED", "p"}, {11, "MODIFIED", "p"}, {12, "DELETED", "p"}}
			h := newHistory()
			wire := ""
			for _, c := range changes {
				h.add(c.rv, c.kind, c.name)
				wire += chunked(d.write(c))
			}
			head := len(head200 + "Content-Type: " + d.contentType + "\r\nTransfer-Encoding: chunked\r\n\r\n")
			a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
			a.dialect, b.dialect = d, d
			s := watchStage(t, proxy.Config{}, a, b)
			for cut := 0; cut <= len(wire); cut += 3 {
				a.set(func(a *watchServer) { a.wire = func(int) (int, string) { return head + cut, rst } })
				w := s.in(t).watch(podsAfter + "7")
				w.want(d.events(changes...))
				_ = w.conn.Close()
			}
		})
	}
}

// The end of the initial events, bookmarks and a history that is gone are seen in
// protobuf and CBOR, too.
func TestWatchBinary(t *testing.T) {
	t.Run("protobuf", func(t *testing.T) { checkBinaryWatch(t, protoEvents(t)) })
	t.Run("CBOR", func(t *testing.T) { checkBinaryWatch(t, cborEvents(t)) })
}

func checkBinaryWatch(t *testing.T, d dialect) {
	t.Helper()
	h := newHistory()
	h.add(10, "ADDED", "p")
	a, b, c := serveWatches(t, "a", h), serveWatches(t, "b", h), serveWatches(t, "c", h)
	for _, server := range []*watchServer{a, b, c} {
		server.dialect = d
	}
	b.oldest = 50
	s := watchStage(t, proxy.Config{}, a, b, c)
	w := s.watch("/api/v1/pods?watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	w.want(d.events(change{10, "ADDED", "p"}, mark(10, true)))
	a.bookmark(1, 20)
	w.want(d.write(mark(20, false)))
	a.end(1, rst)
	c.watching(1)
	h.add(51, "ADDED", "q")
	w.want(d.write(change{51, "ADDED", "q"}))
	sameList(t, "c", c.watches(), "/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=20")
}

// A stream that is no watch's passes as it comes, and breaks off as it does.
func TestWatchThatIsNotUnderstood(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": "<event>\n", "no objects": "[1]\n[2]\n", "no events": `{"a":1}` + "\n" + `{"b":`, "an event, then none": jsonEvents.write(change{9, "ADDED", "p"}) + "x",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
			s := watchStage(t, proxy.Config{}, a, b)
			w := s.watch(podsAfter + "7")
			a.watching(1).extra <- chunked(text)
			w.want(text)
			a.end(1, rst)
			if rest, err := io.ReadAll(w.in); err == nil || len(rest) > 0 {
				t.Errorf("the watch went on with %q and ended with %v", rest, err)
			}
			sameList(t, "b", b.watches())
		})
	}
}

// JSON is understood however it is laid out.
func TestWatchLayouts(t *testing.T) {
	object := `"object":{"metadata":{"resourceVersion":"10"}}`
	for name, text := range map[string]string{
		"no newline":          `{"type":"ADDED",` + object + `}`,
		"several lines":       "{\n \"type\": \"ADDED\",\n " + object + "\n}\n",
		"one after the other": `{"type":"ADDED","object":{"metadata":{"resourceVersion":"9"}}}{"type":"ADDED",` + object + `}`,
		"CR LF":               `{"type":"ADDED",` + object + "}\r\n",
		"blank lines":         "\n\n" + `{"type":"ADDED",` + object + "}\n\n",
		"the object first":    `{` + object + `,"type":"ADDED"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
			s := watchStage(t, proxy.Config{}, a, b)
			w := s.watch(podsAfter + "7")
			a.watching(1).extra <- chunked(text)
			w.want(text)
			a.end(1, rst)
			b.watching(1)
			if !strings.HasSuffix(text, "\n") {
				w.want("\n")
			}
			sameList(t, "b", b.watches(), podsAfter+"10&allowWatchBookmarks=true")
		})
	}
}

// A watch goes on by conversion where the server that is left needs one, and without
// where it does not.
func TestWatchConverted(t *testing.T) {
	event := func(version, field string, rv int) string {
		return fmt.Sprintf(`{"type":"MODIFIED","object":{"apiVersion":"acme.io/%s","kind":"Thing","metadata":{"name":"t","resourceVersion":"%d"},"spec":{"n":1,%q:1.50}}}`+"\n", version, rv, field)
	}
	h := newHistory()
	a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
	a.serves = []served{{"acme.io", "v1beta1", "things", "Thing"}}
	b.serves = things
	a.dialect.write = func(c change) string { return event("v1beta1", "old", int(c.rv)) }
	b.dialect.write = func(c change) string {
		if c.kind == "BOOKMARK" {
			return jsonEvents.write(c)
		}
		return event("v1", "new", int(c.rv))
	}
	s := raise(t, setting{policies: map[string]string{"things.yaml": rules, "turn.route.cel": inTurn["turn.route.cel"]}}, a.recorder, b.recorder)
	w := s.watch("/apis/acme.io/v1beta1/things?watch=1&resourceVersion=7", "Accept: application/json")
	want := func(rv int) {
		t.Helper()
		h.add(uint64(rv), "MODIFIED", "t")
		line, err := w.in.ReadString('\n')
		if err != nil || !sameJSON(line, event("v1beta1", "old", rv)) {
			t.Fatalf("got %s, %v", line, err)
		}
	}
	want(10)
	a.end(1, fin)
	b.watching(1)
	want(11)
	b.bookmark(1, 12)
	b.end(1, chunked(event("v1", "new", 13)[:30])+" + "+rst)
	a.watching(2)
	want(13)
	sameList(t, "a", a.watches(), "/apis/acme.io/v1beta1/things?watch=1&resourceVersion=7&allowWatchBookmarks=true",
		"/apis/acme.io/v1beta1/things?watch=1&resourceVersion=12&allowWatchBookmarks=true")
	sameList(t, "b", b.watches(), "/apis/acme.io/v1/things?watch=1&resourceVersion=10&allowWatchBookmarks=true")
}

// A converted watch goes on as a plain one does.
func TestWatchConvertedMoves(t *testing.T) {
	h := newHistory()
	a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
	for _, server := range []*watchServer{a, b} {
		server.serves = things
		server.dialect.write = func(c change) string {
			return `{"type":"` + c.kind + `","object":` + strings.Replace(newThing, `"7"`, fmt.Sprintf(`"%d"`, c.rv), 1) + "}\n"
		}
	}
	s := raise(t, setting{policies: map[string]string{"things.yaml": rules, "turn.route.cel": inTurn["turn.route.cel"]}}, a.recorder, b.recorder)
	w := s.watch("/apis/acme.io/v1beta1/things?watch=1&resourceVersion=7")
	for i := range uint64(10) {
		server := []*watchServer{a, b}[i%2]
		server.watching(int(i/2) + 1)
		h.add(10+i, "ADDED", "t")
		line, err := w.in.ReadString('\n')
		if err != nil || !sameJSON(line, `{"type":"ADDED","object":`+strings.Replace(oldThing, `"7"`, fmt.Sprintf(`"%d"`, 10+i), 1)+"}") {
			t.Fatalf("got %s, %v", line, err)
		}
		server.end(int(i/2)+1, chunked(`{"type":"ADDED","object":{"half":`)+" + "+[]string{rst, lastChunk}[i%2])
	}
}

// A watch is compressed for nobody where its events must be seen.
func TestWatchIsNotCompressed(t *testing.T) {
	h := newHistory()
	a := serveWatches(t, "a", h)
	s := watchStage(t, proxy.Config{}, a)
	const initial = "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	s.watch(initial, "Accept-Encoding: gzip")
	a.watching(1)
	s.watch(podsAfter+"7", "Accept-Encoding: gzip")
	a.watching(2)
	for i, want := range []string{"identity", "gzip"} {
		if q := a.got()[i]; !strings.Contains(q.raw, "Accept-Encoding: "+want+"\r\n") {
			t.Errorf("want %s: %q", want, q.raw)
		}
	}
}

// A watch by WebSocket is left alone.
func TestWatchByWebSocket(t *testing.T) {
	h := newHistory()
	a := serveWatches(t, "a", h)
	a.say = func(request) string { return respond(400, "application/json", "{}") }
	s := watchStage(t, proxy.Config{}, a)
	got, err := s.ask("GET " + podsAfter + "7 HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if err != nil || got.code != http.StatusBadRequest {
		t.Fatalf("answered %d, %v", got.code, err)
	}
	sameList(t, "a", a.watches(), podsAfter+"7")
}
