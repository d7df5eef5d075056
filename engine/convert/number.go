package convert

import (
	"bytes"
	"math"
	"strconv"
)

// decimal is a JSON number as digits * 10^exp, the digits without zeros at
// either end. Zero has no digits, and no sign.
type decimal struct {
	digits   []byte
	exp      int
	negative bool
}

// maxExponent bounds what an exponent counts for. No number that Kubernetes
// stores comes near; beyond it all are alike.
const maxExponent = 1 << 30

// parseDecimal reads a checked JSON number. It uses buf for the digits.
func parseDecimal(buf, text []byte) decimal {
	var d decimal
	if text[0] == '-' {
		d.negative = true
		text = text[1:]
	}
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		d.exp = parseExponent(text[i+1:])
		text = text[:i]
	}
	buf = buf[:0]
	if i := bytes.IndexByte(text, '.'); i >= 0 {
		d.exp -= len(text) - i - 1
		buf = append(append(buf, text[:i]...), text[i+1:]...)
	} else {
		buf = append(buf, text...)
	}
	trimmed := bytes.TrimRight(buf, "0")
	d.exp += len(buf) - len(trimmed)
	d.digits = bytes.TrimLeft(trimmed, "0")
	if len(d.digits) == 0 {
		return decimal{}
	}
	return d
}

func parseExponent(text []byte) int {
	negative := text[0] == '-'
	if negative || text[0] == '+' {
		text = text[1:]
	}
	exp := 0
	for _, c := range text {
		if exp = exp*10 + int(c-'0'); exp > maxExponent {
			exp = maxExponent
			break
		}
	}
	if negative {
		return -exp
	}
	return exp
}

func (d decimal) equal(e decimal) bool {
	return d.negative == e.negative && d.exp == e.exp && bytes.Equal(d.digits, e.digits)
}

// numbersEqual compares checked JSON numbers by value, exactly.
func numbersEqual(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var bufA, bufB [64]byte
	return parseDecimal(bufA[:], a).equal(parseDecimal(bufB[:], b))
}

// appendInteger appends the checked JSON number text as an integer without
// fraction and exponent. It reports false when the number is no integer or does
// not fit the 64 bits that Kubernetes' integers have.
func appendInteger(dst, text []byte) ([]byte, bool) {
	var buf [64]byte
	d := parseDecimal(buf[:], text)
	const maxDigits = 19 // of an int64
	if d.exp < 0 || len(d.digits)+d.exp > maxDigits {
		return dst, false
	}
	var value uint64
	for _, c := range d.digits {
		value = value*10 + uint64(c-'0')
	}
	for range d.exp {
		value *= 10
	}
	switch {
	case d.negative && value <= -math.MinInt64:
		return strconv.AppendInt(dst, -int64(value), 10), true
	case !d.negative && value <= math.MaxInt64:
		return strconv.AppendUint(dst, value, 10), true
	}
	return dst, false
}

// isInteger reports whether the checked JSON number text is written as one.
func isInteger(text []byte) bool {
	return !bytes.ContainsAny(text, ".eE")
}

// isNumber reports whether text is a JSON number, whole.
func isNumber(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	end, f := checkNumber(text, 0)
	return f == noFault && end == len(text)
}
