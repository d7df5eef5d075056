package convert

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// appendUnquoted appends what the inside of a checked JSON string stands for. A
// lone surrogate becomes U+FFFD, as in encoding/json.
func appendUnquoted(dst, raw []byte) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		var n int
		dst, n = appendEscape(dst, raw[i:])
		raw = raw[i+n:]
	}
}

// appendEscape appends the character of the escape that raw starts with and
// returns the escape's length.
func appendEscape(dst, raw []byte) ([]byte, int) {
	switch c := raw[1]; c {
	case 'b':
		return append(dst, '\b'), 2
	case 'f':
		return append(dst, '\f'), 2
	case 'n':
		return append(dst, '\n'), 2
	case 'r':
		return append(dst, '\r'), 2
	case 't':
		return append(dst, '\t'), 2
	case 'u':
		r := hexRune(raw)
		if !utf16.IsSurrogate(r) {
			return utf8.AppendRune(dst, r), 6
		}
		if len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
			if pair := utf16.DecodeRune(r, hexRune(raw[6:])); pair != utf8.RuneError {
				return utf8.AppendRune(dst, pair), 12
			}
		}
		return utf8.AppendRune(dst, utf8.RuneError), 6
	default:
		return append(dst, c), 2
	}
}

func hexRune(raw []byte) rune {
	var r rune
	for _, c := range raw[2:6] {
		r = r<<4 | hexValue(c)
	}
	return r
}

// appendQuoted appends s as a JSON string.
func appendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
