package upstream

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
)

// unsized hides that a reader is in memory.
func unsized(s string) io.Reader { return io.MultiReader(strings.NewReader(s)) }

func TestRequestBytes(t *testing.T) {
	large := strings.Repeat("x", inlineBodyBytes+1)
	tests := []struct {
		name string
		req  Request
		want string
	}{
		{
			"nothing is added to a GET",
			Request{Method: "GET", Target: "/api", Host: "kube.example"},
			"GET /api HTTP/1.1\r\nHost: kube.example\r\n\r\n",
		},
		{
			"the target is sent byte for byte",
			Request{Method: "GET", Target: "/api/v1/namespaces/d/services/s:80/proxy//a%2Fb/%2e%2e/../Y%2BY%3D/é?x=%26&y=a+b?", Host: "h"},
			"GET /api/v1/namespaces/d/services/s:80/proxy//a%2Fb/%2e%2e/../Y%2BY%3D/é?x=%26&y=a+b? HTTP/1.1\r\nHost: h\r\n\r\n",
		},
		{
			"lines keep order, case and repetition",
			Request{Method: "GET", Target: "/", Host: "h", Header: fields(
				"impersonate-group", "a", "Accept", "x", "Impersonate-Extra-acme.io%2Fproject", "p1", "Impersonate-Group", "b", "X_a.b", "", "ACCEPT", "y",
			)},
			"GET / HTTP/1.1\r\nHost: h\r\nimpersonate-group: a\r\nAccept: x\r\nImpersonate-Extra-acme.io%2Fproject: p1\r\n" +
				"Impersonate-Group: b\r\nX_a.b: \r\nACCEPT: y\r\n\r\n",
		},
		{
			"framing and host come from the fields only",
			Request{Method: "PUT", Target: "/", Host: "h", Body: strings.NewReader("{}"), ContentLength: 2, Header: fields(
				"host", "evil", "content-length", "99", "Transfer-Encoding", "chunked", "Expect", "100-continue", "Content-Type", "application/json",
			)},
			"PUT / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
		},
		{
			"POST without a body says so",
			Request{Method: "POST", Target: "/", Host: "h", Body: strings.NewReader("")},
			"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
		},
		{
			"DELETE without a body says nothing",
			Request{Method: "DELETE", Target: "/", Host: "h"},
			"DELETE / HTTP/1.1\r\nHost: h\r\n\r\n",
		},
		{
			"DELETE with a body",
			Request{Method: "DELETE", Target: "/", Host: "h", Body: unsized("{}"), ContentLength: 2},
			"DELETE / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}",
		},
		{
			"unknown length is chunked",
			Request{Method: "POST", Target: "/", Host: "h", Body: unsized("hello, chunks and all"), ContentLength: -1},
			"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n15\r\nhello, chunks and all\r\n0\r\n\r\n",
		},
		{
			"chunked and empty",
			Request{Method: "POST", Target: "/", Host: "h", Body: unsized(""), ContentLength: -1},
			"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		},
		{
			"a large body of known length",
			Request{Method: "POST", Target: "/", Host: "h", Body: unsized(large), ContentLength: int64(len(large))},
			"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 32769\r\n\r\n" + large,
		},
		{
			"a body longer than its length is cut",
			Request{Method: "POST", Target: "/", Host: "h", Body: unsized("abcdef"), ContentLength: 3},
			"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
		},
		{
			"the full chunk",
			Request{Method: "POST", Target: "/", Host: "h", Body: io.LimitReader(unsized(large+large), uploadPieceBytes), ContentLength: -1},
			"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n8000\r\n" + large[:uploadPieceBytes] + "\r\n0\r\n\r\n",
		},
	}
	got := make(chan string, 1)
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		for {
			req, err := readRequest(r)
			if err != nil {
				return
			}
			got <- req
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	s := serverAt(t, "http://"+addr, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, err := do(t, s, &tt.req); err != nil {
				t.Fatal(err)
			}
			if req := within(t, got, "the request"); req != tt.want {
				t.Errorf("server got %d bytes:\n%.400q\nwant %d bytes:\n%.400q", len(req), req, len(tt.want), tt.want)
			}
		})
	}
}

func TestRequestWithoutHostNamesTheServer(t *testing.T) {
	addr := listen(t, answerEach("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	s := serverAt(t, "http://"+addr, nil)
	out, _, err := s.prepare(testContext(t), &Request{Method: "GET", Target: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if want := "GET / HTTP/1.1\r\nHost: " + addr + "\r\n\r\n"; string(*out) != want {
		t.Errorf("got %q, want %q", *out, want)
	}
}

// What would be another request, or two, on the wire is never sent.
func TestRequestRefused(t *testing.T) {
	s := serverAt(t, "http://127.0.0.1:1", nil)
	f := func(req Request, op, words string) {
		t.Helper()
		_, err := s.RoundTrip(testContext(t), &req)
		wantError(t, err, op, false, words)
	}

	f(Request{Method: "", Target: "/"}, OpRequest, `bad method ""`)
	f(Request{Method: "GET /x HTTP/1.1\r\n", Target: "/"}, OpRequest, "bad method")
	f(Request{Method: "GET", Target: ""}, OpRequest, "bad request target")
	f(Request{Method: "GET", Target: "*"}, OpRequest, "bad request target")
	f(Request{Method: "GET", Target: "/a b"}, OpRequest, "bad request target")
	f(Request{Method: "GET", Target: "/a\r\nX: y"}, OpRequest, "bad request target")
	f(Request{Method: "GET", Target: "/", Host: "a\nb"}, OpRequest, "bad host")
	f(Request{Method: "GET", Target: "/", Header: fields("X y", "")}, OpRequest, `bad header line "X y"`)
	f(Request{Method: "GET", Target: "/", Header: fields("X", "y\r\nz: 1")}, OpRequest, `bad header line "X"`)
	f(Request{Method: "GET", Target: "/", ContentLength: -2}, OpRequest, "bad content length")
	f(Request{Method: "PUT", Target: "/", ContentLength: 3}, OpRequest, "without a body")
	f(Request{Method: "PUT", Target: "/", ContentLength: 3, Body: strings.NewReader("ab")}, OpRequestBody, "unexpected EOF")
}
