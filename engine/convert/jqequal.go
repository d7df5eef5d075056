package convert

import (
	"bytes"
	"unicode/utf8"
)

// equalJQ reports whether a and b are equal in jq, if that is easy to say: jq
// compares numbers that are no integers as float64s.
func (d *doc) equalJQ(a, b ref) (equal, known bool) {
	k := d.kind(a)
	if k != d.kind(b) {
		return false, true
	}
	x, y := d.raw(a), d.raw(b)
	switch k {
	case kindNull:
		return true, true
	case kindString:
		return bytes.Equal(x, y) || isEscaped(x, y) && validText(d.str(a)) == validText(d.str(b)), true
	case kindArray:
		return d.equalItemsJQ(a, b)
	case kindObject:
		return d.equalMembersJQ(a, b)
	case kindNumber:
		if bytes.Equal(x, y) {
			return true, true
		}
		m, plain := plainInt(x)
		n, plainToo := plainInt(y)
		return m == n, plain && plainToo
	default:
		return x[0] == y[0], true
	}
}

func (d *doc) equalItemsJQ(a, b ref) (equal, known bool) {
	m, n := d.first(a), d.first(b)
	for m != 0 && n != 0 {
		if equal, known = d.equalJQ(m, n); !equal || !known {
			return equal, known
		}
		m, n = d.next(m), d.next(n)
	}
	return m == n, true // both 0
}

func (d *doc) equalMembersJQ(a, b ref) (equal, known bool) {
	if d.isEmpty(a) || d.isEmpty(b) {
		return d.isEmpty(a) && d.isEmpty(b), true
	}
	x, y := d.members(a), d.members(b)
	if len(x.refs) != len(y.refs) {
		return false, true
	}
	for _, m := range x.refs {
		if y.byName[d.key(m)] == 0 {
			return false, utf8.ValidString(d.key(m)) // jq may see another name
		}
	}
	for _, m := range x.refs {
		if equal, known = d.equalJQ(m, y.byName[d.key(m)]); !equal || !known {
			return equal, known
		}
	}
	return true, true
}

// isEscaped reports whether one of two strings may say something else than its
// bytes.
func isEscaped(x, y []byte) bool {
	return bytes.IndexByte(x, '\\') >= 0 || bytes.IndexByte(y, '\\') >= 0 || !utf8.Valid(x) || !utf8.Valid(y)
}
