package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// MaxOpenAPIV2 is the JSON size of one OpenAPI v2 document, in bytes. Kubernetes
// itself has 2 MB; 1,000 large CRDs have about 30 MB.
const MaxOpenAPIV2 = 64 << 20

// An OpenAPIV2 is an OpenAPI v2 document, taken apart as far as merging asks: the
// entries of its sections stay as they were written. It never changes once made
// and may be used by any number of goroutines.
type OpenAPIV2 struct {
	members  map[string]json.RawMessage            // at the top, without the sections
	sections map[string]map[string]json.RawMessage // by name, then by key
}

// The sections, each a map, and the order in which kube-apiserver writes what is at
// the top of a document.
var (
	sectionsV2 = []string{"paths", "definitions", "parameters", "responses", "securityDefinitions"}
	orderV2    = []string{"swagger", "info", "paths", "definitions", "parameters", "responses", "securityDefinitions", "security"}
)

// ParseOpenAPIV2 reads the /openapi/v2 of one server.
func ParseOpenAPIV2(body []byte) (*OpenAPIV2, error) {
	if len(body) > MaxOpenAPIV2 {
		return nil, fmt.Errorf("cannot read an OpenAPI v2 document of %d bytes: at most %d are read", len(body), MaxOpenAPIV2)
	}
	d := &OpenAPIV2{sections: map[string]map[string]json.RawMessage{}}
	if err := json.Unmarshal(body, &d.members); err != nil {
		return nil, fmt.Errorf("cannot read the OpenAPI v2 document: %w", err)
	}
	if d.members == nil {
		return nil, errors.New("cannot read the OpenAPI v2 document: it is null, not an object")
	}
	for _, name := range sectionsV2 {
		raw, ok := d.members[name]
		if !ok {
			continue
		}
		var section map[string]json.RawMessage
		if err := json.Unmarshal(raw, &section); err != nil {
			return nil, fmt.Errorf("cannot read %s of the OpenAPI v2 document: %w", name, err)
		}
		delete(d.members, name)
		if section != nil {
			d.sections[name] = section
		}
	}
	return d, nil
}

// An OpenAPIV2Source is the document of one server.
type OpenAPIV2Source struct {
	Server, Version string // as in [Source]
	Document        *OpenAPIV2
}

// MergeOpenAPIV2 returns the union of the documents, the same in whatever order they
// come. What only one server has is in it: paths, operations of a path, definitions,
// and the kinds that a definition is said to be of, as every version adds its own to
// DeleteOptions.
//
// Where two servers say something else under one name, the newest is right: a
// definition is then whole the newest server's. Kubernetes' definitions grow, so
// that it describes what the others serve too, and writes go to the newest server
// where the servers differ: a field that it does not know would be lost. A second
// definition of the same kind under another name would help no client: they look
// one up by its kind.
func MergeOpenAPIV2(sources []OpenAPIV2Source) *OpenAPIV2 {
	sources = slices.Clone(sources)
	slices.SortStableFunc(sources, func(a, b OpenAPIV2Source) int {
		return compareServers(a.Version, a.Server, b.Version, b.Server)
	})
	if len(sources) == 1 {
		return sources[0].Document
	}
	out := &OpenAPIV2{members: map[string]json.RawMessage{}, sections: map[string]map[string]json.RawMessage{}}
	for _, s := range sources {
		out.add(s.Document)
	}
	return out
}

// add adds to a document that is being made what only in has.
func (d *OpenAPIV2) add(in *OpenAPIV2) {
	for name, value := range in.members {
		if _, ok := d.members[name]; !ok {
			d.members[name] = value
		}
	}
	for name, section := range in.sections {
		have := d.section(name)
		for key, value := range section {
			known, ok := have[key]
			switch {
			case !ok:
				have[key] = value
			case bytes.Equal(known, value):
			case name == "paths":
				have[key] = mergePathItem(known, value)
			case name == "definitions":
				have[key] = mergeKinds(known, value)
			}
		}
	}
}

