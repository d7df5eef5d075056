package policies

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Bounds of one YAML file, beside its size.
const (
	// maxDepth is how deep a value in a rule may nest. The apiserver stops its
	// own decoding of objects far later; nobody writes a default by hand that deep.
	maxDepth = 64

	// maxNodes is how many nodes a file's values may have, aliases written out. It
	// keeps a "billion laughs" document from filling the memory: at about 100
	// bytes a node, 20 MB.
	maxNodes = 200_000

	// maxDocuments is how many documents a file may hold.
	maxDocuments = 1_000
)

// yamlFile is a YAML or JSON file being read: it knows the places of its nodes,
// and notes mistakes.
type yamlFile struct {
	name  string
	lines []string // without their ends
	bytes bool     // the columns of nodes are in bytes, else in characters
	nodes int      // values made so far, see maxNodes
	errs  source.Errors

	warnings source.Errors // of values that may be others than they look like

	// fields are the paths of the nodes, where those are the places; see placeByField.
	fields map[*yaml.Node]string

	// chars are the offsets of the characters of one line, by its number. A file of
	// one line is not gone through for each place.
	charsLine int
	chars     []int
}

// readYAML returns the documents of file. Documents after a syntax error are
// not found.
func readYAML(file File) (*yamlFile, []*yaml.Node) {
	f := &yamlFile{name: file.Name, lines: splitLines(file.Data)}
	var docs []*yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(file.Data, utf8BOM)))
	for {
		doc, err := nextDocument(decoder)
		if errors.Is(err, io.EOF) {
			return f, docs
		}
		if err != nil {
			f.syntaxError(err)
			return f, docs
		}
		if len(docs) == maxDocuments {
			f.failAt(source.Pos{File: f.name, Line: doc.Line, Col: 1}, "more than %d documents in one file: split it", maxDocuments)
			return f, docs
		}
		if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 && !isNull(doc.Content[0]) {
			docs = append(docs, doc.Content[0]) // nothing between two "---" is no document
		}
	}
}

// nextDocument returns the next document. The YAML library answers some broken
// inputs with a panic of its own; a policy file must not end the process.
func nextDocument(decoder *yaml.Decoder) (doc *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			doc, err = nil, fmt.Errorf("yaml: cannot read the document: %v", r)
		}
	}()
	doc = new(yaml.Node)
	if err := decoder.Decode(doc); err != nil {
		return nil, err
	}
	return doc, nil
}

// pos returns the place of node. The YAML library counts characters, a
// [source.Pos] bytes.
func (f *yamlFile) pos(node *yaml.Node) source.Pos {
	if f.fields != nil {
		return f.fieldPos(node)
	}
	pos := source.Pos{File: f.name, Line: max(node.Line, 1), Col: max(node.Column, 1)}
	if f.bytes || pos.Line > len(f.lines) {
		return pos
	}
	line := f.lines[pos.Line-1]
	if f.charsLine != pos.Line {
		f.charsLine, f.chars = pos.Line, f.chars[:0]
		for i := range line {
			f.chars = append(f.chars, i)
		}
	}
	if pos.Col > len(f.chars) {
		pos.Col = len(line) + 1
	} else {
		pos.Col = f.chars[pos.Col-1] + 1
	}
	return pos
}

func (f *yamlFile) fail(node *yaml.Node, format string, args ...any) {
	f.failAt(f.pos(node), format, args...)
}

func (f *yamlFile) failAt(pos source.Pos, format string, args ...any) {
	f.errs = append(f.errs, f.mistake(pos, format, args...))
}

func (f *yamlFile) warn(node *yaml.Node, format string, args ...any) {
	f.warnings = append(f.warnings, f.mistake(f.pos(node), format, args...))
}

func (f *yamlFile) mistake(pos source.Pos, format string, args ...any) *source.Error {
	e := &source.Error{Pos: pos, Msg: fmt.Sprintf(format, args...)}
	if pos.Line > 0 && pos.Line <= len(f.lines) {
		e.Line = strings.TrimRight(f.lines[pos.Line-1], "\r")
		e.Caret = min(pos.Col-1, len(e.Line))
	}
	return e
}

// deref returns the node that an alias stands for.
func deref(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		return node.Alias
	}
	return node
}

