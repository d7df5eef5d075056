package upstream

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// client-go's requests go out as MVP's own, and the answer comes back whole.
func TestTransport(t *testing.T) {
	got := make(chan string, 1)
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		request, _ := readRequest(r)
		got <- request
		_, _ = io.WriteString(c, "HTTP/1.1 201 Created\r\nX-A: 1\r\nX-A: 2\r\nContent-Length: 2\r\n\r\nok")
	})
	client := &http.Client{Transport: transport{serverAt(t, "http://"+addr, func(c *Config) { c.Token = "secret" })}}
	req, err := http.NewRequestWithContext(testContext(t), http.MethodGet, "http://elsewhere/a%2Fb?x=%20y", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if closeErr := resp.Body.Close(); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
	if string(body) != "ok" || resp.StatusCode != 201 || strings.Join(resp.Header.Values("X-A"), ",") != "1,2" {
		t.Errorf("answer is %d %v %q", resp.StatusCode, resp.Header, body)
	}
	const want = "GET /a%2Fb?x=%20y HTTP/1.1\r\nHost: HOST\r\nAccept: application/json\r\nUser-Agent: mvp\r\nAuthorization: Bearer secret\r\n\r\n"
	if request := within(t, got, "the request"); request != strings.Replace(want, "HOST", addr, 1) {
		t.Errorf("request is %q, want %q", request, want)
	}
}

// MVP's own credential reads and does nothing else.
func TestTransportOnlyReads(t *testing.T) {
	s := serverAt(t, "http://127.0.0.1:1", nil)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		body := &closeNoted{Reader: strings.NewReader("{}")}
		req, err := http.NewRequestWithContext(testContext(t), method, "http://a/api", body)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (transport{s}).RoundTrip(req); !errors.Is(err, errOnlyGet) || !body.closed { //nolint:bodyclose // there is none
			t.Errorf("%s: %v, body closed: %v", method, err, body.closed)
		}
	}
}

type closeNoted struct {
	io.Reader
	closed bool
}

func (c *closeNoted) Close() error {
	c.closed = true
	return nil
}

// A list is not read without bound; a watch is.
func TestTransportBounds(t *testing.T) {
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		if _, err := readRequest(r); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		chunk := strings.Repeat("x", 1<<20)
		for {
			if _, err := io.WriteString(c, chunk); err != nil {
				return
			}
		}
	})
	s := serverAt(t, "http://"+addr, nil)
	read := func(query string, limit int64) (int64, error) {
		req, err := http.NewRequestWithContext(testContext(t), http.MethodGet, "http://a/apis"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport{s}.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		return io.Copy(io.Discard, io.LimitReader(resp.Body, limit))
	}
	var tooLarge *http.MaxBytesError
	if n, err := read("", 2*maxCRDListBytes); n != maxCRDListBytes || !errors.As(err, &tooLarge) {
		t.Errorf("a list was read for %d bytes: %v; want %d and an error", n, err, maxCRDListBytes)
	}
	if n, err := read("?watch=true", maxCRDListBytes+1); n != maxCRDListBytes+1 || err != nil {
		t.Errorf("a watch was read for %d bytes: %v", n, err)
	}
}
