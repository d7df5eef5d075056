package front_test

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

func TestRequest(t *testing.T) {
	got := make(chan *front.Request, 1)
	s := start(t, front.Config{Handler: func(r *front.Request) *front.Response {
		got <- r
		return text("")
	}})
	c := s.dial()
	c.send("DELETE /api/v1/%2e%2e/x//y?a=%00&b=\"{}\" HTTP/1.1\r\n" +
		"user-AGENT:  kubectl/v1.20 \r\nImpersonate-Extra-acme.io%2Fproject: A\r\nHost: h:6443\r\nX_a.b%2Fc: 1\r\n" +
		"Accept: a\r\nempty:\r\nAccept: b, c\r\nContent-Type: x\r\nContent-Length: 00\r\nName: \xc3\xa4\t\x80\r\nConnection: keep-alive\r\n\r\n")
	r := wait(t, got, "the request")
	want := wire.Header{
		{Name: "user-AGENT", Value: "kubectl/v1.20"},
		{Name: "Impersonate-Extra-acme.io%2Fproject", Value: "A"},
		{Name: "Host", Value: "h:6443"},
		{Name: "X_a.b%2Fc", Value: "1"},
		{Name: "Accept", Value: "a"},
		{Name: "empty", Value: ""},
		{Name: "Accept", Value: "b, c"},
		{Name: "Content-Type", Value: "x"},
		{Name: "Content-Length", Value: "00"},
		{Name: "Name", Value: "\xc3\xa4\t\x80"},
		{Name: "Connection", Value: "keep-alive"},
	}
	if !reflect.DeepEqual(r.Header, want) {
		t.Errorf("header\n got %q\nwant %q", r.Header, want)
	}
	if r.Method != "DELETE" || r.Target != "/api/v1/%2e%2e/x//y?a=%00&b=\"{}\"" || r.Host != "h:6443" || r.ContentLength != 0 {
		t.Errorf("request %+v", r)
	}
	if r.RemoteAddr.String() != c.LocalAddr().String() || r.PeerCertificates != nil {
		t.Errorf("peer %v, %v", r.RemoteAddr, r.PeerCertificates)
	}
	// The next request must not write into what the first one keeps.
	kept := fmt.Sprint(r.Method, r.Target, r.Header)
	c.response("DELETE")
	c.send("PATCH /" + strings.Repeat("z", 300) + " HTTP/1.1\r\nHost: other\r\n\r\n")
	wait(t, got, "the next request")
	if now := fmt.Sprint(r.Method, r.Target, r.Header); now != kept {
		t.Errorf("the request changed\nfrom %s\n  to %s", kept, now)
	}
}

// Two thousand lines of one name are many, but somebody's groups.
func TestManyLines(t *testing.T) {
	s := start(t, front.Config{Handler: func(r *front.Request) *front.Response {
		return text(fmt.Sprint(len(r.Header.Values("Impersonate-Group"))))
	}})
	c := s.dial()
	c.send("GET / HTTP/1.1\r\nHost: h\r\n" + strings.Repeat("Impersonate-Group: g\r\n", 2000) + "\r\n")
	if got := read(t, c.response("GET").Body); got != "2000" {
		t.Errorf("got %s lines", got)
	}
}

