package source

import (
	"strings"
	"testing"
)

// block is a YAML block scalar: its lines stand four bytes to the right.
var block = &Text{
	Code:   "ab\n\n  é😀x",
	Start:  Pos{File: "a.yaml", Line: 7, Col: 5},
	Indent: 4,
}

func TestTextAt(t *testing.T) {
	f := func(text *Text, offset int, want string) {
		t.Helper()
		if got := text.At(offset).String(); got != want {
			t.Errorf("At(%d) = %s, want %s", offset, got, want)
		}
	}

	f(block, 0, "a.yaml:7:5")
	f(block, 2, "a.yaml:7:7") // the end of the first line
	f(block, 3, "a.yaml:8:5") // an empty line
	f(block, 4, "a.yaml:9:5")
	f(block, 6, "a.yaml:9:7")
	f(block, 8, "a.yaml:9:9") // columns are in bytes: é has two
	f(block, len(block.Code), "a.yaml:9:14")

	// What is outside is at the nearer end.
	f(block, -1, "a.yaml:7:5")
	f(block, 99, "a.yaml:9:14")

	// Only the first line of a plain scalar stands to the right.
	plain := &Text{Code: "a\nb", Start: Pos{File: "a.yaml", Line: 1, Col: 10}}
	f(plain, 0, "a.yaml:1:10")
	f(plain, 2, "a.yaml:2:1")
}

func TestTextAtLineCol(t *testing.T) {
	f := func(line, col, wantOffset int, want string) {
		t.Helper()
		if got := block.Offset(line, col); got != wantOffset {
			t.Errorf("Offset(%d, %d) = %d, want %d", line, col, got, wantOffset)
		}
		if got := block.AtLineCol(line, col).String(); got != want {
			t.Errorf("AtLineCol(%d, %d) = %s, want %s", line, col, got, want)
		}
	}

	f(1, 1, 0, "a.yaml:7:5")
	f(1, 2, 1, "a.yaml:7:6")
	f(3, 3, 6, "a.yaml:9:7")   // é
	f(3, 4, 8, "a.yaml:9:9")   // 😀, after the two bytes of é
	f(3, 5, 12, "a.yaml:9:13") // x, after the four of 😀
	f(3, 6, 13, "a.yaml:9:14")

	// A column past its line is the line's end, a line past the last the text's.
	f(1, 99, 2, "a.yaml:7:7")
	f(2, 2, 3, "a.yaml:8:5")
	f(99, 1, 13, "a.yaml:9:14")
	f(0, 0, 0, "a.yaml:7:5")

	broken := &Text{Code: "\xff\xfeb", Start: Pos{Line: 1, Col: 1}}
	if got := broken.Offset(1, 3); got != 2 {
		t.Errorf("a byte that is no text counts as a character: got offset %d, want 2", got)
	}
}

