package front_test

import (
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/front"
)

// smuggled follows every refused request: it must not be taken for a next one.
const smuggled = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"

func TestRefused(t *testing.T) {
	const malformed = "the request is not well-formed HTTP/1.1"
	tests := []struct {
		name    string
		request string
		code    int
		message string
	}{
		{"length and chunked", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "the request has both Content-Length and Transfer-Encoding"},
		{"chunked and length", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400, "the request has both Content-Length and Transfer-Encoding"},
		{"identity", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\n", 501, "the only transfer coding that is understood is chunked, once"},
		{"identity and length", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\nContent-Length: 1\r\n\r\nx", 400, "the request has both Content-Length and Transfer-Encoding"},
		{"gzip, chunked", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501, "the only transfer coding that is understood is chunked, once"},
		{"chunked twice", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501, "the only transfer coding that is understood is chunked, once"},
		{"chunked after a control character", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \x0bchunked\r\n\r\n", 400, malformed},
		{"space before the colon", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n", 400, malformed},
		{"two lengths", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400, malformed},
		{"length list", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\nx", 400, malformed},
		{"signed length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\nx", 400, malformed},
		{"huge length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\nx", 400, malformed},
		{"space in a name", "GET / HTTP/1.1\r\nHost: h\r\nX A: b\r\n\r\n", 400, "header line 2 has no valid name before a colon"},
		{"no colon", "GET / HTTP/1.1\r\nHost: h\r\nXA\r\n\r\n", 400, malformed},
		{"no name", "GET / HTTP/1.1\r\nHost: h\r\n: b\r\n\r\n", 400, malformed},
		{"folded", "GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n", 400, "header line 3 is folded, which RFC 9112 forbids"},
		{"folded by tab", "GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n\tContent-Length: 5\r\n\r\n", 400, "header line 3 is folded, which RFC 9112 forbids"},
		{"folded first", "GET / HTTP/1.1\r\n X: a\r\nHost: h\r\n\r\n", 400, malformed},
		{"NUL", "GET / HTTP/1.1\r\nHost: h\r\nX: a\x00b\r\n\r\n", 400, malformed},
		{"bare CR", "GET / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n", 400, malformed},
		{"bare LF", "GET / HTTP/1.1\r\nHost: h\r\nX: a\nY: b\r\n\r\n", 400, "the value of header line 2 has the control character 0x0a"},
		{"bare LF ends the head", "GET / HTTP/1.1\r\nHost: h\r\n\n", 400, "the header section does not end with an empty line after CR LF"},
		{"DEL", "GET / HTTP/1.1\r\nHost: h\r\nX: a\x7fb\r\n\r\n", 400, malformed},
		{"no Host", "GET / HTTP/1.1\r\nX: a\r\n\r\n", 400, malformed},
		{"two Hosts", "GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", 400, malformed},
		{"user in Host", "GET / HTTP/1.1\r\nHost: u:p@h\r\n\r\n", 400, "the Host line is not a host with an optional port"},
		{"path in Host", "GET / HTTP/1.1\r\nHost: h/x\r\n\r\n", 400, malformed},
		{"quote in Host", "GET / HTTP/1.1\r\nHost: h\"\r\n\r\n", 400, "the Host line is not a host with an optional port"},
		{"HTTP/1.0", "GET / HTTP/1.0\r\nHost: h\r\n\r\n", 505, "only HTTP/1.1 is spoken here"},
		{"HTTP/1.0 chunked", "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", 501, "the only transfer coding that is understood is chunked, once"},
		{"HTTP/2.7", "GET / HTTP/2.7\r\nHost: h\r\n\r\n", 505, "only HTTP/1.1 is spoken here"},
		{"HTTP/1.1x", "GET / HTTP/1.1x\r\nHost: h\r\n\r\n", 400, malformed},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, malformed},
		{"no version", "GET /\r\nHost: h\r\n\r\n", 400, malformed},
		{"lower-case method", "get / HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the method is not a token of capital letters"},
		{"long method", "ABCDEFGHIJKLMNOPQRSTU / HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the method is longer than 20 letters"},
		{"CONNECT", "CONNECT /a HTTP/1.1\r\nHost: h\r\n\r\n", 405, "the method CONNECT is not allowed"},
		{"CONNECT with authority", "CONNECT a:443 HTTP/1.1\r\nHost: h\r\n\r\n", 405, "the method CONNECT is not allowed"},
		{"TRACE", "TRACE /a HTTP/1.1\r\nHost: h\r\n\r\n", 405, "the method TRACE is not allowed"},
		{"two slashes", "GET //x/api/v1/secrets?y=http://z HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target does not start with exactly one '/'"},
		{"absolute form", "GET http://u:p@evil/api HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target does not start with exactly one '/'"},
		{"asterisk", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target does not start with exactly one '/'"},
		{"fragment", "GET /a#b?c HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target has the byte 0x23 at 2, which must be percent-encoded"},
		{"broken escape", "GET /a%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target has a broken percent-escape at 2"},
		{"cut escape", "GET /a%2 HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target has a broken percent-escape at 2"},
		{"raw UTF-8", "GET /\xc3\xa4 HTTP/1.1\r\nHost: h\r\n\r\n", 400, "the request target has the byte 0xc3 at 1, which must be percent-encoded"},
		{"tab in the target", "GET /a\tb HTTP/1.1\r\nHost: h\r\n\r\n", 400, malformed},
		{"space in the target", "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 400, malformed},
		{"expectation", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nexpect: magic\r\n\r\n", 417, "the only expectation that can be met is 100-continue"},
		{"expectation of a bad request", "POST // HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n", 400, "the request target does not start with exactly one '/'"},
		{"connection options", "GET / HTTP/1.1\r\nHost: h\r\nConnection: " + strings.Repeat("a,", 64) + "\r\n\r\n", 400, "Connection lists more than 64 options"},
		{"many lines", "GET / HTTP/1.1\r\nHost: h\r\n" + strings.Repeat("a:\r\n", 4096) + "\r\n", 431, "the request has 4097 header lines, more than the limit of 4096"},
		{"large head", "GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("a", 128<<10) + "\r\n\r\n", 431, "the request line and header lines are larger than the limit of 131072 bytes"},
		{"TLS", "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00\r\n\r\n", 400, malformed},
	}
	refusals := make(chan front.Refusal, 1)
	s := start(t, front.Config{
		Handler: func(r *front.Request) *front.Response {
			t.Errorf("the handler was called for %s %s", r.Method, r.Target)
			return text("")
		},
		OnRefuse: func(_ netip.AddrPort, r front.Refusal) { refusals <- r },
	})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := s.dial()
			c.send(tt.request + smuggled)
			resp := c.response("GET")
			if resp.StatusCode != tt.code || !resp.Close {
				t.Errorf("answered %s, close %v; want %d, close", resp.Status, resp.Close, tt.code)
			}
			if st := readStatus(t, resp); st.Message != tt.message {
				t.Errorf("message %q\n   want %q", st.Message, tt.message)
			}
			if rest := c.rest(); rest != "" {
				t.Errorf("more came: %q", rest)
			}
			if r := wait(t, refusals, "OnRefuse"); r.Code != tt.code || r.Message != tt.message || r.Reason == "" {
				t.Errorf("refusal %+v", r)
			}
		})
	}
}

// A request that does not come in time is answered; a connection on which no
// byte came is closed without a word, since nothing was asked.
func TestHeadTimeout(t *testing.T) {
	s := start(t, front.Config{
		Handler:     func(*front.Request) *front.Response { return text("") },
		HeadTimeout: 20 * time.Millisecond,
	})
	c := s.dial()
	c.send("GET / HTTP/1.1\r\nHost:")
	resp := c.response("GET")
	if st := readStatus(t, resp); st.Code != 408 || st.Reason != "Timeout" || st.Message != "the request did not come in time" {
		t.Errorf("answered %+v", st)
	}
	if rest := s.dial().rest(); rest != "" {
		t.Errorf("a silent connection got %q", rest)
	}
	c = s.dial()
	if got := c.get("/"); got != "200 OK " {
		t.Errorf("answered %q", got)
	}
	c.send("GET / HTTP/1.1\r\n")
	if st := readStatus(t, c.response("GET")); st.Code != 408 {
		t.Errorf("the second request was answered %+v", st)
	}
}

func TestIdleTimeout(t *testing.T) {
	s := start(t, front.Config{
		Handler:     func(*front.Request) *front.Response { return text("ok") },
		IdleTimeout: 20 * time.Millisecond,
	})
	c := s.dial()
	if got := c.get("/"); got != "200 OK ok" {
		t.Errorf("answered %q", got)
	}
	if rest := c.rest(); rest != "" {
		t.Errorf("an idle connection got %q", rest)
	}
}

// What is refused must not show in any log: it may be a credential.
func TestRefusalsAreSilent(t *testing.T) {
	s := start(t, front.Config{Handler: func(*front.Request) *front.Response { return text("") }})
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer s3cret\x00\r\n\r\n",
		"GET /?s3cret HTTP/1.1\r\nAuthorization: Bearer s3cret\r\n\r\n",
		"GET s3cret\r\n\r\n",
	} {
		c := s.dial()
		c.send(request)
		b, err := io.ReadAll(c.r)
		if err != nil || len(b) == 0 || strings.Contains(string(b), "s3cret") {
			t.Errorf("answered %q, %v", b, err)
		}
	}
	if strings.Contains(s.log.String(), "s3cret") {
		t.Errorf("logged:\n%s", s.log)
	}
}
