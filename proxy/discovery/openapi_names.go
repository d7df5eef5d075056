package discovery

import (
	"slices"
	"strings"
)

// schemaRef is how a reference to a named schema begins.
const schemaRef = "#/components/schemas/"

// componentSchemas returns the named schemas of a document, nil if it has none.
func componentSchemas(root map[string]any) map[string]any {
	return asObject(asObject(root["components"])["schemas"])
}

// schemaNameOf returns the name of the schema of a kind. Where several claim it,
// as meta kinds do, the first by name.
func schemaNameOf(schemas map[string]any, kind groupKind) (string, bool) {
	found := ""
	for name, schema := range schemas {
		kinds, _ := asObject(schema)[extensionGVK].([]any)
		claims := slices.ContainsFunc(kinds, func(v any) bool { return readGVK(v) == kind })
		if claims && (found == "" || name < found) {
			found = name
		}
	}
	return found, found != ""
}

// newNames returns the client's names of the schemas that belong to the server's
// version: those of the converted kinds and all beside them, as
// io.k8s.api.policy.v1.PodDisruptionBudgetSpec is beside …v1.PodDisruptionBudget.
// A name that another schema has already is not taken.
func (d *derivation) newNames(schemas map[string]any) map[string]string {
	names := map[string]string{}
	for _, k := range d.kinds {
		own, ok := schemaNameOf(schemas, groupKind{d.to.group, d.to.version, k.to})
		dot := strings.LastIndexByte(own, '.')
		if !ok || dot < 0 {
			continue
		}
		oldPackage := own[:dot]
		newPackage := d.newPackage(oldPackage)
		for name := range schemas {
			inPackage, ok := strings.CutPrefix(name, oldPackage+".")
			if !ok || strings.Contains(inPackage, ".") {
				continue
			}
			if kind, converted := d.clientKind(inPackage); converted {
				inPackage = kind
			}
			renamed := newPackage + "." + inPackage
			if _, taken := schemas[renamed]; !taken {
				names[name] = renamed
			}
		}
	}
	return names
}

// newPackage returns what a name begins with in the client's version. Built-in
// kinds have a Go package there, which ends in the first word of the group and the
// version; custom resources have the group, its words backwards, and the version.
func (d *derivation) newPackage(oldPackage string) string {
	base, ok := strings.CutSuffix(oldPackage, "."+d.to.version)
	if !ok {
		return oldPackage
	}
	if d.from.group != d.to.group {
		if base == backwards(d.to.group) {
			base = backwards(d.from.group)
		} else if dot := strings.LastIndexByte(base, '.'); dot >= 0 {
			base = base[:dot+1] + goPackage(d.from.group)
		}
	}
	return base + "." + d.from.version
}

func backwards(group string) string {
	words := strings.Split(group, ".")
	slices.Reverse(words)
	return strings.Join(words, ".")
}

func goPackage(group string) string {
	if group == "" {
		return "core"
	}
	word, _, _ := strings.Cut(group, ".")
	return word
}

func renameKeys(schemas map[string]any, names map[string]string) {
	renamed := map[string]any{}
	for old, name := range names {
		renamed[name] = schemas[old]
		delete(schemas, old)
	}
	for name, schema := range renamed {
		schemas[name] = schema
	}
}

// rewrite gives, everywhere below v, references the new names and kinds the
// client's group version. It recurses as deep as the document is nested, which
// the JSON decoder has bounded.
func (d *derivation) rewrite(v any, names map[string]string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			d.rewrite(e, names)
		}
	case map[string]any:
		for key, e := range v {
			switch key {
			case "$ref":
				v[key] = renamedRef(e, names)
			case extensionGVK:
				v[key] = d.rewriteKinds(e)
			default:
				d.rewrite(e, names)
			}
		}
	}
}

// renamedRef leaves alone what is no reference, such as the schema of a field that
// is itself called $ref.
func renamedRef(v any, names map[string]string) any {
	ref, _ := v.(string)
	if name, ok := strings.CutPrefix(ref, schemaRef); ok && names[name] != "" {
		return schemaRef + names[name]
	}
	return v
}

// rewriteKinds rewrites a value of extensionGVK: one kind on operations, a list
// on schemas. Kinds that every group version has, such as DeleteOptions, list the
// client's group version once even if the document knew it already.
func (d *derivation) rewriteKinds(v any) any {
	list, ok := v.([]any)
	if !ok {
		return d.rewriteKind(v)
	}
	out := make([]any, 0, len(list))
	seen := map[groupKind]bool{}
	for _, e := range list {
		kind := d.rewriteKind(e)
		if id := readGVK(kind); !seen[id] {
			seen[id] = true
			out = append(out, kind)
		}
	}
	return out
}

func (d *derivation) rewriteKind(v any) any {
	k := readGVK(v)
	client, ok := d.clientKind(k.kind)
	if !ok || k.group != d.to.group || k.version != d.to.version {
		return v
	}
	return map[string]any{"group": d.from.group, "version": d.from.version, "kind": client}
}

// prune leaves out the schemas that nothing refers to: those of kinds that are not
// converted.
func (d *derivation) prune(root map[string]any) {
	schemas := componentSchemas(root)
	used := map[string]bool{}
	var queue []string
	use := func(name string) {
		if _, ok := schemas[name]; ok && !used[name] {
			used[name] = true
			queue = append(queue, name)
		}
	}
	eachRef(root["paths"], use)
	for section, v := range asObject(root["components"]) {
		if section != "schemas" {
			eachRef(v, use)
		}
	}
	for _, k := range d.kinds {
		for _, kind := range []string{k.from, k.from + "List"} {
			if name, ok := schemaNameOf(schemas, groupKind{d.from.group, d.from.version, kind}); ok {
				use(name)
			}
		}
	}
	for len(queue) > 0 { // each schema enters the queue once
		name := queue[0]
		queue = queue[1:]
		eachRef(schemas[name], use)
	}
	for name := range schemas {
		if !used[name] {
			delete(schemas, name)
		}
	}
}

// eachRef calls use with the name of every schema that something below v refers to.
func eachRef(v any, use func(name string)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			eachRef(e, use)
		}
	case map[string]any:
		for key, e := range v {
			if ref, ok := e.(string); ok && key == "$ref" {
				if name, ok := strings.CutPrefix(ref, schemaRef); ok {
					use(name)
				}
				continue
			}
			eachRef(e, use)
		}
	}
}