func TestBody(t *testing.T) {
	const limit = 100_000
	big := strings.Repeat("b", limit)
	tests := []struct {
		name, request, want string
	}{
		{"none", "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "0 ''"},
		{"length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", "5 'hello'"},
		{"one byte", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nh", "1 'h'"},
		{"chunked", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nX-T: v\r\n\r\n", "-1 'hello'"},
		{"empty chunked", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "-1 ''"},
		{"of a GET", "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}", "2 '{}'"},
		{"of a DELETE", "DELETE / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}", "2 '{}'"},
		{"at the limit", "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n" + big, "100000 '" + big + "'"},
		{"above the limit", "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 100001\r\n\r\n" + big + "b", "the request body is larger than the limit of 100000 bytes"},
		{"chunked above the limit", "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n186A1\r\n" + big + "b\r\n0\r\n\r\n", "the request body is larger than the limit of 100000 bytes"},
		{"bad chunk", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nlox\r\n0\r\n\r\n", "400"},
		{"chunk with a bare LF", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\nlo\n0\n\n", "400"},
		{"huge chunk", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", "400"},
		{"forbidden trailer", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n", "400"},
	}
	s := start(t, front.Config{Handler: func(r *front.Request) *front.Response {
		b, err := r.ReadBody(limit)
		var tooLarge *front.BodyTooLargeError
		var bad *front.BodyError
		switch {
		case errors.As(err, &tooLarge):
			return text(tooLarge.Error())
		case errors.As(err, &bad):
			return text(fmt.Sprint(bad.Code))
		case err != nil:
			return text("unexpected: " + err.Error())
		}
		return text(fmt.Sprintf("%d '%s'", r.ContentLength, b))
	}})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := s.dial()
			c.send(tt.request)
			resp := c.response("POST")
			if got := read(t, resp.Body); got != tt.want {
				t.Errorf("got %.200s\nwant %.200s", got, tt.want)
			}
			if resp.Close {
				return
			}
			c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nnext")
			if got := read(t, c.response("POST").Body); got != "4 'next'" {
				t.Errorf("the next request got %q", got)
			}
		})
	}
}

func TestBodyCutShort(t *testing.T) {
	errs := make(chan error, 1)
	s := start(t, front.Config{
		Handler: func(r *front.Request) *front.Response {
			_, err := io.ReadAll(r.Body)
			errs <- err
			return text("")
		},
		BodyTimeout: 20 * time.Millisecond,
	})
	for _, head := range []string{"Content-Length: 10\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\na\r\nhello"} {
		var bad *front.BodyError
		c := s.dial()
		c.send("POST / HTTP/1.1\r\nHost: h\r\n" + head)
		if err := wait(t, errs, "the handler"); !errors.As(err, &bad) || bad.Code != 408 {
			t.Errorf("a stalled body: %v", err)
		}
		if resp := c.response("POST"); !resp.Close {
			t.Error("a connection with a broken body stays open")
		}
		c = s.dial()
		c.send("POST / HTTP/1.1\r\nHost: h\r\n" + head)
		c.Close()
		if err := wait(t, errs, "the handler"); !errors.As(err, &bad) || bad.Code != 400 ||
			err.Error() != "cannot read the request body: unexpected EOF" {
			t.Errorf("a body cut short: %v", err)
		}
	}
}

// An answer before the body was read must reach the client, and must not wait for
// a goroutine that still reads the body.
func TestEarlyAnswer(t *testing.T) {
	bothWays(t, front.Config{}, func(t *testing.T, cfg front.Config, dial func(*server) *client) {
		late := make(chan error, 1)
		cfg.Handler = func(r *front.Request) *front.Response {
			reading := make(chan struct{})
			go func() {
				_, err := r.Body.Read(make([]byte, 1)) // is there at once
				close(reading)
				for err == nil {
					_, err = r.Body.Read(make([]byte, 1))
				}
				late <- err
			}()
			<-reading
			resp := text("too large")
			resp.Status = 413
			return resp
		}
		s := start(t, cfg)
		c := dial(s)
		c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10000000\r\n\r\nx")
		resp := c.response("POST")
		if got := read(t, resp.Body); resp.StatusCode != 413 || got != "too large" || !resp.Close {
			t.Errorf("answered %s %q", resp.Status, got)
		}
		if err := wait(t, late, "the late reader"); err.Error() != "the exchange is over" {
			t.Errorf("the late reader got %v", err)
		}
	})
}

// A client that sends its whole body before it reads must find the answer.
func TestEarlyAnswerToAWriter(t *testing.T) {
	s := start(t, front.Config{Handler: func(*front.Request) *front.Response {
		resp := text("no")
		resp.Status = 413
		return resp
	}})
	c := s.dial()
	c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n" + strings.Repeat("x", 2_000_000))
	if got := read(t, c.response("POST").Body); got != "no" {
		t.Errorf("answered %q", got)
	}
}

// A short body that the handler did not read is skipped, and the connection used
// again.
func TestUnreadBody(t *testing.T) {
	s := start(t, front.Config{Handler: func(r *front.Request) *front.Response { return text(r.Target) }})
	c := s.dial()
	c.send("POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 38\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: smug")
	if got := read(t, c.response("POST").Body); got != "/1" {
		t.Errorf("answered %q", got)
	}
	c.send("gled")
	if got := c.get("/2"); got != "200 OK /2" {
		t.Errorf("answered %q", got)
	}
}

// A stream may read the request's body while it writes the answer's.
func TestStreamReadsBody(t *testing.T) {
	s := start(t, front.Config{Handler: func(r *front.Request) *front.Response {
		return &front.Response{Status: 200, Length: -1, Stream: func(w io.Writer) error {
			_, err := io.Copy(w, r.Body)
			return err
		}}
	}})
	c := s.dial()
	for range 3 {
		c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 8\r\n\r\nhell")
		resp := c.response("POST")
		b := make([]byte, 4)
		if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != "hell" {
			t.Fatalf("got %q, %v", b, err)
		}
		c.send("o yo")
		if got := read(t, resp.Body); got != "o yo" {
			t.Errorf("got %q", got)
		}
	}
}

func TestExpect(t *testing.T) {
	s := start(t, front.Config{Handler: func(r *front.Request) *front.Response {
		b, err := r.ReadBody(10)
		if err != nil {
			return text(err.Error())
		}
		return text(string(b))
	}})
	for _, name := range []string{"Expect: 100-continue", "expect: 100-Continue"} {
		for _, framing := range []string{"Content-Length: 5\r\n\r\n|hello", "Transfer-Encoding: chunked\r\n\r\n|5\r\nhello\r\n0\r\n\r\n"} {
			head, body, _ := strings.Cut(framing, "|")
			c := s.dial()
			c.send("POST / HTTP/1.1\r\nHost: h\r\n" + name + "\r\n" + head)
			if resp := c.response("POST"); resp.StatusCode != 100 {
				t.Fatalf("answered %s before the body", resp.Status)
			}
			c.send(body)
			if got := read(t, c.response("POST").Body); got != "hello" {
				t.Errorf("answered %q", got)
			}
			if got := c.get("/"); got != "200 OK " {
				t.Errorf("the next request was answered %q", got)
			}
		}
	}
}

// A client that asked to be asked, and then says nothing, holds nothing for long.
func TestExpectThenNothing(t *testing.T) {
	s := start(t, front.Config{
		Handler:     func(*front.Request) *front.Response { return text("") },
		HeadTimeout: 20 * time.Millisecond,
	})
	for range 10 {
		s.dial().send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
	}
	until(t, "the connections to end", func() bool { return s.Connections() == 0 })
}

func TestRequestMadeByHand(t *testing.T) {
	r := &front.Request{Body: strings.NewReader("abc")}
	r.OnGone(func() { t.Error("gone") }, 0)
	if r.ShuttingDown() != nil {
		t.Error("ShuttingDown is not nil")
	}
	if b, err := r.ReadBody(3); string(b) != "abc" || err != nil {
		t.Errorf("ReadBody: %q, %v", b, err)
	}
}
