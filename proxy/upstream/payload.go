package upstream

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// framing says how the end of a body is found.
type framing byte

const (
	framingNone framing = iota
	framingLength
	framingChunked
	framingClose // until the server closes the connection
)

// payload reads the body of one answer from the connection's buffer and stops
// exactly at its end.
type payload struct {
	r       *bufio.Reader
	framing framing
	left    int64      // of the body, or of the present chunk
	state   chunkState // of framingChunked
}

// frame finds out how the body after h is framed (RFC 9112 section 6.3), and its
// length: -1 if unknown.
func (h *head) frame(method string) (framing, int64, error) {
	length, err := h.contentLength()
	if err != nil {
		return 0, 0, err
	}
	chunked, err := h.chunked()
	if err != nil {
		return 0, 0, err
	}
	switch {
	case chunked && length >= 0:
		return 0, 0, malformed("both Content-Length and Transfer-Encoding", "")
	case method == "HEAD", h.status < 200, h.status == 204, h.status == 304:
		return framingNone, 0, nil
	case chunked:
		return framingChunked, -1, nil
	case length > 0:
		return framingLength, length, nil
	case length == 0:
		return framingNone, 0, nil
	}
	return framingClose, -1, nil
}

// contentLength is -1 without a Content-Length line. Lines that agree count as one.
func (h *head) contentLength() (int64, error) {
	length := int64(-1)
	for i := range h.header {
		if !strings.EqualFold(h.header[i].Name, "Content-Length") {
			continue
		}
		n, ok := parseLength(h.header[i].Value)
		if !ok || (length >= 0 && n != length) {
			return 0, malformed("bad Content-Length", h.header[i].Value)
		}
		length = n
	}
	return length, nil
}

// parseLength parses decimal digits only: a sign, a list or white space inside is
// how two readers come to disagree.
func parseLength(s string) (n int64, ok bool) {
	const maxDigits = 18 // fits an int64
	if s == "" || len(s) > maxDigits {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}

func (h *head) chunked() (bool, error) {
	found := false
	for i := range h.header {
		if !strings.EqualFold(h.header[i].Name, "Transfer-Encoding") {
			continue
		}
		if found || h.minor == '0' || !strings.EqualFold(h.header[i].Value, "chunked") {
			return false, malformed("unsupported Transfer-Encoding", h.header[i].Value)
		}
		found = true
	}
	return found, nil
}

// Read returns bytes of the body as they arrive and io.EOF after the last one. A
// connection that ends earlier is io.ErrUnexpectedEOF.
func (p *payload) Read(b []byte) (int, error) {
	switch p.framing {
	case framingLength:
		return p.readLength(b)
	case framingChunked:
		return p.readChunked(b)
	case framingClose:
		return p.r.Read(b)
	}
	return 0, io.EOF
}

func (p *payload) readLength(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	n, err := p.readSome(b)
	if err == nil && p.left == 0 {
		err = io.EOF // at once, so that the connection is free at once
	}
	return n, err
}

// readSome reads up to left bytes.
func (p *payload) readSome(b []byte) (int, error) {
	if int64(len(b)) > p.left {
		b = b[:p.left]
	}
	n, err := p.r.Read(b)
	p.left -= int64(n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