func TestPosString(t *testing.T) {
	f := func(pos Pos, want string) {
		t.Helper()
		if got := pos.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(Pos{File: "a.cel", Line: 2, Col: 3}, "a.cel:2:3")
	f(Pos{File: "a.cel"}, "a.cel")
	f(Pos{}, "")
}

// TestError compares whole messages.
func TestError(t *testing.T) {
	f := func(err *Error, want ...string) {
		t.Helper()
		if got := err.Error(); got != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
		}
	}
	text := func(code string) *Text { return &Text{Code: code, Start: Pos{File: "f", Line: 1, Col: 1}} }

	f(block.Error(6, "a %s", "mistake"),
		"a.yaml:9:7: a mistake",
		"    é😀x",
		"    ^")
	f(text("a\tb").Error(2, "m"), "f:1:3: m", "  a\tb", "   \t^") // the tab of the line is in the pad too
	f(text("éx").Error(2, "m"), "f:1:3: m", "  éx", "   ^")       // a pad as wide as é, not as long
	f(text("ab\r\ncd").Error(0, "m"), "f:1:1: m", "  ab", "  ^")  // the CR of a line does not show
	f(text("ab\r\ncd").Error(3, "m"), "f:1:4: m", "  ab", "    ^")
	f(text("ab\ncd").Error(99, "m"), "f:2:3: m", "  cd", "    ^")
	f(text("a"+strings.Repeat("\r", 300)).Error(301, "m"), "f:1:302: m", "  a", "   ^")
	f(text("").Error(0, "m"), "f:1:1: m") // there is no line to show

	long := strings.Repeat("a", 100) + "é" + strings.Repeat("b", 300)
	f(text(long).Error(0, "m"), "f:1:1: m", "  "+long[:160], "  ^")
	f(text(long).Error(181, "m"), "f:1:182: m", "  é"+strings.Repeat("b", 158), "  "+strings.Repeat(" ", 80)+"^") // from 80 before, and no half é
	f(text(long).Error(len(long), "m"), "f:1:403: m", "  "+strings.Repeat("b", 80), "  "+strings.Repeat(" ", 80)+"^")

	f(&Error{Msg: "no place"}, "no place")
	f(&Error{Pos: Pos{File: "f"}, Msg: "m"}, "f: m")
	f(&Error{Pos: Pos{File: "f", Line: 1, Col: 9}, Line: "ab", Caret: 8, Msg: "m"}, "f:1:9: m", "  ab", "    ^")
}

func TestErrors(t *testing.T) {
	at := func(file string, line, col int, msg string) *Error {
		return &Error{Pos: Pos{File: file, Line: line, Col: col}, Msg: msg}
	}
	errs := Errors{
		at("b", 1, 1, "7"), at("a", 10, 1, "5"), at("a", 2, 10, "3"), at("a", 2, 9, "2"), at("a", 10, 1, "6"), at("a", 0, 0, "1"), at("a", 9, 1, "4"),
	}
	want := "a: 1\na:2:9: 2\na:2:10: 3\na:9:1: 4\na:10:1: 5\na:10:1: 6\nb:1:1: 7"
	if got := errs.Err().Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := (Errors{}).Err(); err != nil {
		t.Errorf("no mistakes are the error %v", err)
	}
}

// FuzzText checks that every place of any text is inside it and can be shown.
func FuzzText(f *testing.F) {
	f.Add("ab\n\n  é😀x", 3, 2)
	f.Add("\xff\r\n\t", 1, 1)
	f.Add(strings.Repeat("é", 200), 1, 190)
	f.Fuzz(func(t *testing.T, code string, line, col int) {
		text := &Text{Code: code, Start: Pos{File: "f", Line: 1, Col: 1}}
		line, col = min(line, 1000), min(col, 1000)
		offset := text.Offset(line, col)
		if offset < 0 || offset > len(code) {
			t.Fatalf("Offset(%d, %d) = %d of %d bytes", line, col, offset, len(code))
		}
		pos := text.At(offset)
		lines := strings.Split(code, "\n")
		if pos.Line > len(lines) || pos.Col > len(lines[pos.Line-1])+1 {
			t.Errorf("offset %d of %q is at %v", offset, code, pos)
		}
		if err := text.Error(offset, "m"); !strings.HasPrefix(err.Error(), pos.String()+": m") {
			t.Errorf("got %q, want it to start with %v", err, pos)
		}
	})
}

// TestPlaces has a text in single quotes, with one doubled in it, that goes on a line below.
func TestPlaces(t *testing.T) {
	text := Text{Code: "it's b", Start: Pos{"f", 3, 10}, Places: []Place{
		{0, Pos{"f", 3, 10}},
		{3, Pos{"f", 3, 14}}, // behind the two quotes
		{4, Pos{"f", 3, 15}},
		{5, Pos{"f", 4, 5}},
	}}
	for offset, want := range []string{"f:3:10", "f:3:11", "f:3:12", "f:3:14", "f:3:15", "f:4:5", "f:4:6"} {
		if got := text.At(offset).String(); got != want {
			t.Errorf("offset %d is at %s, want %s", offset, got, want)
		}
	}
}