func isNull(node *yaml.Node) bool {
	node = deref(node)
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

// str returns the string that node is. Versions are the usual trap: a plain 1.10
// is a number.
func (f *yamlFile) str(what string, node *yaml.Node) (string, bool) {
	value := deref(node)
	if value.Kind == yaml.ScalarNode {
		switch value.ShortTag() {
		case "!!str", "!!timestamp":
			return value.Value, true
		case "!!int", "!!float", "!!bool":
			f.fail(node, `%s is %s: it must be a string; write "%[2]s", in quotes`, what, value.Value)
			return "", false
		}
	}
	f.fail(node, "%s is %s: it must be a string", what, describe(value))
	return "", false
}

// describe names the type of node.
func describe(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		return "a map"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(node):
		return "null"
	}
	switch node.ShortTag() {
	case "!!int", "!!float", "!!bool":
		return source.Cut(node.Value)
	}
	return source.Quote(node.Value)
}

// value returns node as a JSON value: nil, bool, string, json.Number with the
// digits as written, []any or map[string]any.
func (f *yamlFile) value(node *yaml.Node, depth int) (any, bool) {
	node = deref(node)
	if f.nodes++; f.nodes > maxNodes {
		if f.nodes == maxNodes+1 {
			f.fail(node, "the values of this file have more than %d parts, aliases written out", maxNodes)
		}
		return nil, false
	}
	if depth > maxDepth {
		f.fail(node, "the value nests deeper than %d", maxDepth)
		return nil, false
	}
	switch node.Kind {
	case yaml.SequenceNode:
		return f.listValue(node, depth)
	case yaml.MappingNode:
		return f.mapValue(node, depth)
	}
	return f.scalarValue(node)
}

func (f *yamlFile) listValue(node *yaml.Node, depth int) (any, bool) {
	list := make([]any, 0, len(node.Content))
	for _, item := range node.Content {
		v, ok := f.value(item, depth+1)
		if !ok {
			return nil, false
		}
		list = append(list, v)
	}
	return list, true
}

func (f *yamlFile) mapValue(node *yaml.Node, depth int) (any, bool) {
	before := len(f.errs)
	o, ok := f.object("the value", node)
	if !ok || len(f.errs) > before { // a key is no string, or given twice
		return nil, false
	}
	m := make(map[string]any, len(o.fields))
	for _, field := range o.fields {
		v, ok := f.value(field.value, depth+1)
		if !ok {
			return nil, false
		}
		m[field.name] = v
	}
	return m, true
}

func (f *yamlFile) scalarValue(node *yaml.Node) (any, bool) {
	switch node.ShortTag() {
	case "!!null":
		if node.Value == "" {
			f.warn(node, `the value is empty, which YAML reads as null: write null, or "" for an empty text`)
		}
		return nil, true
	case "!!bool":
		return strings.EqualFold(node.Value, "true"), true
	case "!!int", "!!float":
		return f.number(node)
	case "!!str", "!!timestamp":
		if node.Style == 0 && isOldBool(node.Value) {
			f.fail(node, `%s is true or false to some YAML parsers and text to others: write true, false or "%[1]s"`, node.Value)
			return nil, false
		}
		return node.Value, true
	}
	f.fail(node, "values of type %s are not supported: a rule's values are JSON", source.Quote(node.Tag))
	return nil, false
}

// isOldBool reports whether s is a boolean in YAML 1.1, which kubectl reads, and
// text in YAML 1.2.
func isOldBool(s string) bool {
	switch strings.ToLower(s) {
	case "y", "yes", "on", "n", "no", "off":
		return true
	}
	return false
}

// notationOf names how an integer is written that JSON would write in another way.
func notationOf(text string) string {
	digits := strings.ToLower(strings.TrimLeft(text, "+-"))
	switch {
	case strings.HasPrefix(digits, "0x"):
		return "a hexadecimal number"
	case strings.HasPrefix(digits, "0b"):
		return "a binary number"
	case strings.HasPrefix(digits, "0") && strings.Trim(digits, "0_") != "" && strings.Trim(digits, "o01234567_") == "":
		return "an octal number"
	}
	return "a number"
}

// number returns a number with the digits that the file has, as long as JSON
// could write it so; others (hexadecimal, 1_000, .5) as the numbers they are.
func (f *yamlFile) number(node *yaml.Node) (any, bool) {
	if text := node.Value; json.Valid([]byte(text)) {
		return json.Number(text), true
	}
	var read any
	if err := node.Decode(&read); err == nil {
		if value, err := json.Marshal(read); err == nil { // which writes no NaN and no infinity
			f.warn(node, `the value is %s: YAML 1.1, which kubectl reads, takes %s for %s; write %[1]s, or "%[2]s" in quotes for the text`, value, node.Value, notationOf(node.Value))
			return json.Number(value), true
		}
	}
	f.fail(node, "%s is not a number that JSON can write", node.Value)
	return nil, false
}
