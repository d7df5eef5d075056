package upstream

import (
	"io"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// Request is one request to a server.
type Request struct {
	// Method is an HTTP token, in the case in which it is to be sent.
	Method string

	// Target is the request target, sent byte for byte. It begins with "/".
	Target string

	// Host is the value of the Host line. Default: the server's host and port.
	Host string

	// Header are the other lines, sent in their order. Lines called Host,
	// Content-Length, Transfer-Encoding and Expect are left out: the first three are
	// made from the fields here, and a body is sent without asking. Hop-by-hop
	// lines are the caller's business.
	Header wire.Header

	// Body is read only if ContentLength is not 0, and by another goroutine unless it
	// is small, but never after RoundTrip failed or the response's Body.Close
	// returned. Both wait for a Read in progress to return; if Body is an io.Closer
	// it is closed first, which should end that Read. A context does not. RoundTrip
	// may have read it though it failed without sending anything: another try needs
	// the body anew.
	Body io.Reader

	// ContentLength is the length of Body: 0 for none, -1 if unknown, which sends it
	// chunked. A Body that ends earlier breaks the exchange; a longer one is cut.
	ContentLength int64

	// Long says that the answer may be open for hours, as that of a watch and of
	// `logs -f`: the request does not count towards MaxConnsPerServer and leaves the
	// connections of short requests alone.
	Long bool

	// Credential is what MVP presents of itself. Default: nothing.
	Credential Credential

	probe bool // MVP's own: neither counted nor held up by the requests of clients
}

// Response is a server's answer.
type Response struct {
	Status int    // 200 to 999
	Reason string // as sent, may be empty

	// Header are all lines as sent, hop-by-hop and framing ones included.
	Header wire.Header

	// ContentLength is how long Body is: 0 for none, as after HEAD and with 204 and
	// 304 whatever Header says; -1 if only its end will tell.
	ContentLength int64

	// Body is never nil. A Read returns what has arrived. Reading to io.EOF makes the
	// connection free for another request; Close before that closes it. Close must be
	// called in any case. It may be called from another goroutine, ends a Read that
	// is under way, and may be called again.
	Body io.ReadCloser
}

// Document is an answer that was read whole.
type Document struct {
	Status int
	Header wire.Header
	Body   []byte
}
