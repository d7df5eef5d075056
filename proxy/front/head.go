package front

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// head is the parsed head of a request.
type head struct {
	method, target, host string
	header               wire.Header
	contentLength        int64 // -1: chunked
}

// rawHead is a request head as it came. The end of the request line is not in it:
// there a bare LF passes, as RFC 9112 section 2.2 allows.
type rawHead struct {
	method, target, proto []byte
	lines                 []byte // all header lines, up to and with the empty one
}

// parseHead is the package's own judgement of a head that fasthttp has accepted,
// which is generous: it takes both Content-Length and Transfer-Encoding, spaces
// in names, folded and bare-LF lines, targets in every form. Two parties that
// read one message differently is how requests are smuggled, so whatever RFC
// 9112 forbids, or leaves to the reader, is refused.
func parseHead(raw rawHead) (h head, r *Refusal) {
	if string(raw.proto) != "HTTP/1.1" {
		return h, unsupported(http.StatusHTTPVersionNotSupported, "only HTTP/1.1 is spoken here")
	}
	// One copy backs every string of the request.
	var b strings.Builder
	b.Grow(len(raw.method) + len(raw.target) + len(raw.lines))
	b.Write(raw.method)
	b.Write(raw.target)
	b.Write(raw.lines)
	all := b.String()
	h.method, all = all[:len(raw.method)], all[len(raw.method):]
	h.target, all = all[:len(raw.target)], all[len(raw.target):]
	if r = checkMethod(h.method); r != nil {
		return h, r
	}
	if r = checkTarget(h.target); r != nil {
		return h, r
	}
	if r = h.parseLines(all); r != nil {
		return h, r
	}
	return h, h.parseFraming()
}

// checkMethod lets every token of capital letters pass, for the server to answer
// 405 to those it does not know, but for the two that mean something to a proxy
// itself.
func checkMethod(method string) *Refusal {
	if len(method) > maxMethodLength {
		return malformed(fmt.Sprintf("the method is longer than %d letters", maxMethodLength))
	}
	for i := range len(method) {
		if method[i] < 'A' || method[i] > 'Z' {
			return malformed("the method is not a token of capital letters")
		}
	}
	if method == http.MethodConnect || method == http.MethodTrace {
		return unsupported(http.StatusMethodNotAllowed, "the method "+method+" is not allowed")
	}
	return nil
}

// checkTarget wants the origin form of RFC 9112 section 3.2.1 in printable ASCII.
// Two slashes at the start would be a host to some readers; a raw '#' or a broken
// escape is read differently by each. Dot segments and double slashes further on
// are the server's to judge, on the very same bytes.
func checkTarget(target string) *Refusal {
	if target == "" || target[0] != '/' || len(target) > 1 && target[1] == '/' {
		return malformed("the request target does not start with exactly one '/'")
	}
	for i := 0; i < len(target); i++ {
		c := target[i]
		if c <= ' ' || c >= 0x7f || c == '#' {
			return malformed(fmt.Sprintf("the request target has the byte 0x%02x at %d, which must be percent-encoded", c, i))
		}
		if c == '%' && !(i+2 < len(target) && isHex(target[i+1]) && isHex(target[i+2])) {
			return malformed(fmt.Sprintf("the request target has a broken percent-escape at %d", i))
		}
	}
	return nil
}

func (h *head) parseLines(lines string) *Refusal {
	n := strings.Count(lines, "\n") - 1 // without the empty line
	if n > maxHeaderLines {
		return &Refusal{
			Reason: RefusedHeadTooLarge, Code: http.StatusRequestHeaderFieldsTooLarge,
			Message: fmt.Sprintf("the request has %d header lines, more than the limit of %d", n, maxHeaderLines),
		}
	}
	h.header = make(wire.Header, 0, max(n, 0))
	for {
		line, rest, ok := strings.Cut(lines, "\r\n")
		if !ok || line == "" {
			if !ok || rest != "" {
				return malformed("the header section does not end with an empty line after CR LF")
			}
			return nil
		}
		field, r := parseLine(line, len(h.header)+1)
		if r != nil {
			return r
		}
		h.header = append(h.header, field)
		lines = rest
	}
}

