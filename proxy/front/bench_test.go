package front_test

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// BenchmarkGet is one keep-alive connection over loopback: a request as kubectl
// sends it, 1 KiB back as a stream of known length, with a guard that is never
// needed.
func BenchmarkGet(b *testing.B) {
	payload := make([]byte, 1024)
	header := wire.Header{
		{Name: "Audit-Id", Value: "a"},
		{Name: "Cache-Control", Value: "no-cache, private"},
		{Name: "Content-Type", Value: "application/json"},
		{Name: "Date", Value: "Mon, 02 Jan 2006 15:04:05 GMT"},
	}
	s, err := front.New(front.Config{Handler: func(r *front.Request) *front.Response {
		r.OnGone(func() {}, 100*time.Millisecond)
		return &front.Response{Status: 200, Header: header, Length: int64(len(payload)), Stream: func(w io.Writer) error {
			_, err := w.Write(payload)
			return err
		}}
	}})
	if err != nil {
		b.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = s.Serve(ln) }()
	defer func() { _ = s.Shutdown(b.Context()) }()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	request := []byte("GET /api/v1/namespaces/default/pods?limit=500 HTTP/1.1\r\nHost: 127.0.0.1:6443\r\n" +
		"User-Agent: kubectl/v1.32.0 (linux/amd64) kubernetes/70d3cc9\r\nAccept: application/json\r\n" +
		"Authorization: Bearer 0123456789\r\nAccept-Encoding: gzip\r\n\r\n")
	r := bufio.NewReader(c)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(request); err != nil {
			b.Fatal(err)
		}
		for { // the head
			line, err := r.ReadSlice('\n')
			if err != nil {
				b.Fatal(err)
			}
			if len(line) == 2 {
				break
			}
		}
		if _, err := r.Discard(len(payload)); err != nil {
			b.Fatal(err)
		}
	}
}
