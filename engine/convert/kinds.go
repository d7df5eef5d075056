package convert

import "strings"

// otherKinds end the names of kinds that share a version with what is converted
// but are something else: what every group has, and the bodies of subresources.
// They count where a converter does not know its kind.
var otherKinds = []string{
	"List", "Options", "Status", "Table", "PartialObjectMetadata", "WatchEvent",
	"Scale", "Eviction", "Binding", "TokenRequest", "Review",
}

// isKind reports whether kind, as a body says it, is the one that v names.
func (v *Version) isKind(kind string) bool {
	if v.Kind != "" {
		return kind == v.Kind
	}
	for _, other := range otherKinds {
		if strings.HasSuffix(kind, other) {
			return false
		}
	}
	return kind != ""
}

// isListKind reports whether kind is that of a list of v's kind.
func (v *Version) isListKind(kind string) bool {
	if v.Kind != "" {
		return kind == v.Kind+"List"
	}
	return strings.HasSuffix(kind, "List") && kind != "List" && kind != "PartialObjectMetadataList"
}

// rekind returns what kind, of the source version or its list, is called in the
// target version; kind itself when that is not known.
func rekind(kind string, source, target *Version) string {
	if source.Kind == "" || target.Kind == "" {
		return kind
	}
	if kind == source.Kind {
		return target.Kind
	}
	if kind == source.Kind+"List" {
		return target.Kind + "List"
	}
	return kind
}

const metaGroup = "meta.k8s.io/"

// isTable reports whether the two are those of a table of objects.
func isTable(apiVersion, kind string) bool {
	return kind == "Table" && strings.HasPrefix(apiVersion, metaGroup)
}

// names are what an object says it is. An absent or odd field is "", and its ref
// 0 when there is none at all.
type names struct {
	apiVersion, kind     string
	apiVersionAt, kindAt ref
}

// names reads what the object r says it is.
func (c *Converter) names(d *doc, r ref) names {
	var n names
	n.apiVersion, n.apiVersionAt = c.name(d, r, "apiVersion")
	n.kind, n.kindAt = c.name(d, r, "kind")
	return n
}

func (c *Converter) name(d *doc, r ref, key string) (string, ref) {
	m := d.find(r, key)
	if m == 0 || d.kind(m) != kindString {
		return "", m
	}
	raw := d.raw(m)
	for i := range c.words {
		if string(raw) == c.words[i].quoted {
			return c.words[i].text, m // the usual: nothing to allocate
		}
	}
	return d.str(m), m
}

// word is a string and how it is written in JSON.
type word struct{ text, quoted string }

// knownWords are the names that bodies are expected to have.
func knownWords(spec *Spec) []word {
	var words []word
	for _, v := range []*Version{&spec.From, &spec.To} {
		for _, text := range []string{v.APIVersion(), v.Kind} {
			words = append(words, word{text, string(appendQuoted(nil, text))})
		}
	}
	return words
}

// setVersion makes r, whose names n are, say that it is of the target version.
// What it does not say it does not get.
func (x *run) setVersion(r ref, n names) {
	source, target := x.c.source(x.dir), x.c.target(x.dir)
	if n.apiVersion != "" && n.apiVersion == x.c.apiVersion(x.dir) {
		x.d.setString(n.apiVersionAt, x.c.apiVersion(x.dir.reverse()))
	}
	if kind := rekind(n.kind, source, target); kind != n.kind {
		x.d.setString(n.kindAt, kind)
	}
}
