package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// definitionRef is how a reference to a definition begins. Deriving works on named
// schemas as OpenAPI v3 has them, so references are rewritten to [schemaRef] and
// back.
const definitionRef = "#/definitions/"

// A DerivedV2 is what to add to a merged OpenAPI v2 document for resources of one
// group version that are converted to another one.
type DerivedV2 struct {
	Conversions []Conversion // all between the same two group versions
	Options     ConvertOptions

	// Remembered describes the client's version as a server did that does not serve
	// it any more ([OpenAPIV2.Part]). Nil: it is derived from the server's version.
	Remembered *OpenAPIV2
}

// WithConversions returns the document with what the proxy serves by conversion:
// paths and definitions as [ConvertV3] derives them. Resources that the document
// describes already stay as they are. What could not be derived is left out, and the
// error says why; the document is complete but for that.
func (d *OpenAPIV2) WithConversions(list []DerivedV2) (*OpenAPIV2, error) {
	out := d
	var failed []error
	for _, derived := range list {
		next, err := out.withConversions(derived)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		out = next
	}
	return out, errors.Join(failed...)
}

func (d *OpenAPIV2) withConversions(in DerivedV2) (*OpenAPIV2, error) {
	from, to, err := groupVersions(in.Conversions)
	if err != nil {
		return nil, err
	}
	described, targets := d.resources(from), d.resources(to)
	var open []Conversion
	for _, c := range sortedConversions(in.Conversions) {
		if !described[c.fromResource()] && targets[c.ToResource] {
			described[c.fromResource()] = true
			open = append(open, c)
		}
	}
	if len(open) == 0 {
		return d, nil
	}
	if part := in.Remembered.partOf(from, open); part != nil {
		out := d.clone()
		out.add(part)
		return out, nil
	}
	root, err := d.subset(to, open)
	if err != nil {
		return nil, err
	}
	opts, err := optionsV2(in.Options)
	if err != nil {
		return nil, err
	}
	derivation := &derivation{from: from, to: to, resources: map[string]string{}}
	if err := derivation.convert(root, open, opts); err != nil {
		return nil, err
	}
	derivation.openKinds(componentSchemas(root))
	return d.withDerived(root)
}

// resources returns the resources of a group version that the document describes.
func (d *OpenAPIV2) resources(gv groupKind) map[string]bool {
	found := map[string]bool{}
	if d == nil {
		return found
	}
	at := derivation{to: gv}
	for path := range d.sections["paths"] {
		if segments, i, ok := at.splitPath(path); ok && segments[i] != "" {
			found[segments[i]] = true
		}
	}
	return found
}

// Part returns what the document has on some resources of a group version: their
// paths, and what these refer to. Nil: it does not have all of them.
func (d *OpenAPIV2) Part(group, version string, resources []string) *OpenAPIV2 {
	gv := groupKind{group, version, ""}
	known := d.resources(gv)
	if slices.ContainsFunc(resources, func(r string) bool { return !known[r] }) {
		return nil
	}
	out := &OpenAPIV2{members: map[string]json.RawMessage{}, sections: map[string]map[string]json.RawMessage{}}
	at := derivation{to: gv}
	var queue []string
	for path, item := range d.sections["paths"] {
		if segments, i, ok := at.splitPath(path); ok && slices.Contains(resources, segments[i]) {
			out.section("paths")[path] = item
			queue = append(queue, refsIn(item)...)
		}
	}
	for len(queue) > 0 { // each entry is added once
		section, name, _ := strings.Cut(strings.TrimPrefix(queue[0], "#/"), "/")
		queue = queue[1:]
		entry, ok := d.sections[section][name]
		if _, done := out.sections[section][name]; ok && !done {
			out.section(section)[name] = entry
			queue = append(queue, refsIn(entry)...)
		}
	}
	return out
}

func (d *OpenAPIV2) partOf(gv groupKind, conversions []Conversion) *OpenAPIV2 {
	if d == nil {
		return nil
	}
	var names []string
	for _, c := range conversions {
		names = append(names, c.fromResource())
	}
	return d.Part(gv.group, gv.version, names)
}

// refsIn returns the references within a part of a document.
func refsIn(raw json.RawMessage) []string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	var refs []string
	eachString(v, "$ref", func(ref string) string {
		refs = append(refs, ref)
		return ref
	})
	return refs
}

