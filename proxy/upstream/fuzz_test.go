package upstream

import (
	"bufio"
	"io"
	"net/http"
	"net/textproto"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// FuzzResponse holds our reading of an answer against net/http's: where both accept a
// message, it must be the same one. We may refuse more.
func FuzzResponse(f *testing.F) {
	for _, tt := range responses {
		f.Add(tt.method, tt.raw)
	}
	f.Add("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n000000000000005;x=\"y;z\"\r\nhello\r\n0\r\nA: b\r\n\r\nHTTP/1.1")
	f.Add("GET", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabcdef")
	f.Fuzz(func(t *testing.T, method, raw string) {
		if method != "HEAD" {
			method = "GET"
		}
		got, err := readMessage(strings.NewReader(raw), method)
		pieces, piecesErr := readMessage(iotest.OneByteReader(strings.NewReader(raw)), method)
		if (err == nil) != (piecesErr == nil) || !reflect.DeepEqual(got, pieces) && err == nil {
			t.Fatalf("at once: %+v, %v\nbyte by byte: %+v, %v", got, err, pieces, piecesErr)
		}
		if err != nil || got.status == 101 {
			return
		}
		want, wantBody, ok := readOracle(raw, method)
		if !ok {
			return
		}
		if got.status != want.StatusCode || got.body != wantBody || !reflect.DeepEqual(canonical(got), want.Header) {
			t.Errorf("got  %d %v %q\nwant %d %v %q", got.status, canonical(got), got.body, want.StatusCode, want.Header, wantBody)
		}
	})
}

// readOracle reads an answer with net/http, skipping interim ones.
func readOracle(raw, method string) (*http.Response, string, bool) {
	br := bufio.NewReader(strings.NewReader(raw))
	for {
		resp, err := http.ReadResponse(br, &http.Request{Method: method})
		if err != nil {
			return nil, "", false
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return nil, "", false
		}
		resp.Header.Del("Connection") // it takes out "close" only
		if resp.StatusCode >= 200 || resp.StatusCode == 101 {
			return resp, string(body), true
		}
	}
}

// canonical is the header as net/http holds it: framing taken out, names in its case.
func canonical(m message) http.Header {
	h := http.Header{}
	for _, field := range m.header {
		name := textproto.CanonicalMIMEHeaderKey(field.Name)
		if name == "Connection" || name == "Transfer-Encoding" || name == "Trailer" || (name == "Content-Length" && h.Get(name) != "") {
			continue
		}
		h.Add(name, field.Value)
	}
	return h
}
