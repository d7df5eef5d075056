package front

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// script is a connection whose client has sent everything at once and then half
// closed.
type script struct {
	in  *bytes.Reader
	out bytes.Buffer
}

func (c *script) Read(p []byte) (int, error)       { return c.in.Read(p) }
func (c *script) Write(p []byte) (int, error)      { return c.out.Write(p) }
func (c *script) Close() error                     { return nil }
func (c *script) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *script) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *script) SetDeadline(time.Time) error      { return nil }
func (c *script) SetReadDeadline(time.Time) error  { return nil }
func (c *script) SetWriteDeadline(time.Time) error { return nil }

// FuzzRequests sends any bytes as a client would. Whatever reaches the handler,
// net/http must read in the same way from the same bytes: method, target, host,
// header lines and body, one request after the other. After a refusal nothing may
// reach it, and every answer must be well formed.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"\r\nGET /a?b=%20c HTTP/1.1\r\nHost: [::1]:6443\r\nX: \ta b \t\r\nx:\r\n\r\nHEAD /next HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"PUT /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;e=f\r\nhello\r\n0\r\nT: v\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST /p HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
		"POST /p HTTP/1.1\r\nHost: h\r\nexpect: x\r\nContent-Length: 2\r\n\r\n{}",
		"GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n",
		"GET / HTTP/1.1\nHost: h\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\n\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET // HTTP/1.1\r\nHost: h\r\n\r\n", "GET /%zz HTTP/1.0\r\nHost: u@h\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var seen []seenRequest
		s, err := New(Config{
			MaxHeadBytes: minHeadBytes,
			Log:          slog.New(slog.DiscardHandler),
			Handler: func(r *Request) *Response {
				body, err := r.ReadBody(1 << 20)
				seen = append(seen, seenRequest{r, string(body), err})
				return &Response{Status: 200, Bytes: []byte("ok")}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		nc := &script{in: bytes.NewReader(in)}
		c := &conn{Conn: nc, tcp: nc, server: s}
		if r := s.register(c); r != nil {
			t.Fatal(r.Message)
		}
		s.serve(c)
		checkAnswers(t, &nc.out, seen)
		checkRequests(t, in, seen)
	})
}

type seenRequest struct {
	*Request
	body string
	err  error
}

// checkAnswers reads what was written: an answer for each request that was seen,
// then at most one refusal, then nothing.
func checkAnswers(t *testing.T, out io.Reader, seen []seenRequest) {
	t.Helper()
	r := bufio.NewReader(out)
	for i := 0; ; i++ {
		if _, err := r.Peek(1); err == io.EOF {
			if i < len(seen) {
				t.Errorf("%d answers to %d requests", i, len(seen))
			}
			return
		}
		method := "GET"
		if i < len(seen) {
			method = seen[i].Method
		}
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		if resp.StatusCode == 100 {
			i--
			continue
		}
		if _, err := io.ReadAll(resp.Body); err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		if i > len(seen) || (resp.StatusCode == 200) != (i < len(seen)) {
			t.Fatalf("answer %d of %d is %s", i, len(seen), resp.Status)
		}
	}
}

// checkRequests compares with net/http, which is more generous: it must find the
// same requests at least.
func checkRequests(t *testing.T, in []byte, seen []seenRequest) {
	t.Helper()
	r := bufio.NewReader(bytes.NewReader(in))
	for i, got := range seen {
		for { // empty lines before a request are skipped (RFC 9112 section 2.2)
			b, err := r.Peek(1)
			if err != nil || b[0] != '\r' && b[0] != '\n' {
				break
			}
			_, _ = r.Discard(1)
		}
		want, err := http.ReadRequest(r)
		if err != nil {
			t.Fatalf("request %d was seen as %s %s; net/http: %v", i, got.Method, got.Target, err)
		}
		if got.Method != want.Method || got.Target != want.RequestURI || got.Host != want.Host || got.ContentLength != want.ContentLength {
			t.Fatalf("request %d: got %+v\nwant %+v", i, got.Request, want)
		}
		for name, values := range want.Header {
			if have := got.Header.Values(name); strings.Join(have, "|") != strings.Join(values, "|") {
				t.Fatalf("request %d: %s is %q, want %q", i, name, have, values)
			}
		}
		body, err := io.ReadAll(want.Body)
		if got.err != nil {
			if i != len(seen)-1 {
				t.Fatalf("request %d had a broken body (%v) and was followed by another", i, got.err)
			}
			return
		}
		if err != nil || got.body != string(body) {
			t.Fatalf("request %d: body %q, want %q, %v", i, got.body, body, err)
		}
	}
}
