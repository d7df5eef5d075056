package policies

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Decoded is a YAML document that was read into a Go value, and knows where its parts
// stand.
type Decoded struct {
	f     *yamlFile
	what  string                // for messages: "the file"
	nodes map[string]*yaml.Node // by path, such as cases[0].expect; "" is the document
}

// Decode reads the one document of a file that is no policy, such as one of test cases,
// into the value that into points to, by its json tags. Its values are those that kubectl
// would read. Decode is strict: a field that the type does not have, one that is given
// twice and one of another type are mistakes; the errors are all of them, at their places.
// what is what messages call the document. A file without a document changes nothing.
//
// The mistakes that the caller finds afterwards are told by [Decoded.Error].
func Decode(file File, what string, into any) (*Decoded, source.Errors) {
	if err := checkText(file); err != nil && err.Line != "" {
		return nil, source.Errors{err}
	}
	f, docs := readYAML(file)
	d := &Decoded{f: f, what: what, nodes: map[string]*yaml.Node{}}
	switch {
	case len(f.errs) > 0:
		return d, f.errs
	case len(docs) == 0:
		return d, nil
	case len(docs) > 1:
		f.fail(docs[1], "%s has %d documents, and only the first one would be read", what, len(docs))
		return d, f.errs
	}
	d.check("", docs[0], reflect.TypeOf(into).Elem(), 0)
	if len(f.errs) == 0 {
		if err := sigsyaml.UnmarshalStrict(file.Data, into); err != nil {
			d.unread(err)
		}
	}
	return d, f.errs
}

// SyntaxMistakes returns what is not YAML in file, at its place.
func SyntaxMistakes(file File) source.Errors {
	f, _ := readYAML(file)
	return f.errs
}

// Error returns the mistake msg at the part of the document that path names, such as
// cases[0].expect.result, or at what is nearest above it where there is no such part.
func (d *Decoded) Error(path, format string, args ...any) *source.Error {
	node := d.nodes[path]
	for node == nil && path != "" {
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
		node = d.nodes[path]
	}
	pos := source.Pos{File: d.f.name, Line: 1, Col: 1}
	if node != nil {
		pos = d.f.pos(node)
	}
	return d.f.mistake(pos, format, args...)
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

// check notes where node at path differs from what the type t is read from.
func (d *Decoded) check(path string, node *yaml.Node, t reflect.Type, depth int) {
	d.nodes[path] = node
	value := deref(node)
	if d.f.nodes++; d.f.nodes > maxNodes || depth > maxDepth || isNull(value) || merges(value) {
		return // what is too much, or merged, is the decoder's to read or refuse
	}
	if t == rawMessage {
		d.f.checkTwice(value, depth)
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		d.check(path, node, t.Elem(), depth)
	case reflect.Struct:
		d.checkStruct(path, node, t, depth)
	case reflect.Map:
		if o, ok := d.f.object(d.named(path), node); ok {
			for _, field := range o.fields {
				d.check(path+"."+field.name, field.value, t.Elem(), depth+1)
			}
		}
	case reflect.Slice:
		if value.Kind != yaml.SequenceNode {
			d.f.fail(node, "%s is %s: it must be a list", d.named(path), describe(value))
			return
		}
		for i, item := range value.Content {
			d.check(fmt.Sprintf("%s[%d]", path, i), item, t.Elem(), depth+1)
		}
	case reflect.String:
		if _, ok := d.f.str(d.named(path), node); ok && value.Style == 0 && isOldBool(value.Value) {
			d.f.fail(node, `%s is true or false to some YAML parsers and text to others: write "%[1]s", in quotes`, value.Value)
		}
	case reflect.Bool:
		d.checkScalar(path, node, "!!bool", "true or false")
	case reflect.Int:
		d.checkScalar(path, node, "!!int", "a whole number")
	}
}

// merges reports whether node takes keys from another map.
func merges(node *yaml.Node) bool {
	for i := 0; node.Kind == yaml.MappingNode && i < len(node.Content); i += 2 {
		if node.Content[i].ShortTag() == "!!merge" {
			return true
		}
	}
	return false
}

func (d *Decoded) checkScalar(path string, node *yaml.Node, tag, want string) {
	if value := deref(node); value.Kind != yaml.ScalarNode || value.ShortTag() != tag {
		d.f.fail(node, "%s is %s: it must be %s", d.named(path), describe(value), want)
	}
}

func (d *Decoded) checkStruct(path string, node *yaml.Node, t reflect.Type, depth int) {
	o, ok := d.f.object(d.named(path), node)
	if !ok {
		return
	}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		value := o.take(name)
		if value == nil {
			continue
		}
		at := name
		if path != "" {
			at = path + "." + name
		}
		d.check(at, value, t.Field(i).Type, depth+1)
	}
	o.done()
}

// named is what messages call the part at path.
func (d *Decoded) named(path string) string {
	if path == "" || path[0] == '[' {
		return d.what + path
	}
	return path
}

// checkTwice notes the keys that stand twice in a map, at any depth of node.
func (f *yamlFile) checkTwice(node *yaml.Node, depth int) {
	node = deref(node)
	if f.nodes++; f.nodes > maxNodes || depth > maxDepth {
		return
	}
	first := map[string]int{} // the line of each key
	for i, content := range node.Content {
		if node.Kind != yaml.MappingNode || i%2 == 1 {
			f.checkTwice(content, depth+1)
			continue
		}
		if line, twice := first[content.Value]; twice {
			f.fail(content, "%s is given twice, first in line %d", source.Quote(content.Value), line)
			continue
		}
		first[content.Value] = content.Line
	}
}

// lineWithin matches a line number anywhere in an error of the YAML decoder.
var lineWithin = regexp.MustCompile(`\bline (\d+): `)

// unread notes an error of the decoder about what check has let pass.
func (d *Decoded) unread(err error) {
	pos := source.Pos{File: d.f.name, Line: 1, Col: 1}
	msg := err.Error()
	if m := lineWithin.FindStringSubmatchIndex(msg); m != nil {
		if line, _ := strconv.Atoi(msg[m[2]:m[3]]); line > 0 && line <= len(d.f.lines) {
			pos.Line, pos.Col = line, indentOf(d.f.lines[line-1])+1
			msg = msg[m[1]:]
		}
	}
	d.f.failAt(pos, "cannot read %s: %s", d.what, msg)
}
