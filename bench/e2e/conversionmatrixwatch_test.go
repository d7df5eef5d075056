package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	protobufs "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/client-go/kubernetes/scheme"
)

// A watchCell is a watch of objects, and what somebody does meanwhile in the server's
// version. Then that somebody makes one more change, which all watches see; so they end.
type watchCell struct {
	name   string
	query  string // RV is the version of the list before anything is done
	accept string
	side   string // the one of MVP's that selects by what it converts; "" for all

	// changes are merge patches by name of a gadget; "" deletes it.
	changes [][2]string
}

var someChanges = [][2]string{
	{"a", `{"spec":{"requestTimeoutSeconds":31}}`},
	{"b", `{"metadata":{"labels":{"stage":"production"}},"spec":{"mode":"stateless","requestTimeoutSeconds":30}}`},
	{"a", `{"metadata":{"labels":{"stage":"test"}},"spec":{"mode":"stateful"}}`},
	{"c", ""},
	{"b", ""},
}

const initialEvents = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

var gadgetWatches = []watchCell{
	{name: "watch from a version", query: "&resourceVersion=RV", changes: someChanges},
	{name: "watch from now", query: "&resourceVersion=0", changes: someChanges},
	{name: "watch with initial events", query: initialEvents, changes: someChanges},
	{name: "watch by label", side: "rules", query: "&resourceVersion=RV&labelSelector=stage%3Dprod", changes: someChanges},
	{name: "watch without a label", side: "rules", query: "&resourceVersion=RV&labelSelector=stage%21%3Dtest", changes: someChanges},
	{name: "watch by renamed field", side: "rules", query: "&resourceVersion=RV&fieldSelector=spec.timeout%3D30", changes: someChanges},
	{name: "watch of one", query: "&resourceVersion=RV&fieldSelector=metadata.name%3Da", changes: someChanges[:3]},
	{name: "watch of metadata", query: "&resourceVersion=RV", accept: acceptLines["metadata"], changes: someChanges},
	{name: "watch of a table", query: "&resourceVersion=RV", accept: acceptLines["table"], changes: someChanges},
	{name: "watch of initial events by label", side: "rules", query: initialEvents + "&labelSelector=stage%3Dprod", changes: someChanges},
	{name: "watch in YAML", query: "&resourceVersion=RV", accept: "application/yaml"},
	{name: "watch in protobuf", query: "&resourceVersion=RV", accept: acceptLines["protobuf"]},
	{name: "watch in a stream", query: "&resourceVersion=RV", accept: "application/json;stream=watch", changes: someChanges},
	{name: "watch from a version that is none", query: "&resourceVersion=x"},
	{name: "watch by a wrong label", query: "&resourceVersion=RV&labelSelector=%3D"},
	{name: "watch by an unknown field", query: "&resourceVersion=RV&fieldSelector=spec.owner%3Do"},
	{name: "watch with a wrong match", query: "&resourceVersion=RV&resourceVersionMatch=Exact"},
}

// watches runs a watch and returns its answer, with the events decoded.
func (s *side) watches(t *testing.T, c watchCell) map[string]any {
	t.Helper()
	s.changed = true
	s.prepare(t, s.kind.watched)
	s.changed = true
	list := s.ok(t, http.MethodGet, s.all(), "", "")
	query := strings.NewReplacer("NAMESPACE", s.mark, "RV", list["metadata"].(map[string]any)["resourceVersion"].(string)).Replace(c.query)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.collection(s.url, s.kind.old)+"?watch=1"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.accept != "" {
		req.Header.Set("Accept", c.accept)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer := map[string]any{"code": resp.StatusCode, "contentType": resp.Header.Get("Content-Type"), "warnings": warningsOf(resp.Header)}
	s.change(t, c.changes)
	if c.changes != nil {
		s.change(t, [][2]string{{"a", s.kind.last}})
	}
	answer["events"] = s.events(t, resp, c)
	return answer
}

func (s *side) change(t *testing.T, changes [][2]string) {
	t.Helper()
	for _, change := range changes {
		name, patch := change[0], change[1]
		if patch == "" {
			s.ok(t, http.MethodDelete, s.object(name), "", "")
			continue
		}
		s.ok(t, http.MethodPatch, s.object(name)+"?fieldManager=other", mergePatchType, patch)
	}
}

// events reads until the last change, or to the end of an answer that is no stream.
func (s *side) events(t *testing.T, resp *http.Response, c watchCell) []any {
	t.Helper()
	events := []any{}
	for next := eventReader(resp); ; {
		line, err := next()
		if err != nil {
			if c.changes != nil {
				t.Fatalf("%s: the watch ended after %s: %v", s.name, shown(events), err)
			}
			return events
		}
		event := s.normal(t, reply{resp.StatusCode, http.Header{}, line})
		if event["type"] == "BOOKMARK" && !bytes.Contains(line, []byte("initial-events-end")) {
			continue // when one comes is up to the server's clock
		}
		events = append(events, event)
		if bytes.Contains(line, []byte(`"last":"yes"`)) || event["type"] == "ERROR" {
			return events
		}
	}
}

// eventReader reads an answer in JSON or protobuf, event by event, as JSON.
func eventReader(resp *http.Response) (next func() ([]byte, error)) {
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/vnd.kubernetes.protobuf") || resp.StatusCode != http.StatusOK {
		lines := bufio.NewReader(resp.Body)
		return func() ([]byte, error) {
			line, err := lines.ReadBytes('\n')
			if len(line) > 0 {
				err = nil
			}
			return line, err
		}
	}
	frames := streaming.NewDecoder(protobufs.LengthDelimitedFramer.NewFrameReader(resp.Body), protobufs.NewRawSerializer(scheme.Scheme, scheme.Scheme))
	return func() ([]byte, error) {
		var event metav1.WatchEvent
		if _, _, err := frames.Decode(nil, &event); err != nil {
			return nil, err
		}
		object, err := asJSON("application/vnd.kubernetes.protobuf", event.Object.Raw)
		if err != nil {
			return nil, err
		}
		event.Object.Raw = object
		return json.Marshal(event)
	}
}
