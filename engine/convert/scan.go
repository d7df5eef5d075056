package convert

import (
	"encoding/binary"
	"math/bits"
)

// The scanner works on bytes and positions. A check is made once for every byte
// of a body (checkValue); what has been checked is stepped over faster
// (skipValue). Strings need not be valid UTF-8, as in encoding/json.Valid: their
// bytes pass as they are and the server judges them.

// fault is what is wrong with a text that is not JSON.
type fault uint8

const (
	noFault   fault = iota
	badSyntax       // a byte that cannot stand there
	truncated       // the text ends too early
	tooDeep         // nested deeper than MaxDepth
)

func (f fault) String() string {
	switch f {
	case badSyntax:
		return "invalid character"
	case truncated:
		return "unexpected end"
	case tooDeep:
		return "nested too deep"
	default:
		return "no fault"
	}
}

// skipSpace returns the position of the first byte at or after i that is not
// JSON white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool {
	return c <= ' ' && (c == ' ' || c == '\n' || c == '\t' || c == '\r')
}

// checkValue checks the value that starts at b[i], which lies inside depth
// others, and returns the position after it, or that of the fault.
func checkValue(b []byte, i, depth int) (int, fault) {
	if i >= len(b) {
		return i, truncated
	}
	switch b[i] {
	case '{':
		return checkObject(b, i, depth+1)
	case '[':
		return checkArray(b, i, depth+1)
	case '"':
		return checkString(b, i)
	case 't':
		return checkWord(b, i, "true")
	case 'f':
		return checkWord(b, i, "false")
	case 'n':
		return checkWord(b, i, "null")
	default:
		return checkNumber(b, i)
	}
}

func checkObject(b []byte, i, depth int) (int, fault) {
	if depth > MaxDepth {
		return i, tooDeep
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1, noFault
	}
	for {
		var f fault
		if i, f = checkKey(b, i); f != noFault {
			return i, f
		}
		if i, f = checkValue(b, i, depth); f != noFault {
			return i, f
		}
		if i = skipSpace(b, i); i >= len(b) {
			return i, truncated
		}
		switch b[i] {
		case ',':
			i = skipSpace(b, i+1)
		case '}':
			return i + 1, noFault
		default:
			return i, badSyntax
		}
	}
}

// checkKey checks a member's name and colon at b[i] and returns where its value
// starts.
func checkKey(b []byte, i int) (int, fault) {
	if i >= len(b) {
		return i, truncated
	}
	if b[i] != '"' {
		return i, badSyntax
	}
	i, f := checkString(b, i)
	if f != noFault {
		return i, f
	}
	if i = skipSpace(b, i); i >= len(b) {
		return i, truncated
	}
	if b[i] != ':' {
		return i, badSyntax
	}
	return skipSpace(b, i+1), noFault
}

func checkArray(b []byte, i, depth int) (int, fault) {
	if depth > MaxDepth {
		return i, tooDeep
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1, noFault
	}
	for {
		var f fault
		if i, f = checkValue(b, i, depth); f != noFault {
			return i, f
		}
		if i = skipSpace(b, i); i >= len(b) {
			return i, truncated
		}
		switch b[i] {
		case ',':
			i = skipSpace(b, i+1)
		case ']':
			return i + 1, noFault
		default:
			return i, badSyntax
		}
	}
}

func checkWord(b []byte, i int, word string) (int, fault) {
	for j := range len(word) {
		if i+j >= len(b) {
			return i + j, truncated
		}
		if b[i+j] != word[j] {
			return i + j, badSyntax
		}
	}
	return i + len(word), noFault
}

func checkString(b []byte, i int) (int, fault) {
	for i++; ; {
		if i = skipPlain(b, i); i >= len(b) {
			return i, truncated
		}
		switch {
		case b[i] == '"':
			return i + 1, noFault
		case b[i] < ' ':
			return i, badSyntax
		}
		var f fault
		if i, f = checkEscape(b, i); f != noFault {
			return i, f
		}
	}
}

func checkEscape(b []byte, i int) (int, fault) {
	if i+1 >= len(b) {
		return len(b), truncated
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, noFault
	case 'u':
		for j := i + 2; j < i+6; j++ {
			if j >= len(b) {
				return j, truncated
			}
			if hexValue(b[j]) < 0 {
				return j, badSyntax
			}
		}
		return i + 6, noFault
	default:
		return i + 1, badSyntax
	}
}

func hexValue(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c && c <= 'f':
		return rune(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return rune(c-'A') + 10
	default:
		return -1
	}
}

// skipPlain returns the position of the first byte at or after i that ends a run
// of plain string bytes: a quote, a backslash, a control character, or len(b).
// It looks at eight bytes at a time; a byte's high bit in stops is set when the
// byte is one of those (exact for the lowest such byte, which is all that counts).
func skipPlain(b []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for len(b)-i >= 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote := w ^ ones*'"'
		slash := w ^ ones*'\\'
		stops := ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w) & highs
		if stops != 0 {
			return i + bits.TrailingZeros64(stops)/8
		}
		i += 8
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' ' {
		i++
	}
	return i
}

func checkNumber(b []byte, i int) (int, fault) {
	if b[i] == '-' {
		i++
	}
	var f fault
	switch {
	case i >= len(b):
		return i, truncated
	case b[i] == '0':
		i++
	default:
		if i, f = checkDigits(b, i); f != noFault {
			return i, f
		}
	}
	if i < len(b) && b[i] == '.' {
		if i, f = checkDigits(b, i+1); f != noFault {
			return i, f
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return checkDigits(b, i)
	}
	return i, noFault
}

// checkDigits wants at least one digit at b[i].
func checkDigits(b []byte, i int) (int, fault) {
	if i >= len(b) {
		return i, truncated
	}
	if !isDigit(b[i]) {
		return i, badSyntax
	}
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return i, noFault
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// skipValue returns the position after the value at b[i], in a text that has
// been checked.
func skipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	default:
		for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
			i++
		}
		return i
	}
}

func skipString(b []byte, i int) int {
	for i++; ; {
		i = skipPlain(b, i)
		if b[i] == '"' {
			return i + 1
		}
		i += 2
	}
}

func skipNested(b []byte, i int) int {
	for depth := 0; ; {
		switch b[i] {
		case '"':
			i = skipString(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
}
