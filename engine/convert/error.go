package convert

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// ErrNeedsObject says that a patch cannot be rewritten exactly by itself: read
// the object, convert it, patch it in the client's version, convert it back, and
// write the difference.
var ErrNeedsObject = errors.New("the patch can only be converted together with its object")

// Error is the failure of a conversion on one body.
type Error struct {
	Policy string
	Pos    source.Pos // of the rule or program that failed; zero when none did
	Path   string     // of the field, in the sender's version; "" when it is the whole body
	Msg    string     // what is wrong and what is wanted

	// Invalid says that the client's data is at fault: answer 400, or 422 when
	// Path names a field. Otherwise the policy failed, or the server's answer is
	// not what it should be.
	Invalid bool

	Err error // the cause, or nil
}

// Error returns, for a client's mistake, what the apiserver would say of it;
// otherwise where the policy failed, and why.
func (e *Error) Error() string {
	switch {
	case e.Invalid && e.Path != "":
		return e.Path + ": " + e.Msg
	case e.Invalid:
		return e.Msg
	case e.Pos.String() != "":
		return fmt.Sprintf("%v: policy %s: %s", e.Pos, e.Policy, e.Msg)
	default:
		return fmt.Sprintf("policy %s: %s", e.Policy, e.Msg)
	}
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// badBody is the error for a body that is no JSON object, or not the JSON it
// should be: the client's fault on the way to the server, else the server's.
func (c *Converter) badBody(dir Direction, format string, args ...any) *Error {
	e := &Error{Policy: c.spec.Policy, Invalid: dir == ToServer}
	e.Msg = fmt.Sprintf(format, args...)
	return e
}

// notJSON is badBody for a text that the scanner refused.
func (c *Converter) notJSON(dir Direction, err error) *Error {
	whose := "the server's answer"
	if dir == ToServer {
		whose = "the request body"
	}
	e := c.badBody(dir, "cannot convert %s: %v", whose, err)
	e.Err = err
	return e
}

// invalid is the error for a value of the client's at p in the version that
// step s works in.
func (x *run) invalid(s *step, p path, msg string) *Error {
	p = x.c.clientPath(s.number, p)
	var b strings.Builder
	level := 0
	for _, e := range p {
		index := -1
		if e.each && level < len(x.index) {
			index = x.index[level]
			level++
		}
		appendElem(&b, e, index)
	}
	return &Error{Policy: x.c.spec.Policy, Pos: s.pos, Path: b.String(), Msg: msg, Invalid: true}
}

// wrongType is the error for a value that cannot have the type that s gives it.
func (x *run) wrongType(s *step, r ref) *Error {
	msg := fmt.Sprintf("Invalid value: %s: must be %s", source.Cut(string(x.d.raw(r))), s.typ.article())
	if s.renames() {
		msg += fmt.Sprintf(" (policy %s turns it into %s)", x.c.spec.Policy, s.to)
	} else {
		msg += fmt.Sprintf(" (policy %s converts it)", x.c.spec.Policy)
	}
	return x.invalid(s, s.from, msg)
}

// keyPath is keys as a path.
func keyPath(keys []string) path {
	p := make(path, len(keys))
	for i, key := range keys {
		p[i].key = key
	}
	return p
}
