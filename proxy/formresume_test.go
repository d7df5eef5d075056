package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	batchv1beta1 "k8s.io/api/batch/v1beta1"
)

// A converted watch in protobuf goes on from one server to another as one in JSON
// does, with whole events only.
func TestProtobufWatchMoves(t *testing.T) {
	h := newHistory()
	a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
	at := func(version string, rv uint64) string {
		return strings.Replace(cronDoc(version), `"7"`, fmt.Sprintf(`"%d"`, rv), 1)
	}
	for _, server := range []*watchServer{a, b} {
		server.serves = []served{{"batch", "v1", "cronjobs", "CronJob"}}
		server.dialect.write = func(c change) string { return `{"type":"` + c.kind + `","object":` + at("v1", c.rv) + "}\n" }
	}
	files := map[string]string{"turn.route.cel": inTurn["turn.route.cel"]}
	for name, text := range cronPolicies["programs"] {
		files[name] = text
	}
	s := raise(t, setting{policies: files}, a.recorder, b.recorder)
	w := s.watch("/apis/batch/v1beta1/cronjobs?watch=1&resourceVersion=7", "Accept: "+protobufType)
	for i := range uint64(4) {
		server := []*watchServer{a, b}[i%2]
		server.watching(int(i/2) + 1)
		h.add(10+i, "MODIFIED", "c")
		w.want(frameOf(t, "MODIFIED", inProtobuf(t, &batchv1beta1.CronJob{}, at("v1beta1", 10+i))))
		server.end(int(i/2)+1, chunked(`{"type":"ADDED","object":{"half":`)+" + "+[]string{rst, lastChunk}[i%2])
	}
}

// So does one whose next server has the client's version, or has it no more: there the
// events come in protobuf, here in JSON.
func TestProtobufWatchMovesBetweenVersions(t *testing.T) {
	h := newHistory()
	a, b := serveWatches(t, "a", h), serveWatches(t, "b", h)
	at := func(version string, rv uint64) string {
		return strings.Replace(cronDoc(version), `"7"`, fmt.Sprintf(`"%d"`, rv), 1)
	}
	event := func(rv uint64) string {
		return frameOf(t, "MODIFIED", inProtobuf(t, &batchv1beta1.CronJob{}, at("v1beta1", rv)))
	}
	a.serves = []served{{"batch", "v1", "cronjobs", "CronJob"}}
	a.dialect.write = func(c change) string { return `{"type":"` + c.kind + `","object":` + at("v1", c.rv) + "}\n" }
	b.serves = []served{{"batch", "v1beta1", "cronjobs", "CronJob"}}
	b.dialect.contentType = protobufType + ";stream=watch"
	b.dialect.write = func(c change) string { return event(c.rv) }
	s := raise(t, setting{policies: cronPolicies["programs"]}, a.recorder, b.recorder)
	w := s.watch("/apis/batch/v1beta1/cronjobs?watch=1&resourceVersion=7", "Accept: "+protobufType+";stream=watch")
	for i := range uint64(4) {
		server := []*watchServer{b, a}[i%2]
		server.watching(int(i/2) + 1)
		h.add(10+i, "MODIFIED", "c")
		w.want(event(10 + i))
		server.end(int(i/2)+1, lastChunk)
	}
}
