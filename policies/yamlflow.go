package policies

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// maxFlowBytes is how long a scalar may be whose bytes are looked for: as long as an
// expression or a program may be.
const maxFlowBytes = 64 << 10

// flowPlaces returns where the bytes of a plain or quoted scalar stand in the file.
// The YAML library tells only where the scalar, or the tag or anchor before it,
// begins; so the file is read from there on, and each byte of the value is looked for
// in it. It returns nil when what is read is not that value.
func (f *yamlFile) flowPlaces(node *yaml.Node) []source.Place {
	if f.bytes || node.Value == "" || len(node.Value) > maxFlowBytes || node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return nil
	}
	pos := f.pos(node)
	if pos.Line > len(f.lines) {
		return nil
	}
	r := &flowReader{file: f, line: pos.Line - 1, col: pos.Col - 1, value: node.Value}
	r.skipProperties()
	if quote := node.Style & (yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle); quote != 0 {
		r.quote = '\''
		if quote == yaml.DoubleQuotedStyle {
			r.quote = '"'
		}
		if r.peek() != r.quote {
			return nil
		}
		r.col++
	}
	if !r.read() {
		return nil
	}
	return r.places
}

// flowReader reads a plain or quoted scalar whose value is known.
type flowReader struct {
	file      *yamlFile
	line, col int // counted from 0, of the next byte
	quote     byte
	value     string
	at        int // of the value, what has been found
	places    []source.Place
}

// peek returns the next byte of the line, '\n' at its end.
func (r *flowReader) peek() byte {
	line := strings.TrimRight(r.file.lines[r.line], "\r")
	if r.col >= len(line) {
		return '\n'
	}
	return line[r.col]
}

// nextLine goes to the text of the next line.
func (r *flowReader) nextLine() bool {
	if r.line+1 >= len(r.file.lines) {
		return false
	}
	r.line++
	r.col = indentOf(r.file.lines[r.line])
	return true
}

// skipProperties goes past a tag and an anchor, to the scalar.
func (r *flowReader) skipProperties() {
	for {
		switch r.peek() {
		case '&', '!':
			for c := r.peek(); c != ' ' && c != '\t' && c != '\n'; c = r.peek() {
				r.col++
			}
		case ' ', '\t':
			r.col++
		case '\n', '#':
			if !r.nextLine() {
				return
			}
		default:
			return
		}
	}
}

// read finds all bytes of the value, one after the other.
func (r *flowReader) read() bool {
	for r.at < len(r.value) {
		c := r.peek()
		rest := r.value[r.at:]
		switch {
		case c == '\n' || (c == ' ' || c == '\t') && r.blankToEnd():
			if !r.fold() {
				return false
			}
		case r.quote == '"' && c == '\\':
			if !r.escape() {
				return false
			}
		case r.quote == '\'' && c == '\'':
			if rest[0] != '\'' {
				return false
			}
			r.found(1, 2)
		case rest[0] == c:
			r.found(1, 1)
		default:
			return false
		}
	}
	return true
}

// found notes that n bytes of the value stand in the next width bytes of the file.
func (r *flowReader) found(n, width int) {
	if len(r.places) == 0 || !r.follows() {
		r.places = append(r.places, source.Place{
			Offset: r.at,
			Pos:    source.Pos{File: r.file.name, Line: r.line + 1, Col: r.col + 1},
		})
	}
	r.at += n
	r.col += width
}

// follows reports whether the next byte stands where the last place says.
func (r *flowReader) follows() bool {
	last := r.places[len(r.places)-1]
	return last.Pos.Line == r.line+1 && last.Pos.Col+r.at-last.Offset == r.col+1
}

func (r *flowReader) blankToEnd() bool {
	line := r.file.lines[r.line]
	return r.col <= len(line) && isBlank(line[r.col:])
}

// fold goes over the end of a line, which is a space in the value, or over n empty
// lines, which are n line ends.
func (r *flowReader) fold() bool {
	end := *r
	breaks := 0
	for r.peek() == '\n' || r.blankToEnd() {
		if !r.nextLine() {
			return false
		}
		breaks++
	}
	want := " "
	if breaks > 1 {
		want = strings.Repeat("\n", breaks-1)
	}
	if !strings.HasPrefix(r.value[r.at:], want) {
		return false
	}
	line, col := r.line, r.col
	r.line, r.col = end.line, end.col
	r.found(len(want), 0)
	r.line, r.col = line, col
	return true
}

// escapeLength is how long the escapes are that have digits, with their backslash.
var escapeLength = map[byte]int{'x': 4, 'u': 6, 'U': 10}

// escape goes over an escape in double quotes. The line that one ends goes on in the
// next without a space.
func (r *flowReader) escape() bool {
	r.col++
	c := r.peek()
	if c == '\n' {
		return r.nextLine()
	}
	r.col--
	n := len(firstRune(r.value[r.at:]))
	width := 2
	if escapeLength[c] > 0 {
		width = escapeLength[c]
	}
	r.found(n, width)
	return true
}

// firstRune returns the first character of s.
func firstRune(s string) string {
	for i := range s {
		if i > 0 {
			return s[:i]
		}
	}
	return s
}
