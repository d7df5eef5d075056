package policies

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// readJSON returns the one document of a .json file, as nodes of YAML, so that
// whatever reads documents reads it too. JSON is not quite a part of YAML:
// surrogate pairs, tabs before a key and keys of more than 1024 characters are
// JSON only.
func readJSON(file File) (*yamlFile, []*yaml.Node) {
	f := &yamlFile{name: file.Name, lines: splitLines(file.Data), bytes: true}
	data := bytes.TrimPrefix(file.Data, utf8BOM)
	r := &jsonReader{data: data, decoder: json.NewDecoder(bytes.NewReader(data)), line: 1}
	r.decoder.UseNumber()

	// Once the whole is checked, and its depth bounded, no token can be wrong.
	var whole json.RawMessage
	err := json.Unmarshal(data, &whole)
	var doc *yaml.Node
	if err == nil {
		doc, err = r.value()
	}
	if err != nil {
		f.notJSON(data, err)
		return f, nil
	}
	if isNull(doc) {
		return f, nil
	}
	return f, []*yaml.Node{doc}
}

// notJSON notes an error of the JSON decoder where it says.
func (f *yamlFile) notJSON(data []byte, err error) {
	text := source.Text{Code: string(data), Start: source.Pos{File: f.name, Line: 1, Col: 1}}
	offset, msg := 0, strings.TrimPrefix(err.Error(), "json: ")
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && syntax.Offset > 0 {
		offset = int(syntax.Offset) - 1 // it counts the byte that is wrong
		// The decoder takes that byte for the character.
		char, _ := utf8.DecodeRune(data[offset:])
		msg = strings.Replace(msg, strconv.QuoteRune(rune(data[offset])), strconv.QuoteRune(char), 1)
		msg = wantedInJSON.Replace(msg)
	}
	f.errs = append(f.errs, text.Error(offset, "not JSON: %s", msg))
}

// wantedInJSON makes of what the JSON decoder was doing what it wanted to see.
var wantedInJSON = strings.NewReplacer(
	"invalid character", "unexpected",
	" looking for beginning of object key string", ": a key in double quotes is wanted; no comma stands behind the last value",
	" looking for beginning of value", ": a value is wanted; JSON has no comments, and texts stand in double quotes",
	" after object key:value pair", `: "," or "}" is wanted`,
	" after array element", `: "," or "]" is wanted`,
	" after object key", `: ":" is wanted`,
	" after top-level value", ": a .json file holds one document; write several in YAML",
	" in string literal", ": in a text it is written as an escape, such as \\n",
)

// jsonReader makes nodes of JSON.
type jsonReader struct {
	data    []byte
	decoder *json.Decoder

	// Where the last value began; offsets are in data.
	offset, line, lineStart int
}

// value reads the next value. Its recursion is as deep as the text nests, which
// encoding/json bounds.
func (r *jsonReader) value() (*yaml.Node, error) {
	node := r.node()
	token, err := r.decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		node.Kind, node.Tag = yaml.SequenceNode, "!!seq"
		if token == '{' {
			node.Kind, node.Tag = yaml.MappingNode, "!!map"
		}
		return node, r.members(node)
	case string:
		node.Tag, node.Value, node.Style = "!!str", token, yaml.DoubleQuotedStyle
	case json.Number:
		node.Tag, node.Value = "!!float", token.String()
	case bool:
		node.Tag, node.Value = "!!bool", "false"
		if token {
			node.Value = "true"
		}
	default:
		node.Tag, node.Value = "!!null", "null"
	}
	return node, nil
}

// members reads what is in the object or array that node is, up to its end. The
// keys of an object are values like any other.
func (r *jsonReader) members(node *yaml.Node) error {
	for r.decoder.More() {
		member, err := r.value()
		if err != nil {
			return err
		}
		node.Content = append(node.Content, member)
	}
	_, err := r.decoder.Token()
	return err
}

// node returns a scalar node at the place of the next value.
func (r *jsonReader) node() *yaml.Node {
	start := int(r.decoder.InputOffset())
	for start < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[start]) >= 0 {
		start++
	}
	between := r.data[r.offset:start]
	if i := bytes.LastIndexByte(between, '\n'); i >= 0 {
		r.line += bytes.Count(between, []byte("\n"))
		r.lineStart = r.offset + i + 1
	}
	r.offset = start
	return &yaml.Node{Kind: yaml.ScalarNode, Line: r.line, Column: start - r.lineStart + 1}
}
