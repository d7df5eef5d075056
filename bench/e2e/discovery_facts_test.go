package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// union is what two documents say together, the first where they differ.
func union(name string, newer, older any) map[string]string {
	first := factsOf(newer)
	facts := maps.Clone(first)
	for at, value := range factsOf(older) {
		if _, known := first[at]; !known && !wholeDefinition(name, at, first) {
			facts[at] = value
		}
	}
	return facts
}

// wholeDefinition reports whether a fact is of a definition of OpenAPI v2, or an
// operation, that the newer server has too: they are not mixed, but for the kinds
// that a definition is said to be of.
func wholeDefinition(name, at string, newer map[string]string) bool {
	parts := strings.Split(at, "\x00")
	if name != "/openapi/v2" || len(parts) < 4 || strings.Contains(at, "x-kubernetes-group-version-kind") && parts[1] == "definitions" {
		return false
	}
	depth := map[string]int{"definitions": 3, "paths": 4, "parameters": 3}[parts[1]]
	_, known := newer[strings.Join(parts[:min(depth, len(parts))], "\x00")]
	return depth > 0 && known
}

// factsOf writes a document as facts, one for each value and one for each object,
// that say where it stands; an element of a list by what names it.
func factsOf(doc any) map[string]string {
	facts := map[string]string{}
	addFacts(facts, "", doc)
	delete(facts, "")
	return facts
}

func addFacts(facts map[string]string, at string, v any) {
	switch v := v.(type) {
	case map[string]any:
		facts[at] = "{}"
		for key, e := range v {
			addFacts(facts, at+"\x00"+key, e)
		}
	case []any:
		facts[at] = "[]"
		for _, e := range v {
			addFacts(facts, at+"\x00["+nameOf(e)+"]", e)
		}
	default:
		facts[at] = fmt.Sprint(v)
	}
}

func nameOf(element any) string {
	object, _ := element.(map[string]any)
	if _, isKind := object["kind"]; isKind && len(object) == 3 && object["group"] != nil {
		return fmt.Sprint(element)
	}
	for _, key := range []string{"resource", "subresource", "groupVersion", "version", "name"} {
		if name, ok := object[key].(string); ok {
			return name
		}
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		return fmt.Sprint(metadata["name"])
	}
	return fmt.Sprint(element)
}

// differences says in words where facts are not those wanted.
func differences(got, want map[string]string) (wrong []string) {
	readable := strings.NewReplacer("\x00", " > ")
	for _, at := range slices.Sorted(maps.Keys(want)) {
		if value, ok := got[at]; !ok || value != want[at] {
			wrong = append(wrong, fmt.Sprintf("%s is %.80q, want %.80q", readable.Replace(at), value, want[at]))
		}
	}
	for _, at := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[at]; !ok {
			wrong = append(wrong, fmt.Sprintf("no server says %s = %.80q", readable.Replace(at), got[at]))
		}
	}
	return wrong
}
