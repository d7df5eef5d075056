package front_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// The bytes that go out are those that were given, and nothing else.
func TestAnswer(t *testing.T) {
	header := wire.Header{
		{Name: "x-lower", Value: "1"},
		{Name: "Warning", Value: "299 - \"a\""},
		{Name: "Date", Value: "Mon, 02 Jan 2006 15:04:05 GMT"},
		{Name: "Content-Length", Value: "77"},
		{Name: "Server", Value: "s"},
		{Name: "Warning", Value: "299 - \"b\""},
		{Name: "Transfer-Encoding", Value: "chunked"},
		{Name: "Connection", Value: "X-Foo"},
		{Name: "Trailer", Value: "X-Foo"},
		{Name: "Content-Type", Value: "a/b"},
		{Name: "Set-Cookie", Value: "c=d"},
		{Name: "Empty", Value: ""},
	}
	const before = "x-lower: 1\r\nWarning: 299 - \"a\"\r\nDate: Mon, 02 Jan 2006 15:04:05 GMT\r\n"
	const after = "Server: s\r\nWarning: 299 - \"b\"\r\nContent-Type: a/b\r\nSet-Cookie: c=d\r\nEmpty: \r\n"
	const length, closed = "Content-Length: ", "Connection: close\r\n"
	hello := func(w io.Writer) error {
		_, err := io.WriteString(w, "hel")
		_, err2 := io.WriteString(w, "lo")
		return errors.Join(err, err2)
	}
	nothing := func(io.Writer) error { return nil }
	tests := []struct {
		name, method string
		resp         front.Response
		want         string
	}{
		{"bytes", "GET", front.Response{Status: 200, Bytes: []byte("hello")}, "200 OK\r\n" + before + length + "5\r\n" + after + "\r\nhello"},
		{"empty", "GET", front.Response{Status: 404}, "404 Not Found\r\n" + before + length + "0\r\n" + after + "\r\n"},
		{"close", "GET", front.Response{Status: 200, Close: true}, "200 OK\r\n" + before + length + "0\r\n" + after + closed + "\r\n"},
		{"stream", "GET", front.Response{Status: 200, Stream: hello, Length: 5}, "200 OK\r\n" + before + length + "5\r\n" + after + "\r\nhello"},
		{"empty stream", "GET", front.Response{Status: 200, Stream: nothing}, "200 OK\r\n" + before + length + "0\r\n" + after + "\r\n"},
		{"chunked", "GET", front.Response{Status: 200, Stream: hello, Length: -1}, "200 OK\r\n" + before + "Transfer-Encoding: chunked\r\n" + after + "\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"},
		{"empty chunked", "GET", front.Response{Status: 200, Stream: nothing, Length: -1}, "200 OK\r\n" + before + "Transfer-Encoding: chunked\r\n" + after + "\r\n0\r\n\r\n"},
		{"head of bytes", "HEAD", front.Response{Status: 200, Bytes: []byte("hello")}, "200 OK\r\n" + before + length + "5\r\n" + after + "\r\n"},
		{"head of a stream", "HEAD", front.Response{Status: 200, Stream: hello, Length: 5}, "200 OK\r\n" + before + length + "5\r\n" + after + "\r\n"},
		{"head of chunks", "HEAD", front.Response{Status: 200, Stream: hello, Length: -1}, "200 OK\r\n" + before + after + "\r\n"},
		{"head as given", "HEAD", front.Response{Status: 200, NoBody: true}, "200 OK\r\n" + before + length + "77\r\n" + after + "\r\n"},
		{"not modified", "GET", front.Response{Status: 304, NoBody: true}, "304 Not Modified\r\n" + before + length + "77\r\n" + after + "\r\n"},
		{"no content", "GET", front.Response{Status: 204, NoBody: true}, "204 No Content\r\n" + before + after + "\r\n"},
		{"no body where one belongs", "GET", front.Response{Status: 200, NoBody: true}, "200 OK\r\n" + before + length + "0\r\n" + after + "\r\n"},
	}
	next := make(chan *front.Response, 1)
	s := start(t, front.Config{Handler: func(r *front.Request) *front.Response {
		if r.Target == "/end" {
			return &front.Response{Status: 200, Close: true}
		}
		return <-next
	}})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			done := make(chan outcome, 2)
			resp := ends(&tt.resp, done)
			resp.Header = header
			next <- resp
			c := s.dial()
			// Both requests at once: the second answer follows the first without
			// a byte between them.
			c.send(tt.method + " / HTTP/1.1\r\nHost: h\r\n\r\nGET /end HTTP/1.1\r\nHost: h\r\n\r\n")
			want := "HTTP/1.1 " + tt.want
			if !resp.Close {
				want += "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
			}
			if got := c.rest(); got != want {
				t.Errorf("got\n%q\nwant\n%q", got, want)
			}
			_, body, _ := strings.Cut(tt.want, "\r\n\r\n")
			written := int64(min(len(body), 5)) // "hello" or nothing
			if strings.HasPrefix(body, "0\r\n") {
				written = 0
			}
			if got := wait(t, done, "Done"); got != (outcome{written, nil}) {
				t.Errorf("Done(%d, %v), want %d", got.written, got.err, written)
			}
		})
	}
}

