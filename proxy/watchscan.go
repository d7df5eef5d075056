package proxy

import (
	"bytes"
	"encoding/json"
	"iter"
)

// jsonScan steps over JSON without decoding it. It trusts the text to be JSON
// where it need not look: a text that is none may be taken for one, but nothing is
// read out of bounds and every text is gone through once.
type jsonScan struct {
	b   []byte
	i   int
	bad bool // the text is no JSON, or ends too early
}

// members goes through the members of the object that begins at s, giving the name
// of each with s at its value. A value that the loop did not consume is skipped. A
// value that is no object has no members, and is skipped.
func (s *jsonScan) members() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if s.space(); s.peek() != '{' {
			s.skip()
			return
		}
		s.i++
		if s.space(); s.peek() == '}' {
			s.i++
			return
		}
		for {
			key := s.text()
			s.space()
			if !s.take(':') {
				return
			}
			s.space()
			at := s.i
			if !yield(key) {
				return
			}
			if s.i == at {
				s.skip()
			}
			s.space()
			if s.peek() == '}' {
				s.i++
				return
			}
			if !s.take(',') {
				return
			}
			s.space()
		}
	}
}

// peek is the next byte; 0 at the end.
func (s *jsonScan) peek() byte {
	if s.bad || s.i >= len(s.b) {
		return 0
	}
	return s.b[s.i]
}

func (s *jsonScan) take(c byte) bool {
	if s.peek() != c {
		s.bad = true
		return false
	}
	s.i++
	return true
}

func (s *jsonScan) space() { s.i += blanks(s.b[s.i:]) }

// blanks is how many bytes of white space b begins with.
func blanks(b []byte) int {
	for i, c := range b {
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return i
		}
	}
	return len(b)
}

// text consumes a string and returns what it says; nil of a value that is none.
func (s *jsonScan) text() []byte {
	if s.peek() != '"' {
		s.skip()
		return nil
	}
	start := s.i
	if s.i = skipString(s.b, start); s.i < 0 {
		s.i, s.bad = len(s.b), true
		return nil
	}
	raw := s.b[start:s.i]
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	var plain string
	if json.Unmarshal(raw, &plain) != nil {
		s.bad = true
	}
	return []byte(plain)
}

// skip consumes a value of any sort.
func (s *jsonScan) skip() {
	switch s.peek() {
	case '{', '[':
		s.nested()
	case '"':
		if s.i = skipString(s.b, s.i); s.i < 0 {
			s.i, s.bad = len(s.b), true
		}
	default:
		start := s.i
		for s.i < len(s.b) && scalar(s.b[s.i]) {
			s.i++
		}
		s.bad = s.bad || s.i == start
	}
}

// nested consumes an object or an array.
func (s *jsonScan) nested() {
	open := 0
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case '"':
			if s.i = skipString(s.b, s.i); s.i < 0 {
				s.i, s.bad = len(s.b), true
			}
			continue
		case '{', '[':
			open++
		case '}', ']':
			open--
		}
		if s.i++; open == 0 {
			return
		}
	}
	s.bad = true
}

func scalar(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E'
}

// skipString returns the position after the string that begins at i, -1 if it does
// not end.
func skipString(b []byte, i int) int {
	for i++; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		end, slashes := i+n, 0
		for end-1-slashes >= i && b[end-1-slashes] == '\\' {
			slashes++
		}
		i = end + 1
		if slashes%2 == 0 {
			return i
		}
	}
}

// depth looks for the end of an object that comes piece by piece. The zero depth is
// before its first byte.
type depth struct {
	seen     int // bytes that were looked at
	open     int // brackets
	inString bool
	escaped  bool // the next byte belongs to a backslash
}

// end returns how long the object at the beginning of b is, 0 if it has not ended.
// Each call is given all of it again, and looks at what it has not seen.
func (d *depth) end(b []byte) int {
	for ; d.seen < len(b); d.seen++ {
		c := b[d.seen]
		switch {
		case d.escaped:
			d.escaped = false
		case d.inString:
			d.escaped, d.inString = c == '\\', c != '"'
		case c == '"':
			d.inString = true
		case c == '{', c == '[':
			d.open++
		case c == '}', c == ']':
			if d.open--; d.open <= 0 {
				d.seen++
				return d.seen
			}
		}
	}
	return 0
}
