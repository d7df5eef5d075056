package front

import (
	"crypto/x509"
	"io"
	"net/netip"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// Request is one well-formed HTTP/1.1 request. Its strings and header lines are
// copies that may be kept; Body ends with the exchange.
//
// A Request made by hand, as tests do, works too: OnGone then does nothing and
// ShuttingDown returns nil.
type Request struct {
	// Method is a token of capital letters, not CONNECT or TRACE.
	Method string

	// Target is the request target byte for byte. It starts with exactly one
	// slash, is printable ASCII without '#', and its percent-escapes are
	// complete; nothing is decoded and no dot segment resolved.
	Target string

	// Header is every line as it was sent: order, case, repetitions, with Host
	// and the framing lines, values without surrounding white space.
	Header wire.Header

	// Host is the value of the one Host line.
	Host string

	// ContentLength is the length of Body in bytes, -1 when it is chunked.
	ContentLength int64

	// Body is the request body without its framing, never nil. It streams from
	// the connection: each Read waits for the client at most Config.BodyTimeout.
	// Errors other than io.EOF are a [*BodyError]. When the exchange ends a
	// pending Read is broken off and later ones fail, so another goroutine may
	// still hold it. Reads must not be concurrent with each other.
	Body io.Reader

	// RemoteAddr is the other end of the connection.
	RemoteAddr netip.AddrPort

	// PeerCertificates is the verified chain of the client's certificate, leaf
	// first; nil when it presented none. It is shared by all requests of the
	// connection and must not be changed.
	PeerCertificates []*x509.Certificate

	exchange *exchange
}

// ReadBody reads the whole body. Above limit bytes the error is a
// [*BodyTooLargeError], at once when the length was announced; what it holds
// meanwhile grows with what arrived, not with what was announced.
func (r *Request) ReadBody(limit int64) ([]byte, error) {
	return readAll(r.Body, r.ContentLength, limit)
}

// OnGone calls f once if the client's connection goes away while the request is
// being answered. The watch starts after the given delay (0: at once), so that a
// request that is answered sooner costs nothing, and not before the body has been
// read to its end: until then the loss shows as an error of Body.
//
// f runs on another goroutine, and never once the last bytes of the answer are
// on their way: they wait for it, so f must not block. Only the last f counts. A
// client that closes only its sending side counts as gone. One that sent bytes of
// a next request early is seen to be gone only when a write to it fails.
func (r *Request) OnGone(f func(), after time.Duration) {
	if r.exchange != nil {
		r.exchange.conn.guard(f, after)
	}
}

// ShuttingDown is closed when the server begins to shut down. A stream without
// an end of its own should then end, so that its client comes back elsewhere.
func (r *Request) ShuttingDown() <-chan struct{} {
	if r.exchange == nil {
		return nil
	}
	return r.exchange.conn.server.stopping
}
