package convert

import (
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"
)

// need is a part of an object: all of the value, or the members named, each as
// far as its own need says. A value that is no object is always needed whole.
type need struct {
	all     bool
	members map[string]*need
}

// keys returns the names of the members that n names, sorted.
func (n *need) keys() []string { return slices.Sorted(maps.Keys(n.members)) }

// member returns the need of the member key, which is there from now on.
func (n *need) member(key string) *need {
	if n.members == nil {
		n.members = map[string]*need{}
	}
	m := n.members[key]
	if m == nil {
		m = &need{}
		n.members[key] = m
	}
	return m
}

// wholeNeed is the need of everything.
var wholeNeed = need{all: true}

// jqValue returns what n says of the node r as a value for gojq. Nothing of d is
// in it, so that d may change while it is in use.
func (d *doc) jqValue(r ref, n *need) any {
	if d.kind(r) != kindObject || n.all {
		return d.jqWhole(r)
	}
	object := make(map[string]any, len(n.members))
	for key, m := range n.members {
		if c := d.find(r, key); c != 0 {
			object[key] = d.jqValue(c, m)
		}
	}
	return object
}

// jqWhole is jqValue of all of r.
func (d *doc) jqWhole(r ref) any {
	if !d.nodes[r].dirty {
		return decodeJQ(d.raw(r))
	}
	if d.kind(r) == kindArray {
		list := []any{}
		for c := d.first(r); c != 0; c = d.next(c) {
			list = append(list, d.jqWhole(c))
		}
		return list[:len(list):len(list)]
	}
	object := map[string]any{}
	for c := d.first(r); c != 0; c = d.next(c) {
		object[validText(d.key(c))] = d.jqWhole(c)
	}
	return object
}

// jqDecoder makes checked JSON values for gojq. It is as encoding/json with
// UseNumber, but an integer that is written the one way that Go writes it, and
// fits an int, is an int, but 0.
type jqDecoder struct {
	b    []byte
	text string // b as a string: strings and numbers are parts of it
	pos  int
}

func decodeJQ(raw []byte) any {
	d := jqDecoder{b: raw, text: string(raw)}
	return d.value()
}

func (d *jqDecoder) value() any {
	switch d.b[d.pos] {
	case '{':
		return d.object()
	case '[':
		return d.array()
	case '"':
		return d.string()
	case 't':
		d.pos += len("true")
		return true
	case 'f':
		d.pos += len("false")
		return false
	case 'n':
		d.pos += len("null")
		return nil
	default:
		return d.number()
	}
}

func (d *jqDecoder) object() any {
	object := map[string]any{}
	for d.pos = skipSpace(d.b, d.pos+1); d.b[d.pos] != '}'; {
		key := d.string()
		d.pos = skipSpace(d.b, d.pos) + 1 // the colon
		d.pos = skipSpace(d.b, d.pos)
		object[key] = d.value()
		d.separator()
	}
	d.pos++
	return object
}

func (d *jqDecoder) array() any {
	list := []any{}
	for d.pos = skipSpace(d.b, d.pos+1); d.b[d.pos] != ']'; {
		list = append(list, d.value())
		d.separator()
	}
	d.pos++
	return list[:len(list):len(list)] // nobody can append to it in place
}

// separator steps over the comma after a member, if there is one.
func (d *jqDecoder) separator() {
	d.pos = skipSpace(d.b, d.pos)
	if d.b[d.pos] == ',' {
		d.pos = skipSpace(d.b, d.pos+1)
	}
}

func (d *jqDecoder) string() string {
	start := d.pos + 1
	end := skipPlain(d.b, start)
	if d.b[end] == '"' {
		d.pos = end + 1
		return validText(d.text[start:end])
	}
	d.pos = skipString(d.b, d.pos)
	return validText(string(appendUnquoted(nil, d.b[start:d.pos-1])))
}

// validText returns s with U+FFFD for each byte that is no UTF-8.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

func (d *jqDecoder) number() any {
	start := d.pos
	d.pos = skipValue(d.b, start)
	// gojq makes -0 of a negated json.Number 0, and 0 of an int.
	if i, ok := plainInt(d.b[start:d.pos]); ok && i != 0 {
		return i
	}
	return json.Number(d.text[start:d.pos])
}

// maxPlainDigits is how many digits always fit an int64.
const maxPlainDigits = 18

// plainInt returns the JSON number raw if it is an integer in its usual spelling,
// and not too long.
func plainInt(raw []byte) (int, bool) {
	digits := raw
	if raw[0] == '-' {
		digits = raw[1:]
	}
	if len(digits) > maxPlainDigits || digits[0] == '0' && len(raw) > 1 {
		return 0, false
	}
	n := 0
	for _, c := range digits {
		if !isDigit(c) {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	if len(digits) != len(raw) {
		n = -n
	}
	return n, true
}