func TestPipeline(t *testing.T) {
	s := start(t, front.Config{Handler: func(r *front.Request) *front.Response {
		r.OnGone(func() {}, 0)
		b, err := r.ReadBody(100)
		if err != nil {
			t.Error(err)
		}
		return text(r.Target + string(b))
	}})
	c := s.dial()
	var requests, want strings.Builder
	for i := range 50 {
		fmt.Fprintf(&requests, "POST /%02d HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", i)
		fmt.Fprintf(&want, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\n/%02dabc", i)
	}
	c.send(requests.String())
	got := make([]byte, want.Len())
	if _, err := io.ReadFull(c.r, got); err != nil || string(got) != want.String() {
		t.Errorf("%v, got %q", err, got)
	}
}

// Large bodies in all framings and write sizes come out whole.
func TestLargeAnswers(t *testing.T) {
	data := strings.Repeat("0123456789abcde\n", 40_000)
	bothWays(t, front.Config{}, func(t *testing.T, cfg front.Config, dial func(*server) *client) {
		cfg.Handler = func(r *front.Request) *front.Response {
			var size int
			var length int64
			if _, err := fmt.Sscanf(r.Target, "/%d/%d", &size, &length); err != nil {
				t.Error(err)
			}
			if size == 0 {
				return text(data)
			}
			return &front.Response{Status: 200, Length: length, Stream: func(w io.Writer) error {
				for rest := data; rest != ""; {
					n := min(size, len(rest))
					if m, err := io.WriteString(w, rest[:n]); err != nil || m != n {
						return fmt.Errorf("wrote %d of %d: %w", m, n, err)
					}
					rest = rest[n:]
				}
				return nil
			}}
		}
		s := start(t, cfg)
		c := dial(s)
		for _, size := range []int{0, 999, 32 << 10, 36 << 10, 100_000, len(data)} {
			for _, length := range []int{len(data), -1} {
				if got := c.get(fmt.Sprintf("/%d/%d", size, length)); got != "200 OK "+data {
					t.Errorf("writes of %d, length %d: got %d bytes", size, length, len(got))
				}
			}
		}
	})
}

// The head of a stream of unknown length reaches the client before any body, and
// each write as it is made.
func TestStreamIsFlushed(t *testing.T) {
	bothWays(t, front.Config{}, func(t *testing.T, cfg front.Config, dial func(*server) *client) {
		write := make(chan string)
		cfg.Handler = func(r *front.Request) *front.Response {
			length := int64(-1)
			if r.Target == "/fixed" {
				length = 6
			}
			return &front.Response{Status: 200, Length: length, Stream: func(w io.Writer) error {
				for s := range write {
					if s == "" {
						break
					}
					if _, err := io.WriteString(w, s); err != nil {
						return err
					}
				}
				return nil
			}}
		}
		s := start(t, cfg)
		c := dial(s)
		c.send("GET /chunked HTTP/1.1\r\nHost: h\r\n\r\n")
		resp := c.response("GET")
		expect := func(s string) {
			t.Helper()
			write <- s
			b := make([]byte, len(s))
			if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != s {
				t.Fatalf("got %q, %v", b, err)
			}
		}
		expect("one")
		expect("two")
		write <- ""
		if rest := read(t, resp.Body); rest != "" {
			t.Errorf("more came: %q", rest)
		}
		c.send("GET /fixed HTTP/1.1\r\nHost: h\r\n\r\n")
		write <- "one"
		resp = c.response("GET")
		one := make([]byte, 3)
		if _, err := io.ReadFull(resp.Body, one); err != nil || string(one) != "one" {
			t.Fatalf("got %q, %v", one, err)
		}
		expect("two")
		write <- ""
	})
}

// A stream that cannot be completed must not look complete.
func TestAbortedStream(t *testing.T) {
	tests := []struct {
		name   string
		length int64
		stream func(w io.Writer) error
		body   string
		want   string
	}{
		{"chunked", -1, func(w io.Writer) error { _, _ = io.WriteString(w, "ab"); return io.ErrUnexpectedEOF }, "ab", "unexpected EOF"},
		{"before the first byte", -1, func(io.Writer) error { return io.ErrUnexpectedEOF }, "", "unexpected EOF"},
		{"fixed", 5, func(w io.Writer) error { _, _ = io.WriteString(w, "ab"); return io.ErrUnexpectedEOF }, "ab", "unexpected EOF"},
		{"fixed, before the first byte", 5, func(io.Writer) error { return io.ErrUnexpectedEOF }, "", "unexpected EOF"},
		{"too short", 5, func(w io.Writer) error { _, _ = io.WriteString(w, "ab"); return nil }, "ab", "the stream wrote 2 bytes where its length says 5"},
		{"too long", 3, func(w io.Writer) error { _, _ = io.WriteString(w, "ab"); _, _ = io.WriteString(w, "cd"); return nil }, "ab", "the stream wrote 4 bytes where its length says 3"},
		{"panic", -1, func(w io.Writer) error { _, _ = io.WriteString(w, "ab"); panic("at the disco") }, "ab", "the stream panicked: at the disco"},
	}
	bothWays(t, front.Config{}, func(t *testing.T, cfg front.Config, dial func(*server) *client) {
		next := make(chan *front.Response, 1)
		cfg.Handler = func(*front.Request) *front.Response { return <-next }
		s := start(t, cfg)
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				done := make(chan outcome, 2)
				next <- ends(&front.Response{Status: 200, Length: tt.length, Stream: tt.stream}, done)
				c := dial(s)
				c.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
				b, err := io.ReadAll(c.response("GET").Body)
				if string(b) != tt.body || !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("the client got %q, %v", b, err)
				}
				got := wait(t, done, "Done")
				if got.err == nil || got.err.Error() != tt.want || got.written != int64(len(tt.body)) {
					t.Errorf("Done(%d, %v)", got.written, got.err)
				}
			})
		}
		if !strings.Contains(s.log.String(), "at the disco") {
			t.Error("the panic was not logged")
		}
	})
}