// parseLine parses the n-th header line. It never shows a value: it may be a
// credential.
func parseLine(line string, n int) (wire.Field, *Refusal) {
	if line[0] == ' ' || line[0] == '\t' {
		return wire.Field{}, malformed(fmt.Sprintf("header line %d is folded, which RFC 9112 forbids", n))
	}
	name, value, ok := strings.Cut(line, ":")
	if !ok || !isToken(name) {
		return wire.Field{}, malformed(fmt.Sprintf("header line %d has no valid name before a colon", n))
	}
	value = strings.Trim(value, " \t")
	if i := badValueByte(value); i >= 0 {
		return wire.Field{}, malformed(fmt.Sprintf("the value of header line %d has the control character 0x%02x", n, value[i]))
	}
	return wire.Field{Name: name, Value: value}, nil
}

// parseFraming judges the lines that say where the request ends and whom it is
// for.
func (h *head) parseFraming() *Refusal {
	var lengths, codings, hosts, options int
	var length, coding string
	for _, f := range h.header {
		switch {
		case strings.EqualFold(f.Name, "Content-Length"):
			lengths, length = lengths+1, f.Value
		case strings.EqualFold(f.Name, "Transfer-Encoding"):
			codings, coding = codings+1, f.Value
		case strings.EqualFold(f.Name, "Host"):
			hosts, h.host = hosts+1, f.Value
		case strings.EqualFold(f.Name, "Connection"):
			options += strings.Count(f.Value, ",") + 1
		case strings.EqualFold(f.Name, "Expect"):
			if !strings.EqualFold(f.Value, "100-continue") {
				return unsupported(http.StatusExpectationFailed, "the only expectation that can be met is 100-continue")
			}
		}
	}
	switch {
	case hosts != 1:
		return malformed(fmt.Sprintf("the request has %d Host lines, want one", hosts))
	case !validHost(h.host):
		return malformed("the Host line is not a host with an optional port")
	case options > maxConnectionOptions:
		return malformed(fmt.Sprintf("Connection lists more than %d options", maxConnectionOptions))
	case lengths > 0 && codings > 0:
		return malformed("the request has both Content-Length and Transfer-Encoding")
	case codings > 1 || codings == 1 && !strings.EqualFold(coding, "chunked"):
		return unsupported(http.StatusNotImplemented, "the only transfer coding that is understood is chunked, once")
	case codings == 1:
		h.contentLength = -1
	case lengths == 1:
		n, ok := parseLength(length)
		if !ok {
			return malformed("Content-Length is not a number of bytes")
		}
		h.contentLength = n
	case lengths > 1:
		return malformed("the request has several Content-Length lines")
	}
	return nil
}

// parseLength parses a Content-Length: digits only, no sign, no list.
func parseLength(s string) (int64, bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// isToken reports whether s is a token of RFC 9110 section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		if !tokenBytes[s[i]] {
			return false
		}
	}
	return s != ""
}

// badValueByte returns where s has a byte that no field value may have (RFC 9110
// section 5.5), or -1. Bytes above ASCII pass.
func badValueByte(s string) int {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return i
		}
	}
	return -1
}

// validHost wants the characters of a host and port (RFC 3986 section 3.2):
// without '@', which would hide the host behind what looks like one.
func validHost(s string) bool {
	for i := range len(s) {
		if !hostBytes[s[i]] {
			return false
		}
	}
	return s != ""
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

var (
	tokenBytes = byteSet(alphanumeric + "!#$%&'*+-.^_`|~")
	hostBytes  = byteSet(alphanumeric + "-._~!$&'()*+,;=:[]%")
)

func byteSet(s string) (set [256]bool) {
	for i := range len(s) {
		set[s[i]] = true
	}
	return set
}
