package proxy_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// message is a request or an answer on one side of MVP. A line that begins with "- "
// ends there, one with "+ " is MVP's own; all others come through as they are, in
// their order.
//
// What differs always, and means nothing to either side: chunks are cut anew; white
// space around a value is one space before it; the framing line comes last in a
// request; a body that ends with the connection is chunked; trailers and 1xx answers
// end at MVP.
type message struct {
	start string // "GET /path" or "200 OK"
	lines []string
	frame frame
	body  string
}

// frame is how a body's end is told.
type frame int

const (
	none    frame = iota // there is no framing line, or lines has it
	length               // Content-Length
	chunks               // Transfer-Encoding: chunked
	trailed              // the same with trailers
	closes               // the connection ends
)

func ask(start string, lines ...string) message { return message{start: start, lines: lines} }

func reply(start string, lines ...string) message {
	return message{start: start, lines: lines, frame: length}
}

func (m message) with(f frame, body string) message {
	m.frame, m.body = f, body
	return m
}

// sent is the message as its sender writes it.
func (m message) sent() string {
	var b strings.Builder
	if isAnswer(m.start) {
		b.WriteString("HTTP/1.1 " + m.start + "\r\n")
	} else {
		b.WriteString(m.start + " HTTP/1.1\r\n")
	}
	for _, line := range m.lines {
		if !strings.HasPrefix(line, "+ ") {
			b.WriteString(strings.TrimPrefix(line, "- ") + "\r\n")
		}
	}
	switch m.frame {
	case none, closes:
		b.WriteString("\r\n" + m.body)
	case length:
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(m.body), m.body)
	default:
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		for piece := range slices.Chunk([]byte(m.body), 7000) {
			b.WriteString(chunked(string(piece)))
		}
		b.WriteString("0\r\n")
		if m.frame == trailed {
			b.WriteString("X-Checksum: 1\r\n")
		}
		b.WriteString("\r\n")
	}
	return b.String()
}

func isAnswer(start string) bool { return start[0] >= '0' && start[0] <= '9' }

// passed is what the other side is to get: the first line and the others without
// framing, and the framing.
func (m message) passed() (head []string, f frame) {
	if isAnswer(m.start) {
		head = append(head, "HTTP/1.1 "+m.start)
	} else {
		head = append(head, m.start+" HTTP/1.1")
	}
	for _, line := range m.lines {
		if !strings.HasPrefix(line, "- ") {
			head = append(head, strings.TrimPrefix(line, "+ "))
		}
	}
	f = m.frame
	switch {
	case f == trailed, f == closes:
		f = chunks
	case m.body == "" && f != chunks && !isAnswer(m.start):
		// A request without a body says so where its method could have one.
		f = none
		if method, _, _ := strings.Cut(m.start, " "); method == "POST" || method == "PUT" || method == "PATCH" {
			f = length
		}
	}
	return head, f
}

// check compares what arrived, byte for byte.
func (m message) check(t *testing.T, whose, raw string) {
	t.Helper()
	want, wantFrame := m.passed()
	text, rest, ok := strings.Cut(raw, "\r\n\r\n")
	if !ok {
		t.Fatalf("%s has no end of its head: %.300q", whose, raw)
	}
	var head []string
	got, framing := none, 0
	for i, line := range strings.Split(text, "\r\n") {
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case i > 0 && strings.EqualFold(name, "Content-Length") && m.frame != none:
			got = length
			framing++
			if value != strconv.Itoa(len(m.body)) {
				t.Errorf("%s has the length %s, want %d", whose, value, len(m.body))
			}
		case i > 0 && strings.EqualFold(name, "Transfer-Encoding"):
			got = chunks
			framing++
		case i > 0 && strings.EqualFold(name, "Content-Length") && wantFrame == length:
			got = length
			framing++
		default:
			head = append(head, line)
		}
	}
	if !slices.Equal(head, want) {
		t.Errorf("%s has the head\n%.2000q\nwant\n%.2000q", whose, head, want)
	}
	if got != wantFrame || framing > 1 {
		t.Errorf("%s has framing %d in %d lines, want %d", whose, got, framing, wantFrame)
	}
	if got == chunks {
		rest = unchunk(t, whose, rest)
	}
	if rest != m.body {
		t.Errorf("%s has the body %.300q of %d bytes, want %.300q of %d", whose, rest, len(rest), m.body, len(m.body))
	}
}

