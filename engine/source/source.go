// Package source says where in a policy file a text stands and shows a mistake
// at its place: file, line, column, the line itself and a caret. It also has what
// messages about a mistake need: quotations cut short, and hints at what was meant.
//
// It reads no file and knows no language.
package source

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Pos is a place in a policy file. Line and Col count from 1, Col in bytes. The
// zero Pos is no place at all.
type Pos struct {
	File      string
	Line, Col int
}

func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Text is an expression or program and the place in its file where it starts.
// An expression inside a YAML document has the document as its File.
type Text struct {
	// Code is the text to compile, without the indentation that the file may
	// put before its lines.
	Code string

	// Start is where the first byte of Code stands.
	Start Pos

	// Indent is how many bytes stand before each line of Code but the first: the
	// indentation of a YAML block scalar. Zero for a file of its own.
	Indent int

	// Places, where they are set, say in the place of Indent where the parts of Code
	// stand that do not simply follow each other in the file: a quoted text with
	// escapes, or one on several lines. In the order of their offsets, of which the
	// first is 0.
	Places []Place
}

// Place says where the bytes of a [Text] from Offset on stand, up to the next place.
type Place struct {
	Offset int
	Pos    Pos
}

// At returns the place in the file of the byte at offset in t.Code. An offset
// past the end is the end.
func (t *Text) At(offset int) Pos {
	before := t.Code[:min(max(offset, 0), len(t.Code))]
	if t.Places != nil {
		i, found := slices.BinarySearchFunc(t.Places, len(before), func(p Place, offset int) int { return cmp.Compare(p.Offset, offset) })
		if !found {
			i--
		}
		pos := t.Places[i].Pos
		pos.Col += len(before) - t.Places[i].Offset
		return pos
	}
	line := strings.Count(before, "\n")
	col := len(before) - strings.LastIndexByte(before, '\n') // counts from 1
	pos := t.Start
	pos.Line += line
	if line == 0 {
		pos.Col += col - 1
	} else {
		pos.Col = col + t.Indent
	}
	return pos
}

// Offset returns the offset in t.Code of line and column, which count from 1, the
// column in characters, as compilers report them. A column past the end of its
// line is that end, a line past the last one the end of t.Code.
func (t *Text) Offset(line, col int) int {
	offset := 0
	for range line - 1 {
		i := strings.IndexByte(t.Code[offset:], '\n')
		if i < 0 {
			return len(t.Code)
		}
		offset += i + 1
	}
	for range col - 1 {
		if offset >= len(t.Code) || t.Code[offset] == '\n' {
			break
		}
		_, size := utf8.DecodeRuneInString(t.Code[offset:])
		offset += size
	}
	return offset
}

// AtLineCol returns the place in the file of line and column of t.Code, as Offset
// takes them.
func (t *Text) AtLineCol(line, col int) Pos { return t.At(t.Offset(line, col)) }

// Error returns the mistake msg at the byte at offset in t.Code. The line it
// shows is that of t.Code, so the caret is right also inside a YAML block.
func (t *Text) Error(offset int, format string, args ...any) *Error {
	offset = min(max(offset, 0), len(t.Code))
	start := strings.LastIndexByte(t.Code[:offset], '\n') + 1
	line, _, _ := strings.Cut(t.Code[start:], "\n")
	return &Error{Pos: t.At(offset), Line: line, Caret: offset - start, Msg: fmt.Sprintf(format, args...)}
}

// Error is a mistake in a policy file.
type Error struct {
	Pos Pos

	// Line is the text of the line, or as much of it as is the expression's;
	// empty when there is no line to show.
	Line string

	// Caret is the offset in Line, in bytes, of what is wrong.
	Caret int

	// Msg says what is wrong and, where it is known, what is wanted.
	Msg string
}

// maxShown is how much of a line a message shows, in bytes: a screen's width.
const maxShown = 160

func (e *Error) Error() string {
	head := e.Msg
	if pos := e.Pos.String(); pos != "" {
		head = pos + ": " + e.Msg
	}
	if e.Line == "" {
		return head
	}
	line := strings.TrimRight(e.Line, "\r")
	caret := min(max(e.Caret, 0), len(line))
	if caret > maxShown-20 {
		cut := caret - maxShown/2
		for cut > 0 && !utf8.RuneStart(line[cut]) {
			cut--
		}
		line, caret = line[cut:], caret-cut
	}
	line = clip(line, maxShown)
	caret = min(caret, len(line))
	pad := strings.Map(func(r rune) rune {
		if r == '\t' {
			return '\t'
		}
		return ' '
	}, line[:caret])
	return head + "\n  " + line + "\n  " + pad + "^"
}

// Errors are all mistakes of a load, in the order of their places.
type Errors []*Error

func (e Errors) Error() string {
	texts := make([]string, len(e))
	for i, err := range e {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "\n")
}

// Sort orders e by file, line and column.
func (e Errors) Sort() {
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
}

// Err returns e as an error, or nil when there is no mistake.
func (e Errors) Err() error {
	if len(e) == 0 {
		return nil
	}
	e.Sort()
	return e
}
