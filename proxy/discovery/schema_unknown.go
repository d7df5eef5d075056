package discovery

import (
	"slices"
	"strconv"
	"strings"
)

// An UnknownField is a field that a schema does not have.
type UnknownField struct {
	// Path is where it is, as kube-apiserver writes it: "spec.containers[0].imag".
	Path string

	// Null says that its value is null, which in a merge patch is no field at all.
	Null bool
}

// maxUnknownFields bounds how many unknown fields are told of one object: a client that
// has a thousand wrong has one thing wrong.
const maxUnknownFields = 1000

// Unknown returns the fields of object, a decoded JSON object, that a kind with this
// schema does not have, by path. Of an unknown field nothing that is in it is told. Where
// the schema leaves open what may stand there, nothing is unknown; neither are the
// object's apiVersion, kind and metadata.
func (s *Schema) Unknown(object map[string]any) []UnknownField {
	if s == nil {
		return nil
	}
	w := &unknownWalk{schema: s}
	w.object(s.node, object, "", true)
	slices.SortFunc(w.found, func(a, b UnknownField) int { return strings.Compare(a.Path, b.Path) })
	return w.found
}

// maxUnknownDepth bounds how deep an object is looked into; kube-apiserver's decoder
// stops at 10,000, and no kind has a tenth of this.
const maxUnknownDepth = 200

type unknownWalk struct {
	schema *Schema
	found  []UnknownField
	depth  int
}

// object looks at the members of an object whose schema is node. embedded objects have
// what every object has.
func (w *unknownWalk) object(node, object map[string]any, path string, embedded bool) {
	known := w.schema.allowed(node)
	if w.depth++; w.depth > maxUnknownDepth || len(w.found) >= maxUnknownFields {
		w.depth--
		return
	}
	for key, value := range object {
		if (embedded || known.embedded) && (key == "apiVersion" || key == "kind" || key == "metadata") {
			continue
		}
		at := key
		if path != "" {
			at = path + "." + key
		}
		child := asObject(known.properties[key])
		if child == nil {
			child = known.values
		}
		switch {
		case child != nil:
			w.value(child, value, at)
		case !known.open && len(w.found) < maxUnknownFields:
			w.found = append(w.found, UnknownField{Path: at, Null: value == nil})
		}
	}
	w.depth--
}

// value looks into an object, or the objects of an array.
func (w *unknownWalk) value(node map[string]any, value any, path string) {
	switch v := value.(type) {
	case map[string]any:
		w.object(node, v, path, false)
	case []any:
		items := w.schema.allowed(node).items
		if items == nil {
			return
		}
		for i, item := range v {
			w.value(items, item, path+"["+strconv.Itoa(i)+"]")
		}
	}
}

// allowed is what an object or array of some schema may have in it.
type allowed struct {
	properties map[string]any
	values     map[string]any // the schema of members that properties does not name; nil for none
	items      map[string]any
	open       bool // members that nothing names are no mistake
	embedded   bool // it is a whole object of its own, with a kind and metadata
}

// allowed collects what node and what it takes over say. A schema that names no property
// says nothing of its members, or leaves it to the server to say.
func (s *Schema) allowed(node map[string]any) allowed {
	var a allowed
	budget := maxReferences
	s.collect(node, &a, &budget)
	a.open = a.open || budget < 0 || len(a.properties) == 0 && a.values == nil
	return a
}

func (s *Schema) collect(node map[string]any, a *allowed, budget *int) {
	if *budget--; *budget < 0 {
		return
	}
	if properties := asObject(node["properties"]); len(a.properties) == 0 {
		a.properties = properties
	} else if len(properties) > 0 {
		a.open = true // put together from parts: what all of them allow is not worked out
	}
	switch values := node["additionalProperties"].(type) {
	case map[string]any:
		a.values = values
	case bool:
		a.open = a.open || values
	}
	if items := asObject(node["items"]); items != nil {
		a.items = items
	}
	a.open = a.open || node["x-kubernetes-preserve-unknown-fields"] == true || isIntOrString(node)
	a.embedded = a.embedded || node["x-kubernetes-embedded-resource"] == true
	for _, next := range s.referenced(node) {
		s.collect(next, a, budget)
	}
}