// unchunk takes a chunked body apart, to its very end.
func unchunk(t *testing.T, whose, coded string) string {
	t.Helper()
	in := bufio.NewReader(strings.NewReader(coded))
	body, err := io.ReadAll(httputil.NewChunkedReader(in))
	end, _ := io.ReadAll(in)
	if err != nil || string(end) != "\r\n" {
		t.Errorf("%s is badly chunked: %v, and %.100q behind it", whose, err, end)
	}
	return string(body)
}

// passRow is one request and its answer.
type passRow struct {
	name    string
	ask     message
	interim string // 1xx answers before the answer
	reply   message
}

// complete gives a request the lines that the rows leave out.
func (row passRow) complete() passRow {
	names := func(name string) bool {
		return slices.ContainsFunc(row.ask.lines, func(line string) bool {
			return strings.HasPrefix(strings.ToLower(strings.TrimLeft(line, "+- ")), strings.ToLower(name)+":")
		})
	}
	if !names("Host") {
		row.ask.lines = append([]string{"Host: mvp.example.com:6443"}, row.ask.lines...)
	}
	if !names("X-Forwarded-For") {
		row.ask.lines = append(slices.Clone(row.ask.lines), "+ X-Forwarded-For: 127.0.0.1")
	}
	return row
}

// Every request reaches the server, and every answer the client, as it was sent; and
// after each the client's connection takes a next request.
func TestBytes(t *testing.T) {
	t.Run("plain", func(t *testing.T) { testBytes(t, nil) })
	t.Run("TLS", func(t *testing.T) { testBytes(t, newAuthority(t)) })
}

func testBytes(t *testing.T, ca *authority) {
	p := newPasser(t, ca)
	for _, row := range passRows() {
		t.Run(row.name, func(t *testing.T) { p.pass(t, row.complete()) })
	}
}

// passer sends rows through MVP.
type passer struct {
	*stage
	upstream *recorder
	tape     *tape
	row      atomic.Pointer[passRow]
}

const nextTarget = "/api/v1/namespaces/d/pods/next"

func newPasser(t testing.TB, ca *authority) *passer {
	p := &passer{}
	p.upstream, p.tape = tapeRecorder(t, ca, "a", func(q request) string {
		row := p.row.Load()
		if q.target == nextTarget {
			return ok("next")
		}
		if row.reply.frame == closes {
			_, _ = io.WriteString(q.conn, row.interim+row.reply.sent())
			_ = q.conn.Close()
			return ""
		}
		return row.interim + row.reply.sent()
	})
	p.stage = raise(t, setting{ca: ca}, p.upstream)
	return p
}

func (p *passer) pass(t *testing.T, row passRow) {
	p.row.Store(&row)
	p.upstream.forget()
	p.tape.forget()
	conn := p.in(t).dial()
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, row.ask.sent()) }() // an answer may come before the end of the request
	var raw bytes.Buffer
	in := bufio.NewReader(io.TeeReader(conn, &raw))
	if slices.Contains(row.ask.lines, "- Expect: 100-continue") {
		const invitation = "HTTP/1.1 100 Continue\r\n\r\n"
		if got := readAll(t, in, len(invitation)); got != invitation {
			t.Fatalf("the client got %q, want an invitation", got)
		}
		raw.Next(len(invitation))
	}
	if _, err := readAnswer(in, row.ask.start); err != nil {
		t.Fatalf("cannot read the answer: %v; got %.300q", err, raw.String())
	}
	row.reply.check(t, "the client", raw.String())
	got := p.upstream.got()
	if len(got) != 1 {
		t.Fatalf("the upstream got %d requests: %.300q", len(got), raws(got))
	}
	row.ask.check(t, "the upstream", got[0].raw)

	if _, err := io.WriteString(conn, "GET "+nextTarget+" HTTP/1.1\r\nHost: m\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if next, err := readAnswer(in, "GET"); err != nil || next.body != "next" {
		t.Errorf("the next request was answered %d %q, %v", next.code, next.body, err)
	}
}

func readAll(t *testing.T, in io.Reader, n int) string {
	t.Helper()
	b := make([]byte, n)
	got, err := io.ReadFull(in, b)
	if err != nil {
		t.Fatalf("got %q: %v", b[:got], err)
	}
	return string(b)
}

func zipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return b.String()
}

// fixedLines are names that MVP treats on its own account, which the fuzz test leaves
// to the table.
var fixedLines = []string{
	"Host", "Content-Length", "Transfer-Encoding", "Connection", "Expect", "X-Forwarded-For", "Trailer", "Upgrade",
}

// isGone reports whether a line with that name must not reach the server.
func isGone(name string) bool {
	switch strings.ToLower(name) {
	case "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "x-real-ip", "x-kubernetes-peer-proxied":
		return true
	}
	return strings.HasPrefix(strings.ToLower(name), "x-remote-")
}

