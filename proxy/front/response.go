package front

import (
	"io"
	"net"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// Handler answers one request. It is called on the connection's goroutine and
// must not return nil. A panic in it, or in a function of its Response, is
// logged with its stack; the client gets a 500, or a broken-off answer when one
// had begun.
type Handler func(*Request) *Response

// Response is the answer to a request: Bytes, a Stream, no body or, after a 101,
// a Tunnel.
type Response struct {
	// Status is the status code: 200 to 999, or 101 with Tunnel.
	Status int

	// Reason is the reason phrase if HasReason says so, which may be empty; else it
	// is the usual one of the status. One with a line break makes the answer a 500.
	Reason    string
	HasReason bool

	// Header is sent line by line as given, in order, with nothing added: no
	// Date, Server or Content-Type. The framing is the front's: Connection,
	// Transfer-Encoding and Trailer lines are left out, and Content-Length is
	// replaced by the true one, except where there is no body to count (HEAD,
	// 304), where it is kept. A 101 is sent with all its lines.
	//
	// A name that is no token, or a value with a line break, makes the answer a
	// 500.
	Header wire.Header

	// Bytes is the whole body. It is not kept beyond the exchange.
	Bytes []byte

	// Stream writes the body when it is not nil; Bytes is then ignored. Each
	// Write goes out at once. A write fails when the client is gone or has read
	// nothing for Config.WriteTimeout. When Stream returns an error the
	// connection is closed without the end of the message, so that the client
	// sees that it was cut short. Stream is not called for a HEAD request, or
	// when the client is already known to be gone: clean up in Done.
	Stream func(w io.Writer) error

	// Length is the size of what Stream writes, in bytes, or -1 when it is not
	// known: the body is then chunked, and its head is sent before Stream is
	// called. With a known length the head goes out together with the first
	// Write. Writing another number of bytes breaks the answer off.
	Length int64

	// NoBody says that there is no body, whatever Bytes and Stream are: an answer
	// to HEAD, a 204, a 304.
	NoBody bool

	// Tunnel is called once the head of a 101 has been sent (or could not be:
	// client then fails at once), and owns the client's connection until it
	// returns. Bytes that the client sent right behind its request are read
	// first. It has no timeouts. Closing client ends a pending Read and Write.
	// Tunnel must return when client fails: that is how Shutdown ends it.
	Tunnel func(client net.Conn)

	// Close closes the connection after the answer.
	Close bool

	// Done is called exactly once when the answer has been written or could not
	// be, also after a panic and on shutdown, and for a Tunnel when it returned.
	// written is how many bytes of the body (of a Tunnel, towards the client)
	// were handed to the connection. err is nil only if that was the whole
	// answer. May be nil.
	Done func(written int64, err error)
}