func TestBadAnswers(t *testing.T) {
	tests := []struct {
		name string
		resp *front.Response
		log  string
	}{
		{"nil", nil, "cannot send the handler's answer: it is nil"},
		{"no status", &front.Response{}, "its status is 0"},
		{"interim", &front.Response{Status: 103}, "its status is 103"},
		{"101 without a tunnel", &front.Response{Status: 101}, "its status is 101"},
		{"name", &front.Response{Status: 200, Header: wire.Header{{Name: "a b", Value: "c"}}}, `\"a b\" is not a header name`},
		{"value", &front.Response{Status: 200, Header: wire.Header{{Name: "a", Value: "b\r\nc: d"}}}, "the value of a has a control character"},
	}
	next := make(chan *front.Response, 1)
	s := start(t, front.Config{Handler: func(*front.Request) *front.Response { return <-next }})
	c := s.dial()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			done := make(chan outcome, 2)
			if tt.resp != nil {
				ends(tt.resp, done)
			}
			next <- tt.resp
			c.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			if st := readStatus(t, c.response("GET")); st.Code != 500 || st.Reason != "InternalError" || st.Message != "a fault in the proxy, which is in its log" {
				t.Errorf("answered %+v", st)
			}
			if !strings.Contains(s.log.String(), tt.log) {
				t.Errorf("%q is not in the log:\n%s", tt.log, s.log)
			}
			if tt.resp != nil {
				if got := wait(t, done, "Done"); got.err == nil {
					t.Error("Done says it was sent")
				}
			}
		})
	}
}

func TestPanics(t *testing.T) {
	s := start(t, front.Config{Handler: func(r *front.Request) *front.Response {
		if r.Target == "/done" {
			return &front.Response{Status: 200, Done: func(int64, error) { panic("in Done") }}
		}
		panic("in the handler")
	}})
	c := s.dial()
	c.send("GET /handler HTTP/1.1\r\nHost: h\r\n\r\n")
	if st := readStatus(t, c.response("GET")); st.Code != 500 {
		t.Errorf("answered %+v", st)
	}
	if got := c.get("/done"); got != "200 OK " {
		t.Errorf("answered %q", got)
	}
	until(t, "the log", func() bool {
		return strings.Contains(s.log.String(), "in the handler") && strings.Contains(s.log.String(), "in Done") &&
			strings.Contains(s.log.String(), "answer_test.go")
	})
}

// A client that reads nothing is given up.
func TestStuckReader(t *testing.T) {
	bothWays(t, front.Config{WriteTimeout: 100 * time.Millisecond}, func(t *testing.T, cfg front.Config, dial func(*server) *client) {
		done := make(chan outcome, 1)
		cfg.Handler = func(*front.Request) *front.Response {
			return ends(&front.Response{Status: 200, Length: -1, Stream: func(w io.Writer) error {
				p := make([]byte, 1<<20)
				for {
					if _, err := w.Write(p); err != nil {
						return err
					}
				}
			}}, done)
		}
		s := start(t, cfg)
		c := dial(s)
		c.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		if got := wait(t, done, "the stream to end"); got.err == nil || !strings.Contains(got.err.Error(), "timeout") {
			t.Errorf("Done(%d, %v)", got.written, got.err)
		}
	})
}
