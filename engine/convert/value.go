package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

var (
	errTooLarge = errors.New("the value is too large")
	errTooDeep  = errors.New("the value is nested too deep")
)

// encoder writes Go values as JSON, keys sorted, and stops at a size: jq values
// may share their parts, so that little memory can be a lot of text.
type encoder struct {
	dst   []byte
	limit int      // of len(dst)
	keys  []string // of the objects around the value at hand
}

func (e *encoder) value(v any, depth int) error {
	if len(e.dst) > e.limit {
		return errTooLarge
	}
	switch v := v.(type) {
	case nil:
		e.dst = append(e.dst, "null"...)
	case bool:
		e.dst = strconv.AppendBool(e.dst, v)
	case int:
		e.dst = strconv.AppendInt(e.dst, int64(v), 10)
	case int64:
		e.dst = strconv.AppendInt(e.dst, v, 10)
	case float64:
		e.float(v)
	case *big.Int:
		e.dst = v.Append(e.dst, 10)
	case json.Number:
		if !isNumber([]byte(v)) {
			return fmt.Errorf("%s is not a JSON number", source.Quote(string(v)))
		}
		e.dst = append(e.dst, v...)
	case string:
		e.dst = appendQuoted(e.dst, v)
	case []any:
		return e.array(v, depth+1)
	case map[string]any:
		return e.object(v, depth+1)
	default:
		return fmt.Errorf("%T is not a JSON value", v)
	}
	return nil
}

// float writes integers without exponent: a server's integer fields refuse
// 1e+06. What JSON cannot say is written as jq does.
func (e *encoder) float(f float64) {
	switch {
	case math.IsNaN(f):
		e.dst = append(e.dst, "null"...)
	case f > math.MaxFloat64:
		e.float(math.MaxFloat64)
	case f < -math.MaxFloat64:
		e.float(-math.MaxFloat64)
	case f == math.Trunc(f) && math.Abs(f) < 1e18:
		e.dst = strconv.AppendInt(e.dst, int64(f), 10)
	default:
		e.dst = strconv.AppendFloat(e.dst, f, 'g', -1, 64)
	}
}

func (e *encoder) array(v []any, depth int) error {
	if depth > MaxDepth {
		return errTooDeep
	}
	e.dst = append(e.dst, '[')
	for i, item := range v {
		if i > 0 {
			e.dst = append(e.dst, ',')
		}
		if err := e.value(item, depth); err != nil {
			return err
		}
	}
	e.dst = append(e.dst, ']')
	return nil
}

func (e *encoder) object(v map[string]any, depth int) error {
	if depth > MaxDepth {
		return errTooDeep
	}
	e.dst = append(e.dst, '{')
	start := len(e.keys)
	for key := range v {
		e.keys = append(e.keys, key)
	}
	end := len(e.keys)
	slices.Sort(e.keys[start:])
	for i := start; i < end; i++ {
		key := e.keys[i]
		if i > start {
			e.dst = append(e.dst, ',')
		}
		e.dst = append(appendQuoted(e.dst, key), ':')
		if err := e.value(v[key], depth); err != nil {
			return err
		}
	}
	e.keys = e.keys[:start]
	e.dst = append(e.dst, '}')
	return nil
}

// appendCoerced appends the scalar raw as a value of type t: "30" is the integer
// 30, 30 the string "30", 3.0 the integer 3. It reports false, and appends
// nothing, when raw has no equal of that type. A null, and a value that has the
// type, stays as it is.
func appendCoerced(dst, raw []byte, t Type) ([]byte, bool) {
	k := kindOf(raw[0])
	if k == kindNull || hasType(raw, t) {
		return append(dst, raw...), true
	}
	switch t {
	case TypeInteger:
		return appendExactInteger(dst, raw)
	case TypeNumber:
		if text, ok := numberIn(raw, k); ok {
			return append(dst, text...), true
		}
	case TypeBoolean:
		if s := string(stringIn(raw, k)); s == "true" || s == "false" {
			return append(dst, s...), true
		}
	case TypeString:
		if k == kindNumber || k == kindBool {
			dst = append(append(dst, '"'), raw...)
			return append(dst, '"'), true
		}
	}
	return dst, false
}

