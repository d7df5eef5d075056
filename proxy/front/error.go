package front

import (
	"errors"
	"fmt"
	"net/http"
)

// ErrShutdown is returned by Serve on a server that was shut down before.
var ErrShutdown = errors.New("cannot serve: the server was shut down")

// errExchangeOver is what a reader of a body gets that is later than its answer.
var errExchangeOver = errors.New("the exchange is over")

// BodyTooLargeError is the error of a request body above the reader's limit: a
// 413.
type BodyTooLargeError struct {
	Limit int64 // in bytes
}

func (e *BodyTooLargeError) Error() string {
	return fmt.Sprintf("the request body is larger than the limit of %d bytes", e.Limit)
}

// BodyError is a request body that could not be read to its end.
type BodyError struct {
	// Code is the HTTP status it deserves: 408 when the client sent nothing for
	// Config.BodyTimeout, 400 when the body was cut short or its chunks are
	// malformed.
	Code int
	Err  error
}

func (e *BodyError) Error() string { return fmt.Sprintf("cannot read the request body: %v", e.Err) }
func (e *BodyError) Unwrap() error { return e.Err }

// badResponseError is an answer of the handler that cannot be sent.
type badResponseError struct{ why string }

func (e *badResponseError) Error() string { return "cannot send the handler's answer: " + e.why }

// lengthError is a stream that did not write what its Length says.
type lengthError struct{ wrote, want int64 }

func (e *lengthError) Error() string {
	return fmt.Sprintf("the stream wrote %d bytes where its length says %d", e.wrote, e.want)
}

// Refusal is a connection or a request that never reached the handler.
type Refusal struct {
	// Reason is one of the Refused constants: few and fixed, fit for a label of
	// a metric.
	Reason string

	// Code is the HTTP status the client got, 0 when it got none.
	Code int

	// Message says what was wrong. It shows nothing of what the client sent but
	// single characters, so it may be logged.
	Message string
}

// What a client can be refused for.
const (
	RefusedConnections           = "connections"             // Config.MaxConnections
	RefusedConnectionsPerAddress = "connections_per_address" // Config.MaxConnectionsPerAddress
	RefusedHandshake             = "handshake"               // TLS failed, or not done in time
	RefusedMalformed             = "malformed"               // not HTTP/1.1 as this package wants it
	RefusedHeadTooLarge          = "head_too_large"          // Config.MaxHeadBytes, or too many lines
	RefusedTimeout               = "timeout"                 // Config.HeadTimeout
	RefusedUnsupported           = "unsupported"             // a version, method, coding or expectation
)

func malformed(message string) *Refusal {
	return &Refusal{Reason: RefusedMalformed, Code: http.StatusBadRequest, Message: message}
}

func unsupported(code int, message string) *Refusal {
	return &Refusal{Reason: RefusedUnsupported, Code: code, Message: message}
}
