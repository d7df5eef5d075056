package front

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"
)

// bufferSize holds the head of an ordinary answer and one copy buffer of 32 KiB
// with its chunk framing, so that the two go out as one write.
const bufferSize = 36 << 10

// maxChunkFrame is what a chunk of a buffer's size adds: its length in hex and
// two line ends.
const maxChunkFrame = 4 + 2 + 2

var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, bufferSize)
	return &b
}}

// putBuffer returns a buffer, unless a huge head made it grow.
func putBuffer(b *[]byte) {
	if cap(*b) == bufferSize {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}

// How the end of an answer's body is told.
type framing int

const (
	noFraming   framing = iota // there is none, and no length to tell
	keepLength                 // there is none; Content-Length stays as given
	fixedLength                // Content-Length
	chunked                    // Transfer-Encoding: chunked
)

// frame says how resp is sent: its framing, the length, and whether a body
// follows.
func frame(resp *Response, isHead bool) (f framing, length int64, hasBody bool) {
	stream := resp.Stream != nil
	switch {
	case resp.Status == fasthttp.StatusNoContent:
		return noFraming, 0, false
	case resp.Status == fasthttp.StatusNotModified, isHead && (resp.NoBody || !stream && len(resp.Bytes) == 0):
		return keepLength, 0, false
	case isHead && stream && resp.Length < 0:
		return noFraming, 0, false
	case resp.NoBody:
		return fixedLength, 0, false
	case stream && resp.Length < 0:
		return chunked, 0, true
	case stream:
		return fixedLength, resp.Length, !isHead
	}
	return fixedLength, int64(len(resp.Bytes)), !isHead
}

func (resp *Response) isTunnel() bool {
	return resp.Status == http.StatusSwitchingProtocols && resp.Tunnel != nil
}

// check says why resp cannot be sent, if so.
func check(resp *Response) error {
	if resp == nil {
		return &badResponseError{"it is nil"}
	}
	if (resp.Status < 200 || resp.Status > 999) && !resp.isTunnel() {
		return &badResponseError{fmt.Sprintf("its status is %d", resp.Status)}
	}
	if badValueByte(resp.Reason) >= 0 {
		return &badResponseError{"its reason phrase has a control character"}
	}
	for _, f := range resp.Header {
		if !isToken(f.Name) {
			return &badResponseError{fmt.Sprintf("%q is not a header name", f.Name)}
		}
		if badValueByte(f.Value) >= 0 {
			return &badResponseError{"the value of " + f.Name + " has a control character"}
		}
	}
	return nil
}

// appendHead appends the head of an answer: the given lines, with the framing in
// the place of the first Content-Length line, or at the end.
func appendHead(b []byte, resp *Response, f framing, length int64, closing bool) []byte {
	b = appendStatusLine(b, resp)
	framed := f == noFraming || f == keepLength
	for _, field := range resp.Header {
		switch {
		case strings.EqualFold(field.Name, "Content-Length"):
			if _, ok := parseLength(field.Value); f == keepLength && ok {
				b = appendLine(b, field.Name, field.Value)
				f = noFraming // once
			}
			if !framed {
				b = appendFraming(b, f, length)
				framed = true
			}
		case strings.EqualFold(field.Name, "Connection"),
			strings.EqualFold(field.Name, "Transfer-Encoding"),
			strings.EqualFold(field.Name, "Trailer"):
		default:
			b = appendLine(b, field.Name, field.Value)
		}
	}
	if !framed {
		b = appendFraming(b, f, length)
	}
	if closing {
		b = append(b, "Connection: close\r\n"...)
	}
	return append(b, '\r', '\n')
}

// appendTunnelHead appends the head of a 101, where every line counts.
func appendTunnelHead(b []byte, resp *Response) []byte {
	b = appendStatusLine(b, resp)
	for _, field := range resp.Header {
		b = appendLine(b, field.Name, field.Value)
	}
	return append(b, '\r', '\n')
}

func appendStatusLine(b []byte, resp *Response) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(resp.Status), 10)
	b = append(b, ' ')
	if resp.HasReason {
		b = append(b, resp.Reason...)
	} else {
		b = append(b, http.StatusText(resp.Status)...)
	}
	return append(b, '\r', '\n')
}

func appendLine(b []byte, name, value string) []byte {
	b = append(b, name...)
	b = append(b, ':', ' ')
	b = append(b, value...)
	return append(b, '\r', '\n')
}

func appendFraming(b []byte, f framing, length int64) []byte {
	if f == chunked {
		return append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, length, 10)
	return append(b, '\r', '\n')
}