// fuzzLines makes header lines of text; ok is false where a message may not have them.
func fuzzLines(text string, gone func(string) bool) (lines []string, ok bool) {
	for line := range strings.Lines(text) {
		name, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.Trim(value, " \t")
		token := func(c rune) bool {
			return c < 0x80 && (strings.ContainsRune("!#$%&'*+-.^_`|~", c) || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
		}
		bad := func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }
		if !found || name == "" || strings.Trim(strings.Map(func(c rune) rune {
			if token(c) {
				return -1
			}
			return c
		}, name), "") != "" || strings.ContainsFunc(value, bad) ||
			slices.ContainsFunc(fixedLines, func(f string) bool { return strings.EqualFold(f, name) }) {
			return nil, false
		}
		prefix := ""
		if gone(name) {
			prefix = "- "
		}
		lines = append(lines, prefix+name+": "+value)
	}
	return lines, len(lines) < 1000
}

// FuzzPassThrough holds requests and answers that it makes up to the same equality.
func FuzzPassThrough(f *testing.F) {
	f.Add("GET", "/", "Accept: a\nAccept: b", "", uint8(none), 200, "Content-Type: x", "body", uint8(length))
	f.Add("POST", "/a%2Fb//..;x=*?y=+&&=%26?", "X_a.b%2Fc: 1\nx_A.b: 2\nUser-Agent:", "{}", uint8(chunks), 201, "Warning: 1\nWarning: 1\nwarning:", "x", uint8(chunks))
	f.Add("HEAD", "?watch=1", "Cookie: a=b; c\nX-Remote-User: root\nTE: trailers", "", uint8(none), 200, "Set-Cookie: a\nKeep-Alive: 1", "", uint8(none))
	f.Add("DELETE", "/\\\"<>{}|^`", "a: \xff\xfe\tb", "\x00\r\n\r\n0\r\n\r\n", uint8(length), 404, "", "", uint8(closes))
	f.Add("PUT", "/x", "Accept-Encoding: gzip", "", uint8(none), 304, "Etag: W/\"1\"", "", uint8(none))
	f.Add("QUERY", "/%00%ff%25", "", strings.Repeat("0\r\n", 20000), uint8(trailed), 503, "Retry-After: 1\nContent-Encoding: gzip", strings.Repeat("z", 70000), uint8(trailed))
	p := newPasser(f, nil)
	const prefix = "/api/v1/namespaces/d/services/s/proxy"
	f.Fuzz(func(t *testing.T, method, target, askLines, askBody string, askFrame uint8, status int, replyLines, replyBody string, replyFrame uint8) {
		row := passRow{
			ask:   message{start: method + " " + prefix + target, frame: frame(askFrame % 4), body: askBody},
			reply: message{start: strconv.Itoa(status) + " " + http.StatusText(status), frame: frame(replyFrame % 5), body: replyBody},
		}
		var asked, replied bool
		row.ask.lines, asked = fuzzLines(askLines, isGone)
		row.reply.lines, replied = fuzzLines(replyLines, func(name string) bool { return isGone(name) && !strings.HasPrefix(strings.ToLower(name), "x-") })
		if !asked || !replied || !validStart(method, target) || http.StatusText(status) == "" || status < 200 || len(askBody)+len(replyBody) > 1<<20 {
			t.Skip("not a message that MVP takes")
		}
		if row.ask.frame == none {
			row.ask.body = ""
		}
		if method == "HEAD" || status == http.StatusNoContent || status == http.StatusNotModified || row.reply.frame == none {
			row.reply.frame, row.reply.body = none, ""
			if method != "HEAD" && status != http.StatusNoContent && status != http.StatusNotModified {
				row.reply.frame = length
			}
		}
		p.pass(t, row.complete())
	})
}

// validStart reports whether a request line with the target below a proxied service
// is one that MVP takes.
func validStart(method, target string) bool {
	if method == "" || len(method) > 20 || method == "CONNECT" || method == "TRACE" ||
		strings.ContainsFunc(method, func(c rune) bool { return c < 'A' || c > 'Z' }) {
		return false
	}
	if len(target) > 4096 || strings.ContainsFunc(target, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '#' }) {
		return false
	}
	if _, err := http.NewRequest("GET", "http://x/s"+target, nil); err != nil { // broken escapes
		return false
	}
	for rest := target; ; {
		_, after, found := strings.Cut(rest, "%")
		if !found {
			return true
		}
		if len(after) < 2 || strings.Trim(after[:2], "0123456789abcdefABCDEF") != "" {
			return false
		}
		rest = after[2:]
	}
}
