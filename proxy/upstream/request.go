package upstream

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// inlineBodyBytes is how large a body may be to be read first and then sent together
// with its head, in one write, without another goroutine. Most writes of Kubernetes
// objects are smaller. It is below the 64 KiB that a TCP receiver takes before its
// program reads anything, so that this write cannot deadlock with a server that
// answers early and reads no more.
const inlineBodyBytes = 32 << 10

// check refuses what would not be one request on the wire. Whoever fills a Request
// has checked its client's input before; this is the last line against smuggling.
func (r *Request) check() error {
	switch {
	case !validToken(r.Method):
		return fmt.Errorf("bad method %q", preview(r.Method))
	case !validTarget(r.Target):
		return fmt.Errorf("bad request target %q: want a path without spaces and control characters", preview(r.Target))
	case !validValue(r.Host):
		return fmt.Errorf("bad host %q", preview(r.Host))
	case r.ContentLength < -1:
		return fmt.Errorf("bad content length %d", r.ContentLength)
	case r.ContentLength != 0 && r.Body == nil:
		return errors.New("a content length without a body")
	}
	for i := range r.Header {
		if !validToken(r.Header[i].Name) || !validValue(r.Header[i].Value) {
			return fmt.Errorf("bad header line %q", preview(r.Header[i].Name))
		}
	}
	return nil
}

func validTarget(target string) bool {
	if target == "" || target[0] != '/' {
		return false
	}
	for i := range len(target) {
		if target[i] <= ' ' || target[i] == 0x7f {
			return false
		}
	}
	return true
}

// requests holds buffers for a head and an inline body.
var requests = sync.Pool{New: func() any { b := make([]byte, 0, 8<<10); return &b }}

// putRequest gives a buffer back, unless it grew so large that it is better freed.
func putRequest(b *[]byte) {
	const keep = 64 << 10
	if cap(*b) <= keep {
		requests.Put(b)
	}
}

// appendHead appends the request's head: the request line, Host, the given lines, the
// token unless it is "", and exactly one line of framing where the method or a body
// asks for one.
func (r *Request) appendHead(b []byte, host, token string) []byte {
	b = append(b, r.Method...)
	b = append(b, ' ')
	b = append(b, r.Target...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, orDefault(r.Host, host)...)
	b = append(b, "\r\n"...)
	for i := range r.Header {
		if isOurs(r.Header[i].Name) {
			continue
		}
		b = append(b, r.Header[i].Name...)
		b = append(b, ": "...)
		b = append(b, r.Header[i].Value...)
		b = append(b, "\r\n"...)
	}
	if token != "" {
		b = append(b, "Authorization: Bearer "...)
		b = append(b, token...)
		b = append(b, "\r\n"...)
	}
	switch {
	case r.ContentLength < 0:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	case r.ContentLength > 0 || wantsLength(r.Method):
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, r.ContentLength, 10)
		b = append(b, "\r\n"...)
	}
	return append(b, "\r\n"...)
}

// isOurs reports whether a header line is made from other fields of a Request.
func isOurs(name string) bool {
	switch len(name) {
	case len("Host"):
		return strings.EqualFold(name, "Host")
	case len("Expect"):
		return strings.EqualFold(name, "Expect")
	case len("Content-Length"):
		return strings.EqualFold(name, "Content-Length")
	case len("Transfer-Encoding"):
		return strings.EqualFold(name, "Transfer-Encoding")
	}
	return false
}

// wantsLength reports whether a request without a body must say so (RFC 9110
// section 8.6).
func wantsLength(method string) bool {
	return method == "POST" || method == "PUT" || method == "PATCH"
}

// appendInline appends a small body; streamed says that there is one of another
// sort, still to be read.
func (r *Request) appendInline(b []byte) (_ []byte, streamed bool, err error) {
	if r.ContentLength == 0 {
		return b, false, nil
	}
	if r.ContentLength < 0 || r.ContentLength > inlineBodyBytes {
		return b, true, nil
	}
	n := len(b)
	b = slices.Grow(b, int(r.ContentLength))[:n+int(r.ContentLength)]
	if _, err = io.ReadFull(r.Body, b[n:]); errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return b, false, err
}
