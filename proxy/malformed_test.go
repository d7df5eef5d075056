package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/front"
)

// refused is a request that must not pass, and the code that says so.
type refused struct {
	name string
	code int
	raw  string
}

// smuggled follows each of them on its connection. Whoever takes a request to end
// where MVP does not would take this for the next one.
const smuggled = "GET /api/v1/namespaces/d/secrets/smuggled HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer smuggler\r\n\r\n"

const (
	postHead = "POST /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: h\r\n"
	getHead  = "GET /api/v1/namespaces/d/pods/p HTTP/1.1\r\nHost: h\r\n"
	chunkedH = postHead + "Transfer-Encoding: chunked\r\n\r\n"
)

// target is a GET of it.
func target(t string) string { return "GET " + t + " HTTP/1.1\r\nHost: h\r\n\r\n" }

var refusedRows = []refused{
	// Where the request ends.
	{"length and chunked", 400, postHead + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
	{"chunked and length", 400, postHead + "Transfer-Encoding: chunked\r\nContent-Length: 500\r\n\r\n0\r\n\r\n"},
	{"chunked in any case and length", 400, postHead + "tRANSFER-eNCODING: CHUNKED\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"},
	{"identity and length", 400, postHead + "Transfer-Encoding: identity\r\nContent-Length: 1\r\n\r\nx"},
	{"identity", 501, postHead + "Transfer-Encoding: identity\r\n\r\n"},
	{"no coding", 501, postHead + "Transfer-Encoding: \r\n\r\n"},
	{"chunked twice", 501, postHead + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
	{"gzip, chunked", 501, postHead + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
	{"chunked, identity", 501, postHead + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"},
	{"chunked with a comma", 501, postHead + "Transfer-Encoding: chunked,\r\n\r\n0\r\n\r\n"},
	{"chunked with a parameter", 501, postHead + "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n"},
	{"quoted chunked", 501, postHead + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"},
	{"chunked after a control character", 400, postHead + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n"},
	{"chunked on a folded line", 400, postHead + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"},
	{"two lengths", 400, postHead + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx"},
	{"two equal lengths", 400, postHead + "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx"},
	{"length list", 400, postHead + "Content-Length: 1, 1\r\n\r\nx"},
	{"signed length", 400, postHead + "Content-Length: +1\r\n\r\nx"},
	{"negative length", 400, postHead + "Content-Length: -1\r\n\r\n"},
	{"huge length", 400, postHead + "Content-Length: 99999999999999999999\r\n\r\nx"},
	{"length beyond an int64", 400, postHead + "Content-Length: 9223372036854775808\r\n\r\nx"},
	{"hexadecimal length", 400, postHead + "Content-Length: 0x1\r\n\r\nx"},
	{"length with an underscore", 400, postHead + "Content-Length: 1_0\r\n\r\nx"},
	{"length of two words", 400, postHead + "Content-Length: 1 0\r\n\r\nx"},
	{"empty length", 400, postHead + "Content-Length: \r\n\r\n"},
	{"length of a GET that is none", 400, getHead + "Content-Length: x\r\n\r\n"},
	// Chunks.
	{"chunk size overflow", 400, chunkedH + "10000000000000000\r\nx\r\n0\r\n\r\n"},
	{"negative chunk size", 400, chunkedH + "-1\r\nx\r\n0\r\n\r\n"},
	{"chunk size with a prefix", 400, chunkedH + "0x1\r\nx\r\n0\r\n\r\n"},
	{"chunk size with a sign", 400, chunkedH + "+1\r\nx\r\n0\r\n\r\n"},
	{"no chunk size", 400, chunkedH + "\r\nx\r\n0\r\n\r\n"},
	{"chunk size after a space", 400, chunkedH + " 1\r\nx\r\n0\r\n\r\n"},
	{"chunk size that is none", 400, chunkedH + "g\r\nx\r\n0\r\n\r\n"},
	{"chunk size in two words", 400, chunkedH + "1 1\r\nx\r\n0\r\n\r\n"},
	{"chunk extension with a bare LF", 400, chunkedH + "1;a\nb\r\nx\r\n0\r\n\r\n"},
	{"chunk lines with bare LF", 400, chunkedH + "1\nx\n0\n\n"},
	{"chunk shorter than its size", 400, chunkedH + "5\r\nx\r\n0\r\n\r\n"},
	{"chunk longer than its size", 400, chunkedH + "1\r\nxy\r\n0\r\n\r\n"},
	{"chunk without its end", 400, chunkedH + "1\r\nx0\r\n\r\n"},
	{"a trailer that is a request", 400, chunkedH + "0\r\n" + smuggled},
	{"a trailer without a name", 400, chunkedH + "0\r\n: x\r\n\r\n"},
	{"a trailer that is a length", 400, chunkedH + "0\r\nContent-Length: 5\r\n\r\n"},
	{"a trailer that is a coding", 400, chunkedH + "0\r\nTransfer-Encoding: chunked\r\n\r\n"},
	{"a trailer that is a credential", 400, chunkedH + "0\r\nAuthorization: Bearer t\r\n\r\n"},
	{"a trailer that is a host", 400, chunkedH + "0\r\nHost: other\r\n\r\n"},
	// Header lines.
	{"space before the colon", 400, postHead + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"},
	{"tab before the colon", 400, postHead + "Content-Length\t: 1\r\n\r\nx"},
	{"space in a name", 400, getHead + "X A: b\r\n\r\n"},
	{"NUL in a name", 400, getHead + "X\x00: b\r\n\r\n"},
	{"a name beyond ASCII", 400, getHead + "X\xc3\xa4: b\r\n\r\n"},
	{"a name in parentheses", 400, getHead + "(X): b\r\n\r\n"},
	{"no colon", 400, getHead + "Transfer-Encoding chunked\r\n\r\n"},
	{"no name", 400, getHead + ": b\r\n\r\n"},
	{"folded line", 400, getHead + "X: a\r\n b\r\n\r\n"},
	{"folded line that is a length", 400, postHead + "X: a\r\n\tContent-Length: 5\r\n\r\n"},
	{"folded first line", 400, "GET / HTTP/1.1\r\n X: a\r\nHost: h\r\n\r\n"},
	{"NUL in a value", 400, getHead + "Authorization: Bearer a\x00b\r\n\r\n"},
	{"bare CR in a value", 400, getHead + "X: a\rY: b\r\n\r\n"},
	{"bare LF in a value", 400, getHead + "X: a\nTransfer-Encoding: chunked\r\n\r\n"},
	{"bare LF before the end", 400, getHead + "\n"},
	{"DEL in a value", 400, getHead + "X: \x7f\r\n\r\n"},
	{"no Host", 400, "GET / HTTP/1.1\r\nX: a\r\n\r\n"},
	{"two Hosts", 400, getHead + "Host: h\r\n\r\n"},
	{"two Hosts that differ", 400, getHead + "hOST: other\r\n\r\n"},
	{"empty Host", 400, "GET / HTTP/1.1\r\nHost: \r\n\r\n"},
	{"user in Host", 400, "GET / HTTP/1.1\r\nHost: u:p@h\r\n\r\n"},
	{"path in Host", 400, "GET / HTTP/1.1\r\nHost: h/x\r\n\r\n"},
	{"two names in Host", 400, "GET / HTTP/1.1\r\nHost: h other\r\n\r\n"},
	{"an unknown expectation", 417, postHead + "Expect: magic\r\nContent-Length: 1\r\n\r\nx"},
	{"two expectations", 417, postHead + "Expect: 100-continue\r\nExpect: magic\r\nContent-Length: 1\r\n\r\nx"},
	{"hundreds of connection options", 400, getHead + "Connection: " + strings.Repeat("a,", 300) + "\r\n\r\n"},
	{"thousands of lines", 431, getHead + strings.Repeat("a:\r\n", 5000) + "\r\n"},
	{"a line beyond the limit", 431, getHead + "X: " + strings.Repeat("a", 200<<10) + "\r\n\r\n"},
	// The request line.
	{"a target beyond the limit", 431, target("/" + strings.Repeat("a", 200<<10))},
	{"absolute form", 400, target("http://h/api/v1/namespaces/kube-system/secrets")},
	{"absolute form with a user", 400, target("http://u:p@h/")},
	{"absolute form of another scheme", 400, target("FILE:///etc/passwd")},
	{"authority form", 400, target("h:443")},
	{"asterisk form", 400, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"},
	{"CONNECT", 405, "CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n"},
	{"TRACE", 405, "TRACE / HTTP/1.1\r\nHost: h\r\n\r\n"},
	{"two slashes", 400, target("//h/api/v1/secrets?x=http://y")},
	{"backslashes", 400, target("\\\\h\\api")},
	{"a fragment", 400, target("/api#/v1")},
	{"a broken escape", 400, target("/api/v1/%zz")},
	{"a broken escape in the query", 400, target("/api/v1/pods?x=%2")},
	{"a space in the target", 400, target("/api/v1/pods HTTP/1.1 /x")},
	{"a tab in the target", 400, target("/api\t/v1")},
	{"NUL in the target", 400, target("/api\x00")},
	{"raw UTF-8 in the target", 400, target("/\xc3\xa4")},
	{"no target", 400, "GET HTTP/1.1\r\nHost: h\r\n\r\n"},
	{"an empty target", 400, "GET  HTTP/1.1\r\nHost: h\r\n\r\n"},
	{"a lower-case method", 400, "get / HTTP/1.1\r\nHost: h\r\n\r\n"},
	{"a method of signs", 400, "G(T / HTTP/1.1\r\nHost: h\r\n\r\n"},
	{"a space before the method", 400, " GET / HTTP/1.1\r\nHost: h\r\n\r\n"},
	{"tabs between", 400, "GET\t/\tHTTP/1.1\r\nHost: h\r\n\r\n"},
	{"HTTP/1.0", 505, "GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n"},
	{"HTTP/1.0 chunked", 501, "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
	{"HTTP/0.9", 400, "GET /\r\n\r\n"},
	{"HTTP/1.2", 505, "GET / HTTP/1.2\r\nHost: h\r\n\r\n"},
	{"HTTP/2.0", 505, "GET / HTTP/2.0\r\nHost: h\r\n\r\n"},
	{"HTTP/1.10", 400, "GET / HTTP/1.10\r\nHost: h\r\n\r\n"},
	{"lower-case version", 400, "GET / http/1.1\r\nHost: h\r\n\r\n"},
	{"HTTP/2 preface", 400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"},
	{"a TLS handshake", 400, "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00\r\n\r\n"},
	{"another protocol", 400, "EHLO mvp\r\nMAIL FROM:<x>\r\n\r\n"},
}

// What MVP and its servers could read differently is refused, on a connection that
// ends with it: neither it nor what follows reaches a server, and other clients get
// their own answers.
func TestMalformed(t *testing.T) {
	t.Run("plain", func(t *testing.T) { testMalformed(t, nil) })
	t.Run("TLS", func(t *testing.T) { testMalformed(t, newAuthority(t)) })
}

func testMalformed(t *testing.T, ca *authority) {
	u, taped := tapeRecorder(t, ca, "a", func(q request) string { return ok(q.target) })
	s := raise(t, setting{ca: ca}, u)
	bystander := s.dial()
	bystanderIn := bufio.NewReader(bystander)
	for i, row := range refusedRows {
		t.Run(row.name, func(t *testing.T) {
			u.forget()
			conn := s.in(t).dial()
			go func() { _, _ = io.WriteString(conn, row.raw+smuggled) }() // more than MVP reads, perhaps
			in := bufio.NewReader(conn)
			got, err := readAnswer(in, row.raw)
			if err != nil {
				t.Fatal(err)
			}
			if got.code != row.code {
				t.Errorf("answered %d %s, want %d", got.code, got.body, row.code)
			}
			if strings.HasPrefix(row.raw, "PRI") || got.body != "" {
				wantStatus(t, got)
			}
			if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("after the answer came %.300q, %v, want the end of the connection", rest, err)
			}
			if got := u.got(); len(got) > 0 || taped.has("smuggle") {
				t.Errorf("the upstream got %.300q", raws(got))
			}
			// Another client, on a connection that lasts.
			own := fmt.Sprintf("/api/v1/namespaces/d/pods/bystander-%d", i)
			if _, err := io.WriteString(bystander, target(own)); err != nil {
				t.Fatal(err)
			}
			if got, err := readAnswer(bystanderIn, "GET"); err != nil || got.body != own {
				t.Errorf("another client got %d %q, %v, want %q", got.code, got.body, err, own)
			}
		})
	}
}

// What only looks wrong passes, as one request, as kube-apiserver would read it; and
// what is behind it is a request of its own or never one.
func TestUnusualButRight(t *testing.T) {
	const seen, forwarded = "GET /api/v1/namespaces/d/pods/p HTTP/1.1\r\nHost: h\r\n", "X-Forwarded-For: 127.0.0.1\r\n"
	const seenPost = "POST /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: h\r\n"
	tests := []struct{ name, raw, want string }{
		{"empty lines before the request", "\r\n\r\n" + getHead + "\r\n", seen + forwarded + "\r\n"},
		{"a request in the body", postHead + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(smuggled)) + smuggled, seenPost + forwarded + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(smuggled)) + smuggled},
		{"a request in the body of a GET", getHead + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(smuggled)) + smuggled, seen + forwarded + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(smuggled)) + smuggled},
		{"a request in a chunk", chunkedH + chunked(smuggled) + "0\r\n\r\n", seenPost + forwarded + "Transfer-Encoding: chunked\r\n\r\n" + chunked(smuggled) + "0\r\n\r\n"},
		{"leading zeros of a length", postHead + "Content-Length: 0001\r\n\r\nx", seenPost + forwarded + "Content-Length: 1\r\n\r\nx"},
		{"chunked in capitals", postHead + "Transfer-Encoding: CHUNKED\r\n\r\n1\r\nx\r\n0\r\n\r\n", seenPost + forwarded + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"},
		{"leading zeros of a chunk", chunkedH + "0001\r\nx\r\n000\r\n\r\n", seenPost + forwarded + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"},
		{"a chunk extension", chunkedH + "1;a=\"b\"\r\nx\r\n0\r\n\r\n", seenPost + forwarded + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"},
		{"trailers", chunkedH + "1\r\nx\r\n0\r\nX-Checksum: 1\r\nY: 2\r\n\r\n", seenPost + forwarded + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"},
		{"a trailer that is dropped anyway", chunkedH + "0\r\nX : x\r\n\r\n", seenPost + forwarded + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{"underscores in a framing line", postHead + "Transfer_Encoding: chunked\r\nContent-Length: 1\r\n\r\nx", seenPost + "Transfer_Encoding: chunked\r\n" + forwarded + "Content-Length: 1\r\n\r\nx"},
		{"white space around a value", getHead + "X:a\r\nY: \t b \t\r\n\r\n", seen + "X: a\r\nY: b\r\n" + forwarded + "\r\n"},
		{"framing lines listed in Connection", postHead + "Connection: content-length, host, transfer-encoding\r\nContent-Length: 1\r\n\r\nx", seenPost + forwarded + "Content-Length: 1\r\n\r\nx"},
		{"an upgrade with a body", postHead + "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n\r\nx", seenPost + forwarded + "Content-Length: 1\r\n\r\nx"},
		{"a host with a scheme's port and brackets", "GET / HTTP/1.1\r\nHost: [::1]:443\r\n\r\n", "GET / HTTP/1.1\r\nHost: [::1]:443\r\n" + forwarded + "\r\n"},
		{"more after Connection: close", getHead + "Connection: close\r\n\r\n" + smuggled, seen + forwarded + "\r\n"},
	}
	u, taped := tapeRecorder(t, nil, "a", func(q request) string { return ok(q.target) })
	s := raise(t, setting{}, u)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u.forget()
			if got, err := s.in(t).ask(tt.raw); err != nil || got.code != http.StatusOK {
				t.Errorf("answered %d %s, %v", got.code, got.body, err)
			}
			if got := u.got(); len(got) != 1 || got[0].raw != tt.want {
				t.Errorf("the upstream got\n%q\nwant\n%q", raws(got), tt.want)
			}
			if strings.Count(tt.want, "smuggled") == 0 && taped.has("smuggled") {
				t.Error("what followed reached the upstream")
			}
			taped.forget()
		})
	}
}

// What comes behind an upgrade that is refused is a request with its own
// credentials, never bytes for whoever refused. The report's number is 1.14.
func TestRequestBehindRefusedUpgrade(t *testing.T) {
	u, _ := tapeRecorder(t, nil, "a", func(q request) string {
		if strings.Contains(q.target, "exec") {
			return respond(403, "application/json", "{}")
		}
		return ok(q.target)
	})
	s := raise(t, setting{}, u)
	_, in := s.send("GET /api/v1/namespaces/d/pods/p/exec HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + smuggled)
	if got, err := readAnswer(in, "GET"); err != nil || got.code != 403 {
		t.Errorf("the upgrade was answered %d, %v", got.code, err)
	}
	if got, err := readAnswer(in, "GET"); err != nil || got.code != 200 || !strings.HasSuffix(got.body, "smuggled") {
		t.Errorf("the request behind it was answered %d %q, %v", got.code, got.body, err)
	}
	got := u.got()
	if len(got) != 2 || strings.Contains(got[0].raw, "smuggler") || strings.Contains(got[1].raw, "Bearer a\r\n") || got[0].conn == got[1].conn {
		t.Errorf("the upstream got %q", raws(got))
	}
}

// A request that does not come to its end is answered 408 and reaches no server
// whole.
func TestUnfinished(t *testing.T) {
	u, _ := tapeRecorder(t, nil, "a", nil)
	s := raise(t, setting{front: front.Config{HeadTimeout: 250 * time.Millisecond, BodyTimeout: 250 * time.Millisecond}}, u)
	for name, raw := range map[string]string{
		"head":               getHead + "X: ",
		"small body":         postHead + "Content-Length: 10\r\n\r\nabc",
		"large body":         postHead + "Content-Length: 1000000\r\n\r\nabc",
		"chunk":              chunkedH + "a\r\nabc",
		"chunk size":         chunkedH + "1\r\nx\r\n1",
		"end of the chunks":  chunkedH + "1\r\nx\r\n0\r\n",
		"body after its 100": postHead + "Expect: 100-continue\r\nContent-Length: 10\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			u.forget()
			_, in := s.in(t).send(raw)
			got, err := readAnswer(in, raw)
			if got.code == http.StatusContinue {
				got, err = readAnswer(in, raw)
			}
			if err != nil || got.code != http.StatusRequestTimeout {
				t.Fatalf("answered %d %s, %v, want 408", got.code, got.body, err)
			}
			wantStatus(t, got)
			if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
				t.Errorf("after the answer came %q, %v", rest, err)
			}
			if got := u.got(); len(got) > 0 {
				t.Errorf("the upstream got %q", raws(got))
			}
		})
	}
}

// What is refused in the middle of a body shows neither in the answer nor in the log:
// it may be a credential.
func TestRefusedBodiesAreNotTold(t *testing.T) {
	u := record(t, "a", "1.32.13", pods, nil)
	r := start(t, nil, nil, u)
	for _, body := range []string{
		"0\r\nBearer s3cret\r\n\r\n", "0\r\nX\x00: s3cret\r\n\r\n", "0\r\nX: s3cret\x00\r\n\r\n",
		"0\r\n(s3cret): x\r\n\r\n", "s3cret\r\n", "1\r\ns3cret\r\n", "1;a=s3cret\n\r\n",
	} {
		_, in := r.raw(chunkedH + body)
		if got, err := readAnswer(in, "POST"); err != nil || got.code != http.StatusBadRequest || strings.Contains(got.body, "s3cret") {
			t.Errorf("%q was answered %d %s, %v", body, got.code, got.body, err)
		}
	}
	r.lastAccess("/api/v1/namespaces/d/pods")
	if strings.Contains(r.access.String(), "s3cret") {
		t.Errorf("the log has\n%s", r.access.String())
	}
}
