package wire

import (
	"fmt"
	"strings"
	"testing"
)

// header reads lines such as "A: 1", separated by "; ".
func header(text string) Header {
	var h Header
	for line := range strings.SplitSeq(text, "; ") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			h.Add(name, value)
		}
	}
	return h
}

func (h Header) text() string {
	lines := make([]string, len(h))
	for i, field := range h {
		lines[i] = field.Name + ": " + field.Value
	}
	return strings.Join(lines, "; ")
}

func TestLookUp(t *testing.T) {
	h := header("accept: a; Via: x; ACCEPT: b")
	if got := fmt.Sprintf("%q %q %q %t %t", h.Get("Accept"), h.Values("Accept"), h.Get("None"), h.Has("via"), h.Has("vi")); got != `"a" ["a" "b"] "" true false` {
		t.Errorf("look-ups gave %s", got)
	}
}

func TestHasToken(t *testing.T) {
	f := func(value string, want bool) {
		t.Helper()
		if got := header("Connection: "+value).HasToken("connection", "upgrade"); got != want {
			t.Errorf("Connection: %s has the token: %t, want %t", value, got, want)
		}
	}

	f("Upgrade", true)
	f("keep-alive, Upgrade", true)
	f("keep-alive,\tUPGRADE ,close", true)
	f("Upgraded", false)
	f("close", false)
	f("", false)
}

func TestChange(t *testing.T) {
	f := func(before string, change func(*Header), want string) {
		t.Helper()
		h := header(before)
		change(&h)
		if got := h.text(); got != want {
			t.Errorf("%q became %q, want %q", before, got, want)
		}
	}

	f("A: 1; B: 2; a: 3", func(h *Header) { h.Set("A", "4") }, "A: 4; B: 2")
	f("B: 2", func(h *Header) { h.Set("A", "4") }, "B: 2; A: 4")
	f("A: 1; B: 2; a: 3", func(h *Header) { h.DelName("a") }, "B: 2")
	f("A: 1; B: 2", func(h *Header) {
		clone := h.Clone(1)
		clone.DelName("A")
	}, "A: 1; B: 2")
}

func TestEndToEnd(t *testing.T) {
	f := func(before, want string) {
		t.Helper()
		h := header(before)
		h.EndToEnd(func(name string) bool { return strings.EqualFold(name, "Authorization") })
		if got := h.text(); got != want {
			t.Errorf("%q became %q, want %q", before, got, want)
		}
	}

	f("Accept: a; Connection: close", "Accept: a")
	f("Connection: X-Mine, x-other; X-Mine: 1; X-Other: 2; X-Third: 3", "X-Third: 3")
	f("Connection: authorization; Authorization: b", "Authorization: b")
	f("Upgrade: SPDY/3.1; TE: trailers; Trailer: X; Transfer-Encoding: chunked; Keep-Alive: 5; Proxy-Authorization: p", "")
	f("Connection: , ,; A: 1", "A: 1")
}
