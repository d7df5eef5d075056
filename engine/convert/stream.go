package convert

import (
	"errors"
	"fmt"
	"io"
)

// stream reads JSON from a reader, holding no more of it than the value at hand.
// It only finds where values end; whether they are JSON is for checkValue.
type stream struct {
	r   io.Reader
	buf []byte
	err error // what ended r

	// The bytes before mark are done with; pos is the next byte to look at. Both
	// move when the buffer is refilled.
	mark, pos int

	// pass, if set, is handed what lies between mark and pos before a refill, so
	// that a value of any size can go by.
	pass func([]byte) error
}

var (
	errValueTooLarge = fmt.Errorf("an object in it is larger than %d bytes", MaxAnswerObjectBytes)
	errNotObject     = errors.New("it is not a JSON object")
	errNotJSON       = errors.New("it is not valid JSON")
)

// fill reads more. Its error is io.EOF at the end.
func (s *stream) fill() error {
	if s.err != nil {
		return s.err
	}
	if s.pass != nil && s.pos > s.mark {
		if err := s.pass(s.buf[s.mark:s.pos]); err != nil {
			return err
		}
		s.mark = s.pos
	}
	if s.mark == len(s.buf) {
		s.buf, s.mark, s.pos = s.buf[:0], 0, 0
	}
	if len(s.buf) == cap(s.buf) {
		if err := s.makeRoom(); err != nil {
			return err
		}
	}
	for range maxEmptyReads {
		n, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		s.err = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	s.err = io.ErrNoProgress
	return s.err
}

// makeRoom moves what is held to the front, or to a larger buffer.
func (s *stream) makeRoom() error {
	held := s.buf[s.mark:]
	if len(held) > MaxAnswerObjectBytes {
		return errValueTooLarge
	}
	into := s.buf[:0]
	if len(held) > cap(s.buf)/2 {
		into = make([]byte, 0, 2*cap(s.buf))
	}
	s.buf = append(into, held...)
	s.pos -= s.mark
	s.mark = 0
	return nil
}

// need is fill where the text cannot end.
func (s *stream) need() error {
	err := s.fill()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// space skips white space and returns the byte after it without consuming it.
// Its error is io.EOF when there is none.
func (s *stream) space() (byte, error) {
	for {
		if s.pos = skipSpace(s.buf, s.pos); s.pos < len(s.buf) {
			return s.buf[s.pos], nil
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
}

// inside is space where the text cannot end.
func (s *stream) inside() (byte, error) {
	c, err := s.space()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return c, err
}

// value consumes the value that starts at pos.
func (s *stream) value() error {
	switch s.buf[s.pos] {
	case '"':
		return s.string()
	case '{', '[':
		s.pos++
		return s.rest(1)
	default:
		return s.scalar()
	}
}

// document consumes the value that starts at pos and makes it the document d, with
// the members of its member open (see [doc.parseStart]). Nearly every object is in the
// buffer whole, or after one more read; its bytes need not be looked at first to find
// where it ends.
func (s *stream) document(d *doc, open string) error {
	for again := true; s.buf[s.pos] == '{'; again = false {
		end, f := d.parseStart(s.buf[s.pos:], open)
		if f == noFault {
			s.pos += end
			return nil
		}
		if !again || f != truncated || s.fill() != nil {
			break
		}
	}
	start := s.pos - s.mark
	if err := s.value(); err != nil {
		return err
	}
	return d.parse(s.buf[s.mark+start : s.pos])
}

// scalar consumes a number or word, up to what must come after it in an object
// or array.
func (s *stream) scalar() error {
	start := s.pos - s.mark
	for {
		for ; s.pos < len(s.buf); s.pos++ {
			switch c := s.buf[s.pos]; {
			case c == ',' || c == '}' || c == ']' || isSpace(c):
				if s.pos-s.mark == start {
					return errNotJSON
				}
				return nil
			}
		}
		if err := s.need(); err != nil {
			return err
		}
	}
}

// string consumes a string.
func (s *stream) string() error {
	s.pos++
	for {
		s.pos = skipPlain(s.buf, s.pos)
		switch {
		case s.pos >= len(s.buf):
		case s.buf[s.pos] == '"':
			s.pos++
			return nil
		case s.buf[s.pos] != '\\':
			s.pos++
			continue
		case s.pos+1 < len(s.buf):
			s.pos += 2
			continue
		}
		if err := s.need(); err != nil {
			return err
		}
	}
}

// rest consumes what is left of a value after depth open brackets.
func (s *stream) rest(depth int) error {
	for {
		for s.pos < len(s.buf) {
			switch s.buf[s.pos] {
			case '"':
				if err := s.string(); err != nil {
					return err
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					s.pos++
					return nil
				}
			}
			s.pos++
		}
		if err := s.need(); err != nil {
			return err
		}
	}
}

// member goes to the value of the next member of the object that pos is in and
// returns its name; "" and false after the last, with the bracket consumed.
func (s *stream) member(first bool) (name string, more bool, err error) {
	c, err := s.inside()
	if err != nil {
		return "", false, err
	}
	switch {
	case c == '}':
		s.pos++
		return "", false, nil
	case !first && c == ',':
		s.pos++
		if c, err = s.inside(); err != nil {
			return "", false, err
		}
	case !first:
		return "", false, errNotJSON
	}
	if c != '"' {
		return "", false, errNotJSON
	}
	start := s.pos - s.mark
	if err := s.string(); err != nil {
		return "", false, err
	}
	raw := s.buf[s.mark+start : s.pos]
	if end, f := checkString(raw, 0); f != noFault || end != len(raw) {
		return "", false, errNotJSON
	}
	name = string(appendUnquoted(nil, raw[1:len(raw)-1]))
	if c, err = s.inside(); err != nil {
		return "", false, err
	}
	if c != ':' {
		return "", false, errNotJSON
	}
	s.pos++
	_, err = s.inside()
	return name, true, err
}
