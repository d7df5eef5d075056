package upstream

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// Limits of an answer's head. A server is trusted, but what stands behind its
// proxy subresources is not.
const (
	// DefaultMaxHeadBytes is what one answer's status line and all its header lines
	// may take. Warning lines and what pods send through the proxy subresource need
	// more than the 128 KiB that a client may send.
	DefaultMaxHeadBytes = 256 << 10

	// minHeadBytes is the least that Config.MaxHeadBytes may be: one line of it is
	// quoted where it is too large.
	minHeadBytes = 4 << 10

	// maxInterim is how many 1xx answers may come before the final one.
	maxInterim = 16
)

// head is a parsed status line with its header lines.
type head struct {
	status int
	reason string
	minor  byte // of HTTP/1.x: '0' or '1'
	header wire.Header
}

// heads holds buffers in which a head is collected before it becomes one string.
var heads = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

// readFinalHead reads heads of up to limit bytes until one is not an interim answer. A
// 101 is final: what follows it is not HTTP.
func readFinalHead(r *bufio.Reader, limit int) (head, error) {
	for range maxInterim {
		text, err := readHeadText(r, limit)
		if err != nil {
			return head{}, err
		}
		h, err := parseHead(text)
		if err != nil {
			return head{}, err
		}
		if h.status >= 200 || h.status == 101 {
			return h, nil
		}
	}
	return head{}, malformed("too many 1xx answers, limit "+strconv.Itoa(maxInterim), "")
}

// readHeadText reads up to and including the empty line. The one string that it
// returns backs all header lines.
func readHeadText(r *bufio.Reader, limit int) (string, error) {
	buf := heads.Get().(*[]byte)
	defer func() {
		*buf = (*buf)[:0]
		heads.Put(buf)
	}()
	lineStart := 0
	for {
		piece, err := r.ReadSlice('\n')
		*buf = append(*buf, piece...)
		if len(*buf) > limit {
			return "", malformed("its head is larger than "+strconv.Itoa(limit)+" bytes", string((*buf)[:previewBytes]))
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull): // a long line: go on with it
			continue
		case errors.Is(err, io.EOF) && len(*buf) > 0:
			return "", io.ErrUnexpectedEOF
		case err != nil:
			return "", err
		}
		if line := (*buf)[lineStart:]; len(line) == 2 && line[0] == '\r' {
			return string(*buf), nil
		}
		lineStart = len(*buf)
	}
}

// parseHead parses a head that ends in an empty line. It is stricter than RFC 9112
// allows: bare LF, obs-fold and white space before the colon are errors, because
// two readers of one answer must not see two different messages.
func parseHead(text string) (head, error) {
	line, rest, ok := strings.Cut(text, "\r\n")
	if !ok {
		return head{}, malformed("no status line", text)
	}
	h, err := parseStatusLine(line)
	if err != nil {
		return head{}, err
	}
	h.header = make(wire.Header, 0, strings.Count(rest, "\n"))
	for {
		line, rest, ok = strings.Cut(rest, "\r\n")
		if !ok {
			return head{}, malformed("a line does not end in CR LF", line)
		}
		if line == "" {
			if rest != "" {
				return head{}, malformed("text after the head", rest)
			}
			return h, nil
		}
		field, err := parseField(line)
		if err != nil {
			return head{}, err
		}
		h.header = append(h.header, field)
	}
}

// parseStatusLine parses "HTTP/1.1 200 OK". The reason may be missing, as may the
// space before it.
func parseStatusLine(line string) (head, error) {
	const prefix, length = "HTTP/1.x ", len("HTTP/1.x 200")
	if len(line) < length || line[:7] != prefix[:7] || line[8] != ' ' || (line[7] != '0' && line[7] != '1') {
		return head{}, malformed("not an HTTP/1.1 status line", line)
	}
	h := head{minor: line[7]}
	for _, c := range []byte(line[9:12]) {
		if c < '0' || c > '9' {
			return head{}, malformed("the status is not a number", line)
		}
		h.status = h.status*10 + int(c-'0')
	}
	if h.status < 100 {
		return head{}, malformed("the status is below 100", line)
	}
	if len(line) > length {
		if line[length] != ' ' || !validValue(line[length+1:]) {
			return head{}, malformed("not an HTTP/1.1 status line", line)
		}
		h.reason = line[length+1:]
	}
	return h, nil
}

func parseField(line string) (wire.Field, error) {
	name, value, ok := strings.Cut(line, ":")
	switch {
	case line[0] == ' ' || line[0] == '\t':
		return wire.Field{}, malformed("a folded header line", line)
	case !ok:
		return wire.Field{}, malformed("a header line without a colon", line)
	case !validToken(name):
		return wire.Field{}, malformed("a header name is not a token", line)
	case !validValue(value):
		return wire.Field{}, malformed("a control character in a header line", line)
	}
	return wire.Field{Name: name, Value: strings.Trim(value, " \t")}, nil
}

// validToken reports whether s is a token (RFC 9110 section 5.6.2).
func validToken(s string) bool {
	for i := range len(s) {
		if !tokenBytes[s[i]] {
			return false
		}
	}
	return s != ""
}

var tokenBytes = func() (table [256]bool) {
	const others = "!#$%&'*+-.^_`|~"
	for c := range table {
		b := byte(c)
		table[c] = b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte(others, b) >= 0
	}
	return table
}()

// validValue reports whether s has no control characters but tabs. Bytes above
// ASCII are let through: they are opaque (RFC 9110 section 5.5).
func validValue(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f {
			return false
		}
	}
	return true
}
