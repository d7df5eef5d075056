package policies

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// text returns the scalar node as an expression or program that knows its place.
//
// The places of plain and quoted scalars are those of their bytes in the file, see
// flowPlaces. Block scalars are taken from the file line by line. That makes a folded one (>) the same as a literal one (|), as it
// should be: both languages take a line's end for white space, and a comment
// ends there.
func (f *yamlFile) text(node *yaml.Node) *source.Text {
	node = deref(node)
	if f.fields != nil {
		return &source.Text{
			Code:  strings.TrimRight(node.Value, " \t\r\n"),
			Start: source.Pos{File: f.pos(node).File, Line: 1, Col: 1},
		}
	}
	if node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		if text := f.blockText(node); text != nil {
			return text
		}
	}
	pos := f.pos(node)
	if places := f.flowPlaces(node); places != nil {
		return &source.Text{Code: node.Value, Start: places[0].Pos, Places: places}
	}
	if node.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		pos.Col++
	}
	return &source.Text{Code: node.Value, Start: pos}
}

// blockText returns the lines of a block scalar without their indentation. It
// returns nil when the lines are not what the YAML parser read, as when a tag
// stands on a line of its own.
func (f *yamlFile) blockText(node *yaml.Node) *source.Text {
	first := node.Line // of the content, as an index: the line after the header
	indent, ok := f.blockIndent(first, node.Value)
	if !ok {
		return nil
	}
	var lines []string
	for _, line := range f.lines[first:] {
		line = strings.TrimRight(line, "\r")
		if isBlank(line) {
			lines = append(lines, line[min(indent, len(line)):])
			continue
		}
		if leadingSpaces(line) < indent {
			break
		}
		lines = append(lines, line[indent:])
	}
	for len(lines) > 0 && isBlank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	code := strings.Join(lines, "\n")
	if !slices.Equal(strings.Fields(code), strings.Fields(node.Value)) {
		return nil
	}
	return &source.Text{
		Code:   code,
		Start:  source.Pos{File: f.name, Line: first + 1, Col: indent + 1},
		Indent: indent,
	}
}

// blockIndent returns how far the lines of a block scalar are indented in the
// file: the difference between its first line there and in value. That holds
// also where the header gives the indentation (|2).
func (f *yamlFile) blockIndent(first int, value string) (indent int, ok bool) {
	for _, line := range f.lines[min(first, len(f.lines)):] {
		if isBlank(line) {
			continue
		}
		for content := range strings.Lines(value) {
			if !isBlank(content) {
				indent = leadingSpaces(line) - leadingSpaces(content)
				return indent, indent >= 0
			}
		}
		return 0, false
	}
	return 0, false
}

func leadingSpaces(line string) int {
	return len(line) - len(strings.TrimLeft(line, " "))
}
