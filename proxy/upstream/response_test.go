package upstream

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
)

// responses are answers and what is to be read of them: the status and reason, the
// length, the lines and the body.
var responses = []struct {
	name, method, raw string
	want              string
}{
	{"length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", `200 "OK" 5 [{Content-Length 5}] "hello"`},
	{"length zero", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", `200 "OK" 0 [{Content-Length 0}] ""`},
	{"same length twice", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\ncontent-length: 2\r\n\r\nhi", `200 "OK" 2 [{Content-Length 2} {content-length 2}] "hi"`},
	{"lines as sent", "GET", "HTTP/1.1 404 Not Found\r\nwarning: 299 - \"a\"\r\nX-a: \r\nWarning:\t299 - \"b\" \r\nContent-Length: 0\r\n\r\n", `404 "Not Found" 0 [{warning 299 - "a"} {X-a } {Warning 299 - "b"} {Content-Length 0}] ""`},
	{"no reason", "GET", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", `200 "" 0 [{Content-Length 0}] ""`},
	{"no space before no reason", "GET", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", `200 "" 0 [{Content-Length 0}] ""`},
	{"bytes above ASCII", "GET", "HTTP/1.1 200 OK\r\nX: \xff\xc3\xa9\r\nContent-Length: 0\r\n\r\n", "200 \"OK\" 0 [{X \xff\xc3\xa9} {Content-Length 0}] \"\""},
	{"chunked", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;a=\"b\"\r\n,\r\n00006  \r\n world\r\n0\r\n\r\n", `200 "OK" -1 [{Transfer-Encoding chunked}] "hello, world"`},
	{"chunked, capitals", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n", `200 "OK" -1 [{Transfer-Encoding Chunked}] "0123456789"`},
	{"chunked with trailers", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0;last\r\nX: y\r\nZ: \r\n\r\n", `200 "OK" -1 [{Transfer-Encoding chunked}] "hi"`},
	{"until close", "GET", "HTTP/1.1 200 OK\r\n\r\nto the end", `200 "OK" -1 [] "to the end"`},
	{"HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", `200 "OK" 2 [{Content-Length 2}] "hi"`},
	{"HEAD keeps the length line", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", `200 "OK" 0 [{Content-Length 500}] ""`},
	{"HEAD chunked", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", `200 "OK" 0 [{Transfer-Encoding chunked}] ""`},
	{"204", "GET", "HTTP/1.1 204 No Content\r\n\r\n", `204 "No Content" 0 [] ""`},
	{"304 with a length", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\nETag: \"x\"\r\n\r\n", `304 "Not Modified" 0 [{Content-Length 7} {ETag "x"}] ""`},
	{"interim answers", "GET", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\n!", `201 "Created" 1 [{Content-Length 1}] "!"`},
	{"redirects are not followed", "GET", "HTTP/1.1 301 Moved\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", `301 "Moved" 0 [{Location /x} {Content-Length 0}] ""`},
}

func TestResponse(t *testing.T) {
	for _, tt := range responses {
		t.Run(tt.name, func(t *testing.T) {
			addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
				if _, err := readRequest(r); err == nil {
					_, _ = io.WriteString(c, tt.raw)
				}
			})
			resp, body, err := do(t, serverAt(t, "http://"+addr, nil), &Request{Method: tt.method, Target: "/"})
			if err != nil {
				t.Fatal(err)
			}
			if got := describe(resp.Status, resp.Reason, resp.ContentLength, resp.Header, body); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func describe(args ...any) string { return fmt.Sprintf("%d %q %d %v %q", args...) }

// However the bytes arrive, the message is the same.
func TestResponseInPieces(t *testing.T) {
	for _, tt := range responses {
		for name, piecewise := range map[string]func(io.Reader) io.Reader{
			"one byte at a time": iotest.OneByteReader, "half reads": iotest.HalfReader, "end with data": iotest.DataErrReader,
		} {
			t.Run(tt.name+", "+name, func(t *testing.T) {
				got, err := readMessage(piecewise(strings.NewReader(tt.raw)), tt.method)
				if err != nil {
					t.Fatal(err)
				}
				if text := describe(got.status, got.reason, got.length, got.header, got.body); text != tt.want {
					t.Errorf("got  %s\nwant %s", text, tt.want)
				}
			})
		}
	}
}

type message struct {
	head
	length int64
	body   string
}

// readMessage reads an answer as a round trip does, without a connection.
func readMessage(r io.Reader, method string) (message, error) {
	br := bufio.NewReaderSize(r, readBufferBytes)
	h, err := readFinalHead(br, DefaultMaxHeadBytes)
	if err != nil {
		return message{}, err
	}
	kind, length, err := h.frame(method)
	if err != nil {
		return message{}, err
	}
	body, err := io.ReadAll(&payload{r: br, framing: kind, left: max(length, 0)})
	return message{h, length, string(body)}, err
}

func TestMalformedResponse(t *testing.T) {
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	tests := []struct{ name, raw, op, want string }{
		{"nothing", "", OpReadHead, "EOF"},
		{"half a head", "HTTP/1.1 200 OK\r\nContent-", OpReadHead, "unexpected EOF"},
		{"not HTTP", "SSH-2.0-OpenSSH_9.2\r\n\r\n", OpReadHead, `not an HTTP/1.1 status line: "SSH-2.0-OpenSSH_9.2"`},
		{"HTTP/2", "HTTP/2.0 200 OK\r\n\r\n", OpReadHead, "not an HTTP/1.1 status line"},
		{"status of letters", "HTTP/1.1 2x0 OK\r\n\r\n", OpReadHead, "the status is not a number"},
		{"status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", OpReadHead, "not an HTTP/1.1 status line"},
		{"status below 100", "HTTP/1.1 099 OK\r\n\r\n", OpReadHead, "the status is below 100"},
		{"bare LF", "HTTP/1.1 200 OK\nContent-Length: 0\n\r\n", OpReadHead, "malformed answer"},
		{"folded line", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", OpReadHead, "a folded header line"},
		{"no colon", "HTTP/1.1 200 OK\r\nX\r\n\r\n", OpReadHead, "a header line without a colon"},
		{"space before the colon", "HTTP/1.1 200 OK\r\nX : a\r\n\r\n", OpReadHead, "a header name is not a token"},
		{"no name", "HTTP/1.1 200 OK\r\n: a\r\n\r\n", OpReadHead, "a header name is not a token"},
		{"CR in a value", "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n", OpReadHead, "a control character in a header line"},
		{"NUL in a value", "HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n", OpReadHead, "a control character in a header line"},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", OpReadHead, "bad Content-Length"},
		{"a list of lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nab", OpReadHead, "bad Content-Length"},
		{"signed length", "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nab", OpReadHead, `bad Content-Length: "+2"`},
		{"huge length", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", OpReadHead, "bad Content-Length"},
		{"length and chunked", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", OpReadHead, "both Content-Length and Transfer-Encoding"},
		{"gzip coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", OpReadHead, `unsupported Transfer-Encoding: "gzip, chunked"`},
		{"chunked twice", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", OpReadHead, "unsupported Transfer-Encoding"},
		{"101 unasked", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nEVIL", OpReadHead, "switched protocols (101) though nobody asked"},
		{"interim without end", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", maxInterim+1), OpReadHead, "too many 1xx answers"},
		{"oversized head", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", DefaultMaxHeadBytes/1000), OpReadHead, "its head is larger than 262144 bytes"},
		{"oversized line", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", DefaultMaxHeadBytes), OpReadHead, "its head is larger than 262144 bytes"},
		{"short body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", OpReadBody, "unexpected EOF"},
		{"chunked without end", chunked + "5\r\nhello\r\n", OpReadBody, "unexpected EOF"},
		{"chunk without end", chunked + "5\r\nhel", OpReadBody, "unexpected EOF"},
		{"chunked ends in its trailers", chunked + "0\r\nX: y\r\n", OpReadBody, "unexpected EOF"},
		{"no chunk size", chunked + "\r\nhello", OpReadBody, "bad chunk size"},
		{"chunk size of words", chunked + "five\r\nhello\r\n", OpReadBody, "bad chunk size"},
		{"negative chunk size", chunked + "-5\r\nhello\r\n", OpReadBody, "bad chunk size"},
		{"huge chunk size", chunked + "ffffffffffffffff\r\n", OpReadBody, "bad chunk size"},
		{"chunk longer than its size", chunked + "5\r\nhello!\r\n0\r\n\r\n", OpReadBody, "a chunk is longer than its size"},
		{"bare LF after a chunk size", chunked + "5\nhello\r\n0\r\n\r\n", OpReadBody, "a line does not end in CR LF"},
		{"long chunk extension", chunked + "5;" + strings.Repeat("x", readBufferBytes) + "\r\nhello\r\n0\r\n\r\n", OpReadBody, "a line of the chunked coding is too long"},
		{"bad trailer", chunked + "0\r\nX y\r\n\r\n", OpReadBody, "a header line without a colon"},
		{"too many trailers", chunked + "0\r\n" + strings.Repeat("X: y\r\n", maxTrailers+1) + "\r\n", OpReadBody, "too many trailers"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
				if _, err := readRequest(r); err == nil {
					_, _ = io.WriteString(c, tt.raw)
				}
			})
			s := serverAt(t, "http://"+addr, nil)
			_, _, err := get(t, s, "/")
			wantError(t, err, tt.op, true, tt.want)
			if n := idleCount(s); n != 0 {
				t.Errorf("%d connections are kept after a malformed answer", n)
			}
		})
	}
}

// 64 KiB of Warning lines, more than any read buffer, are an ordinary head.
func TestLargeHead(t *testing.T) {
	line := "Warning: 299 - \"" + strings.Repeat("deprecated ", 180) + "\"\r\n"
	addr := listen(t, answerEach("HTTP/1.1 200 OK\r\n"+strings.Repeat(line, 64)+"Content-Length: 2\r\n\r\nok"))
	resp, body, err := get(t, serverAt(t, "http://"+addr, nil), "/")
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.Header) != 65 || body != "ok" || resp.Header[63].Value+"\r\n" != line[len("Warning: "):] {
		t.Errorf("%d lines and body %q", len(resp.Header), body)
	}
}

// The limit of a head is the operator's.
func TestMaxHeadBytes(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 8000) + "\r\nContent-Length: 2\r\n\r\n"
	addr := listen(t, answerEach(head+"ok"))
	at := func(limit int) error {
		_, _, err := get(t, serverAt(t, "http://"+addr, func(c *Config) { c.MaxHeadBytes = limit }), "/")
		return err
	}
	if err := at(len(head)); err != nil {
		t.Errorf("a head of the limit's size: %v", err)
	}
	wantError(t, at(len(head)-1), OpReadHead, true, fmt.Sprintf("its head is larger than %d bytes", len(head)-1))
}