// section returns a section of a document that is being made, to be written to.
func (d *OpenAPIV2) section(name string) map[string]json.RawMessage {
	s := d.sections[name]
	if s == nil {
		s = map[string]json.RawMessage{}
		d.sections[name] = s
	}
	return s
}

// clone returns a copy that may be written to.
func (d *OpenAPIV2) clone() *OpenAPIV2 {
	out := &OpenAPIV2{members: maps.Clone(d.members), sections: map[string]map[string]json.RawMessage{}}
	for name, section := range d.sections {
		out.sections[name] = maps.Clone(section)
	}
	return out
}

// mergePathItem adds to a path the operations that only in has.
func mergePathItem(have, in json.RawMessage) json.RawMessage {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(have, &a) != nil || json.Unmarshal(in, &b) != nil || a == nil {
		return have
	}
	known := len(a)
	for key, value := range b {
		if _, ok := a[key]; !ok {
			a[key] = value
		}
	}
	if len(a) == known {
		return have
	}
	return appendMembers(nil, a, nil)
}

// mergeKinds adds to a definition the kinds that only in says it is of.
func mergeKinds(have, in json.RawMessage) json.RawMessage {
	if !bytes.Contains(in, []byte(extensionGVK)) {
		return have
	}
	var a, b map[string]json.RawMessage
	if json.Unmarshal(have, &a) != nil || json.Unmarshal(in, &b) != nil || a == nil {
		return have
	}
	kinds, seen := kindsOf(a[extensionGVK])
	more, _ := kindsOf(b[extensionGVK])
	known := len(kinds)
	for _, raw := range more {
		if id := kindIn(raw); !seen[id] {
			seen[id] = true
			kinds = append(kinds, raw)
		}
	}
	if len(kinds) == known {
		return have
	}
	a[extensionGVK] = appendList(nil, kinds)
	return appendMembers(nil, a, nil)
}

// kindsOf returns the entries of extensionGVK on a definition, and which there are.
func kindsOf(list json.RawMessage) ([]json.RawMessage, map[groupKind]bool) {
	var kinds []json.RawMessage
	if len(list) > 0 && json.Unmarshal(list, &kinds) != nil {
		kinds = nil
	}
	seen := map[groupKind]bool{}
	for _, raw := range kinds {
		seen[kindIn(raw)] = true
	}
	return kinds, seen
}

func kindIn(raw json.RawMessage) groupKind {
	var k struct{ Group, Version, Kind string }
	if json.Unmarshal(raw, &k) != nil {
		return groupKind{}
	}
	return groupKind{k.Group, k.Version, k.Kind}
}

// JSON writes the document: what is at the top in kube-apiserver's order, all else
// sorted.
func (d *OpenAPIV2) JSON() []byte {
	top := maps.Clone(d.members)
	size := 0
	for name, section := range d.sections {
		text := appendMembers(nil, section, nil)
		top[name] = text
		size += len(text)
	}
	return appendMembers(make([]byte, 0, size+4096), top, orderV2)
}

// appendMembers writes a JSON object with the keys in first before all others, which
// are sorted.
func appendMembers(out []byte, members map[string]json.RawMessage, first []string) []byte {
	keys := make([]string, 0, len(members))
	for _, key := range first {
		if _, ok := members[key]; ok {
			keys = append(keys, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(first, key) {
			keys = append(keys, key)
		}
	}
	out = append(out, '{')
	for i, key := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, quoteJSON(key)...)
		out = append(out, ':')
		out = append(out, members[key]...)
	}
	return append(out, '}')
}

func appendList(out []byte, list []json.RawMessage) []byte {
	out = append(out, '[')
	for i, v := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}

// quoteJSON writes a string as JSON, without the escapes that are for HTML.
func quoteJSON(s string) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string into memory
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
