package proxy_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/proxy"
)

// largeThing is an object of size bytes, most of them in a text that no policy has to do
// with.
func largeThing(version, field string, size int) string {
	const before = `"annotations":{`
	thing := strings.Replace(untouchedThing(version, field, "1.0"), before, before+`"x":"",`, 1)
	return strings.Replace(thing, `"x":"`, `"x":"`+strings.Repeat("x", size-len(thing)), 1)
}

// An object may be as large as kube-apiserver takes it. What the client sends decides, not
// what becomes of it.
func TestLargestObject(t *testing.T) {
	const most = proxy.DefaultMaxBody
	client, server := largeThing("v1beta1", "old", most), largeThing("v1", "new", most-len("beta1"))
	for form, files := range untouchedForms {
		t.Run(form, func(t *testing.T) {
			u := record(t, "a", "1.32.13", things, func(request) string { return ok(server) })
			r := start(t, files, nil, u)
			for method, target := range map[string]string{"GET": oldPath + "/t", "POST": oldPath} {
				u.forget()
				body, wantBody := client, server
				if method == "GET" {
					body, wantBody = "", ""
				}
				if got := r.do(method, target, "application/json", body); got.code != http.StatusOK || got.body != client {
					t.Errorf("%s answered %d with %d bytes: %.300s", method, got.code, len(got.body), got.body)
				}
				if sent := u.only().body; sent != wantBody {
					t.Errorf("%s sent %d bytes: %.300s", method, len(sent), sent)
				}
			}
		})
	}
}

// One byte more is refused, whether or not the client said how much it would send.
func TestTooLargeObject(t *testing.T) {
	u := record(t, "a", "1.32.13", things, nil)
	r := start(t, untouchedForms["rules"], nil, u)
	larger := largeThing("v1beta1", "old", proxy.DefaultMaxBody+1)
	wantTooLarge(t, r, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(larger), larger))
	wantTooLarge(t, r, "Transfer-Encoding: chunked\r\n\r\n"+chunked(larger)+"0\r\n\r\n")
	if sent := u.got(); len(sent) > 0 {
		t.Errorf("sent %d requests", len(sent))
	}
}

// wantTooLarge posts a body, which is not read to its end.
func wantTooLarge(t *testing.T, r *rig, framed string) {
	t.Helper()
	conn, in := r.raw("POST " + oldPath + " HTTP/1.1\r\nHost: m\r\nContent-Type: application/json\r\n")
	go func() { _, _ = io.WriteString(conn, framed) }()
	got, err := readAnswer(in, "POST")
	if err != nil || got.code != http.StatusRequestEntityTooLarge || !strings.Contains(got.body, fmt.Sprintf("larger than the limit of %d bytes", proxy.DefaultMaxBody)) {
		t.Errorf("%.30q... was answered %d %.300s, %v", framed, got.code, got.body, err)
	}
	wantStatus(t, got)
}

// A list of 100 MiB is converted while it streams: MVP and the test itself hold a few
// items of it at any time.
func TestLargeList(t *testing.T) {
	const size, items = 16 << 10, 100 << 20 / (16 << 10)
	list := func(w io.Writer, version, field string) {
		item := largeThing(version, field, size+len(version))
		_, _ = fmt.Fprintf(w, `{"kind":"ThingList","apiVersion":"acme.io/%s","metadata":{"resourceVersion":"9"},"items":[%s`, version, item)
		for range items - 1 {
			_, _ = fmt.Fprintf(w, ",%s", item)
		}
		_, _ = io.WriteString(w, "]}")
	}
	want := sha256.New()
	list(want, "v1beta1", "old")
	for form, files := range untouchedForms {
		t.Run(form, func(t *testing.T) {
			u := record(t, "a", "1.32.13", things, func(q request) string {
				_, _ = io.WriteString(q.conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
				body := httputil.NewChunkedWriter(q.conn)
				list(body, "v1", "new")
				_ = body.Close()
				return "\r\n"
			})
			r := start(t, files, nil, u)
			before := heap()
			resp, err := http.Get("http://" + r.addr + oldPath)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, most := sha256.New(), int64(0)
			for err == nil {
				_, err = io.CopyN(got, resp.Body, 8<<20)
				most = max(most, heap()-before)
			}
			if !errors.Is(err, io.EOF) || string(got.Sum(nil)) != string(want.Sum(nil)) {
				t.Errorf("the list came otherwise than it was sent, %v", err)
			}
			t.Logf("the heap grew by up to %d KiB", most>>10)
			if most > 8<<20 {
				t.Errorf("the heap grew by up to %d MiB", most>>20)
			}
		})
	}
}
