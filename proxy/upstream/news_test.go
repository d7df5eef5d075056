package upstream

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
)

// crdOf makes a CRD of "v1=schema" for each version that is served, "-v1=schema" for one
// that is not; nil of "". One that begins with "?" is not established.
func crdOf(text string) *CRD {
	if text == "" {
		return nil
	}
	text, waiting := strings.CutPrefix(text, "?")
	crd := &CRD{Group: "example.com", Plural: "widgets", Versions: map[string]CRDVersion{}, established: !waiting}
	for part := range strings.FieldsSeq(text) {
		name, schema, _ := strings.Cut(part, "=")
		name, off := strings.CutPrefix(name, "-")
		crd.Versions[name] = CRDVersion{Served: !off, Schema: json.RawMessage(schema)}
	}
	return crd
}

// serving is a state that has the versions of widgets in discovery and, with a hash, in
// OpenAPI.
func serving(crd *CRD, discovery, openAPI string) *State {
	s := &State{CRDs: map[string]*CRD{}, OpenAPIV3: map[string]string{}}
	if crd != nil {
		s.CRDs[widgets] = crd
	}
	group := apidiscoveryv2.APIGroupDiscovery{}
	group.Name = "example.com"
	for v := range strings.FieldsSeq(discovery) {
		group.Versions = append(group.Versions, apidiscoveryv2.APIVersionDiscovery{
			Version: v, Resources: []apidiscoveryv2.APIResourceDiscovery{{Resource: "widgets"}},
		})
	}
	s.Groups = []apidiscoveryv2.APIGroupDiscovery{group}
	s.index = indexGroups(s.Groups)
	for v := range strings.FieldsSeq(openAPI) {
		version, hash, _ := strings.Cut(v, "=")
		s.OpenAPIV3["apis/example.com/"+version] = hash
	}
	return s
}

// What an event of a CRD makes one wait for. before and after are CRDs; what is shown
// before is what they say, v1 and v2 under the hash A.
func TestNewsOfCRDs(t *testing.T) {
	f := func(before, after string, touched bool, discovery, openAPI string, want string) {
		t.Helper()
		old, now := crdOf(before), crdOf(after)
		n := &news{}
		e := event{name: widgets, old: &followedObject{generation: 1}, new: &followedObject{generation: 1}}
		if touched {
			e.new.generation++
		}
		if old == nil {
			e.old = nil
		}
		if now == nil {
			e.new = nil
		}
		n.crdEvent(e, serving(old, "v1 v2", "v1=A v2=A"))
		s := serving(now, discovery, openAPI)
		if w := n.waiting(s); w.discovery.IsZero() || w.details.IsZero() {
			t.Errorf("%q to %q: nothing is awaited of a CRD that was not read", before, after)
		}
		n.read(n.unread())
		w := n.waiting(s)
		if got := fmt.Sprintf("%v %v", !w.discovery.IsZero(), !w.details.IsZero()); got != want {
			t.Errorf("%q to %q, shown %q and %q: awaited are %s, want %s", before, after, discovery, openAPI, got, want)
		}
		if (len(n.items) > 0) != (want != "false false") {
			t.Errorf("%q to %q: %d items are kept", before, after, len(n.items))
		}
	}

	// New: nothing before it is established, then discovery and OpenAPI.
	f("", "?v1=x", true, "", "", "false false")
	f("?v1=x", "v1=x", false, "", "v1=A v2=A", "true true")
	f("?v1=x", "v1=x", false, "v1", "v1=A v2=A", "false true")
	f("?v1=x", "v1=x", false, "v1", "v1=B v2=A", "false false")
	f("", "v1=x -v2=x", true, "v1", "v1=B v2=A", "false false")

	// Gone.
	f("v1=x v2=x", "", true, "v1 v2", "v1=A v2=A", "true true")
	f("v1=x v2=x", "", true, "v2", "", "true false")
	f("v1=x v2=x", "", true, "", "", "false false")
	f("", "", true, "", "", "false false")

	// A version comes or goes; the other does not matter.
	f("v1=x v2=x", "v1=x -v2=x", true, "v1 v2", "v1=A v2=A", "true true")
	f("v1=x v2=x", "v1=x -v2=x", true, "v1", "v1=A", "false false")
	f("v1=x -v2=x", "v1=x v2=x", true, "v1", "v1=A v2=B", "true false")

	// Another schema shows in OpenAPI only.
	f("v1=x v2=x", "v1=y v2=x", true, "v1 v2", "v1=A v2=A", "false true")
	f("v1=x v2=x", "v1=y v2=x", true, "v1 v2", "v1=B v2=A", "false false")
	f("v1=x -v2=x", "v1=x -v2=y", true, "v1", "v1=A", "true false") // perhaps other names

	// A status only.
	f("v1=x", "v1=x", false, "v1", "v1=A", "false false")
}

// A server without OpenAPI v3 is not waited for.
func TestNewsWithoutOpenAPI(t *testing.T) {
	n := &news{}
	s := serving(nil, "", "")
	s.OpenAPIV3 = nil
	n.crdEvent(event{name: widgets, new: &followedObject{}}, s)
	n.read(n.unread())
	s = serving(crdOf("v1=x"), "v1", "")
	s.OpenAPIV3 = nil
	if w := n.waiting(s); w != (waiting{}) {
		t.Errorf("awaited: %+v", w)
	}
}

// Of several events, what was before the first counts; one that comes while the CRD is
// read has it read again.
func TestNewsAddUp(t *testing.T) {
	n := &news{}
	n.crdEvent(event{name: widgets, new: &followedObject{resourceVersion: "1"}}, serving(nil, "", ""))
	reading := n.unread()
	n.crdEvent(event{name: widgets, old: &followedObject{resourceVersion: "1"}, new: &followedObject{resourceVersion: "2"}}, serving(crdOf("v1=x"), "", ""))
	n.read(reading)
	again := n.unread()
	if len(again) != 1 || again[widgets].resourceVersion != "2" {
		t.Fatalf("to be read again: %v", again)
	}
	n.read(again)
	if w := n.waiting(serving(crdOf("v1=x"), "", "")); w.discovery.IsZero() || w.details.IsZero() {
		t.Errorf("that it is new is forgotten: %+v", w)
	}
}

// What is not shown in time is not waited for any more.
func TestNewsGrowOld(t *testing.T) {
	n := &news{}
	n.crdEvent(event{name: widgets, new: &followedObject{}}, serving(nil, "", ""))
	n.apiServiceEvent(event{name: "v1.example.com", new: &followedObject{}})
	for _, a := range n.items {
		a.at = a.at.Add(-newsPatience - time.Second)
	}
	if w := n.waiting(serving(nil, "", "")); w != (waiting{}) || len(n.items) != 0 {
		t.Errorf("awaited: %+v, kept %d", w, len(n.items))
	}
}

// Events of objects with odd names are no news and no harm.
func TestNewsOfOddAPIServices(t *testing.T) {
	n := &news{}
	for _, name := range []string{"", "v1", "."} {
		n.apiServiceEvent(event{name: name, new: &followedObject{}})
	}
	if got := slices.Collect(func(yield func(string) bool) {
		for key := range n.items {
			yield(key.name)
		}
	}); !slices.Equal(got, []string{"."}) {
		t.Errorf("news of %q", got)
	}
}
