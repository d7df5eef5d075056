package source

import (
	"strconv"
	"unicode/utf8"
)

// maxQuoted is how much of a text that somebody else wrote a message repeats, in
// bytes.
const maxQuoted = 64

// Quote returns s in quotes for a message, cut short after 64 bytes.
func Quote(s string) string {
	short := clip(s, maxQuoted)
	if len(short) == len(s) {
		return strconv.Quote(s)
	}
	return strconv.Quote(short) + "…"
}

// Cut returns s without quotes for a message, cut short after 64 bytes.
func Cut(s string) string {
	short := clip(s, maxQuoted)
	if len(short) == len(s) {
		return s
	}
	return short + "…"
}

// clip returns the start of s, at most most bytes of it, and does not cut a
// character apart.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for end := most; end > max(0, most-utf8.UTFMax); end-- {
		if utf8.RuneStart(s[end]) {
			return s[:end]
		}
	}
	return s[:most] // no UTF-8
}
