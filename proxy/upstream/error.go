package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// The steps of a round trip that an Error names.
const (
	OpWait        = "wait for a free connection"
	OpDial        = "dial"
	OpHandshake   = "complete the TLS handshake"
	OpRequest     = "check the request"
	OpRequestBody = "read the request body" // from the caller's reader
	OpWrite       = "write the request"
	OpReadHead    = "read the head of the answer"
	OpReadBody    = "read the body of the answer"
)

// Error is a round trip that failed. It wraps the cause: a network error, a
// *ProtocolError, what the request's Body returned, or the context's cause.
type Error struct {
	Server string // its name
	Op     string // one of the Op constants

	// Sent is false if it is certain that the server saw nothing of the request, so
	// that it may be sent to another server whatever its method (its Body may have
	// been read all the same). True means that it may have been executed.
	Sent bool

	// Timeout is true if a time limit ended the exchange: ours or the context's.
	Timeout bool

	Err error
}

func (e *Error) Error() string {
	return fmt.Sprintf("upstream %s: cannot %s: %v", e.Server, e.Op, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// ProtocolError is an answer that is not HTTP/1.1 as RFC 9112 wants it. The
// connection it came on is closed.
type ProtocolError struct {
	What string // what is wrong
	Got  string // the beginning of the offending text, or ""
}

func (e *ProtocolError) Error() string {
	if e.Got == "" {
		return "malformed answer: " + e.What
	}
	return fmt.Sprintf("malformed answer: %s: %q", e.What, e.Got)
}

// malformed makes a ProtocolError that shows the beginning of got.
func malformed(what, got string) error {
	return &ProtocolError{What: what, Got: preview(got)}
}

// previewBytes is how much of a server's text an error shows.
const previewBytes = 80

func preview(s string) string {
	if len(s) > previewBytes {
		return s[:previewBytes] + "…"
	}
	return s
}

// TooLargeError is a document of a server that is larger than MVP will hold.
type TooLargeError struct {
	Method, Target string
	Limit          int64 // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the answer to %s %s is larger than %d bytes", e.Method, e.Target, e.Limit)
}

// isTimeout reports whether a time limit caused err.
func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		(errors.As(err, &ne) && ne.Timeout())
}

// isLocal reports whether err is a shortage on this machine, which says nothing
// about the server.
func isLocal(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