// appendExactInteger appends the number raw, or the one that the string raw holds,
// as an integer. It reports false, and appends nothing, when raw is not exactly an
// integer: a string has to be written as one, and a number may have a fraction or
// exponent, but no value between integers.
func appendExactInteger(dst, raw []byte) ([]byte, bool) {
	k := kindOf(raw[0])
	text, ok := numberIn(raw, k)
	if !ok {
		return dst, false
	}
	out, ok := appendInteger(dst, text)
	if ok && k == kindString && !bytes.Equal(out[len(dst):], text) {
		return dst, false // "1e3" would come back as "1000"
	}
	return out, ok
}

// numberIn returns the number that raw is or, as a string, holds.
func numberIn(raw []byte, k kind) ([]byte, bool) {
	if k == kindNumber {
		return raw, true
	}
	text := stringIn(raw, k)
	return text, isNumber(text)
}

// stringIn returns what the string raw says; nothing when it is none.
func stringIn(raw []byte, k kind) []byte {
	if k != kindString {
		return nil
	}
	inside := raw[1 : len(raw)-1]
	if bytes.IndexByte(inside, '\\') >= 0 {
		inside = appendUnquoted(nil, inside)
	}
	return inside
}

// hasType reports whether the value written as raw is one of type t.
func hasType(raw []byte, t Type) bool {
	switch k := kindOf(raw[0]); t {
	case TypeString:
		return k == kindString
	case TypeInteger:
		return k == kindNumber && isInteger(raw)
	case TypeNumber:
		return k == kindNumber
	case TypeBoolean:
		return k == kindBool
	case TypeObject:
		return k == kindObject
	case TypeArray:
		return k == kindArray
	case TypeIntOrString:
		return k == kindString || k == kindNumber && isInteger(raw)
	default:
		return true
	}
}

// writtenAs returns lit, a value that a rule writes, as type t wants it, or lit
// itself when it has no such form. An int-or-string takes the string "1" as 1.
func writtenAs(lit []byte, t Type) []byte {
	if t == TypeIntOrString {
		t = TypeInteger
	}
	if lit == nil || t == TypeUnknown || hasType(lit, t) {
		return lit
	}
	if out, ok := appendCoerced(nil, lit, t); ok {
		return out
	}
	return lit
}

// equal reports whether nodes r of d and s of e are the same JSON value: numbers
// by value, objects regardless of order.
func (d *doc) equal(r ref, e *doc, s ref) bool {
	if d.kind(r) != e.kind(s) {
		return false
	}
	switch d.kind(r) {
	case kindNull:
		return true
	case kindBool:
		return d.raw(r)[0] == e.raw(s)[0]
	case kindNumber:
		return numbersEqual(d.raw(r), e.raw(s))
	case kindString:
		return bytes.Equal(d.raw(r), e.raw(s)) || d.str(r) == e.str(s)
	case kindArray:
		return d.equalArrays(r, e, s)
	default:
		return d.equalObjects(r, e, s)
	}
}

func (d *doc) equalArrays(r ref, e *doc, s ref) bool {
	a, b := d.first(r), e.first(s)
	for a != 0 && b != 0 {
		if !d.equal(a, e, b) {
			return false
		}
		a, b = d.next(a), e.next(b)
	}
	return a == b // both 0
}

func (d *doc) equalObjects(r ref, e *doc, s ref) bool {
	a, b := d.members(r), e.members(s)
	if len(a.refs) != len(b.refs) {
		return false
	}
	for _, m := range a.refs {
		other := b.byName[d.key(m)]
		if other == 0 || !d.equal(m, e, other) {
			return false
		}
	}
	return true
}
