package source

import (
	"strings"
	"testing"
)

func TestClosest(t *testing.T) {
	known := []string{"rename", "move", "modify", "remove", "Path"}
	f := func(word, want string) {
		t.Helper()
		if got := Closest(word, known); got != want {
			t.Errorf("Closest(%q) = %q, want %q", word, got, want)
		}
	}

	f("renam", "rename")   // one is missing
	f("renname", "rename") // one is too many
	f("remame", "rename")  // one is wrong
	f("reanme", "rename")  // two are swapped
	f("RENAME", "rename")
	f("path", "Path")
	f("x", "")
	f("", "")
	f("rewrite", "") // it is as likely something else
	f(strings.Repeat("rename", 20), "")

	// Of several as near, the first in string order.
	if got := Closest("aaa", []string{"aac", "aab", "aad"}); got != "aab" {
		t.Errorf("got %q, want aab", got)
	}
	// What is short is near itself only.
	for _, short := range []string{"a", "ab"} {
		if got := Closest(short, []string{"x", "b", "ax", "abc", "ba"}); got != "" {
			t.Errorf("Closest(%q) = %q, want none", short, got)
		}
		if got := Closest(short, []string{strings.ToUpper(short)}); got != strings.ToUpper(short) {
			t.Errorf("Closest(%q) = %q, want it in upper case", short, got)
		}
	}
	if got := Closest("a", nil); got != "" {
		t.Errorf("got %q of no words", got)
	}
	long := strings.Repeat("x", maxSuggestBytes)
	if got := Closest(long[1:], []string{long, long + "x"}); got != long {
		t.Errorf("got %q, want the word of %d bytes", got, len(long))
	}
}

func TestSuggest(t *testing.T) {
	f := func(word string, known []string, want string) {
		t.Helper()
		if got := Suggest(word, known); got != want {
			t.Errorf("Suggest(%q) = %q, want %q", word, got, want)
		}
	}
	few := []string{"rename", "move"}
	f("renam", few, `; did you mean "rename"?`)
	f("x", few, "; known are rename, move")
	f("x", strings.Fields(strings.Repeat("word ", maxListed+1)), "")
	f("x", nil, "")
}

func TestQuote(t *testing.T) {
	f := func(s, wantQuote, wantCut string) {
		t.Helper()
		if got := Quote(s); got != wantQuote {
			t.Errorf("Quote(%q) = %s, want %s", s, got, wantQuote)
		}
		if got := Cut(s); got != wantCut {
			t.Errorf("Cut(%q) = %s, want %s", s, got, wantCut)
		}
	}
	a := strings.Repeat("a", 63)
	f("", `""`, "")
	f("a\n\"b", `"a\n\"b"`, "a\n\"b")
	f(a+"a", `"`+a+`a"`, a+"a")
	f(a+"aa", `"`+a+`a"…`, a+"a…")
	f(a+"éa", `"`+a+`"…`, a+"…") // no half é
	f(a[:61]+"😀a", `"`+a[:61]+`"…`, a[:61]+"…")
	f(strings.Repeat("\xbf", 65), `"`+strings.Repeat(`\xbf`, 64)+`"…`, strings.Repeat("\xbf", 64)+"…")
}