// eachString replaces every string under a key, anywhere below v.
func eachString(v any, key string, replace func(string) string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			eachString(e, key, replace)
		}
	case map[string]any:
		for k, e := range v {
			if s, ok := e.(string); ok && k == key {
				v[k] = replace(s)
				continue
			}
			eachString(e, key, replace)
		}
	}
}

func movedRefs(v any, from, to string) {
	eachString(v, "$ref", func(ref string) string {
		if name, ok := strings.CutPrefix(ref, from); ok {
			return to + name
		}
		return ref
	})
}

// subset decodes what deriving needs of the server's version, as a document of
// OpenAPI v3 would have it.
func (d *OpenAPIV2) subset(gv groupKind, conversions []Conversion) (map[string]any, error) {
	var names []string
	for _, c := range conversions {
		names = append(names, c.ToResource)
	}
	part := d.Part(gv.group, gv.version, names)
	if part == nil {
		return nil, fmt.Errorf("cannot derive from the OpenAPI v2 document: it does not describe all of %s %s", gv, strings.Join(names, ", "))
	}
	root := map[string]any{"paths": map[string]any{}, "components": map[string]any{"schemas": map[string]any{}}}
	for section, into := range map[string]map[string]any{"paths": asObject(root["paths"]), "definitions": componentSchemas(root)} {
		for key, raw := range part.sections[section] {
			value, err := decodeObject(raw)
			if err != nil {
				return nil, fmt.Errorf("cannot read %s of the OpenAPI v2 document: %w", key, err)
			}
			into[key] = value
		}
	}
	movedRefs(root, definitionRef, schemaRef)
	return root, nil
}

// withDerived returns the document with the paths and definitions of root. A
// definition that it has already is shared where it is the same but for the kinds it
// is of; where it is another one, the new one gets a name of its own.
func (d *OpenAPIV2) withDerived(root map[string]any) (*OpenAPIV2, error) {
	movedRefs(root, schemaRef, definitionRef)
	schemas := componentSchemas(root)
	d.renameTaken(root, schemas)
	out := d.clone()
	definitions := out.section("definitions")
	for name, schema := range schemas {
		raw, err := encodeDocument(asObject(schema))
		if err != nil {
			return nil, err
		}
		if have, ok := definitions[name]; ok {
			raw = mergeKinds(have, raw)
		}
		definitions[name] = raw
	}
	for path, item := range asObject(root["paths"]) {
		if _, ok := out.section("paths")[path]; ok {
			continue
		}
		raw, err := encodeDocument(asObject(item))
		if err != nil {
			return nil, err
		}
		out.section("paths")[path] = raw
	}
	return out, nil
}

// renameTaken gives the definitions of root whose name belongs to another one in the
// document a name that is free, as kube-aggregator does: with _v2 behind it. What
// refers to a renamed definition is then another one itself.
func (d *OpenAPIV2) renameTaken(root, schemas map[string]any) {
	for {
		renamed := map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(schemas)) {
			if !d.conflicts(name, schemas[name]) {
				continue
			}
			free := name
			for i := 2; ; i++ {
				free = fmt.Sprintf("%s_v%d", name, i)
				_, inRoot := schemas[free]
				if _, taken := d.sections["definitions"][free]; !taken && !inRoot {
					break
				}
			}
			renamed[name] = free
			schemas[free] = schemas[name]
			delete(schemas, name)
		}
		if len(renamed) == 0 {
			return
		}
		eachString(root, "$ref", func(ref string) string {
			if free, ok := renamed[strings.TrimPrefix(ref, definitionRef)]; ok {
				return definitionRef + free
			}
			return ref
		})
	}
}

// conflicts reports whether the document has another definition of that name.
func (d *OpenAPIV2) conflicts(name string, schema any) bool {
	raw, ok := d.sections["definitions"][name]
	if !ok {
		return false
	}
	have, err := decodeObject(raw)
	if err != nil {
		return true
	}
	in := maps.Clone(asObject(schema))
	_, kindsIn := in[extensionGVK]
	_, kindsHave := have[extensionGVK]
	delete(in, extensionGVK)
	delete(have, extensionGVK)
	return kindsIn != kindsHave || !reflect.DeepEqual(have, in)
}
