package proxy_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A short answer that breaks off is read from the other server, converted ones too;
// of a long one, and of what is no reading, the client has the beginning.
func TestBrokenAnswers(t *testing.T) {
	const path = "/apis/acme.io/v1/namespaces/d/things"
	half := func(contentType, framing, body string) func(request) string {
		return hangUpAfter("HTTP/1.1 200 OK\r\nContent-Type: " + contentType + "\r\n" + framing + "\r\n\r\n" + body)
	}
	items := `{"apiVersion":"acme.io/v1","kind":"ThingList","items":[` + newThing + `]}`
	answers := func(q request) string {
		if strings.HasSuffix(strings.SplitN(q.target, "?", 2)[0], "things") {
			return ok(items)
		}
		return ok(newThing)
	}
	tests := []struct {
		name, method, target string
		broken               func(request) string
		want                 string // the beginning of the body
		cut                  bool
	}{
		{"get", "GET", path + "/t", half("application/json", "Content-Length: 500", `{"apiVersion":`), newThing, false},
		{"list", "GET", path, half("application/json", "Content-Length: 500", `{"items":[`), items, false},
		{"list in chunks", "GET", path, half("application/json", "Transfer-Encoding: chunked", chunked(`{"items":[`)), items, false},
		{"no byte", "GET", path, half("application/json", "Content-Length: 500", ""), items, false},
		{"converted get", "GET", strings.Replace(path, "v1", "v1beta1", 1) + "/t", half("application/json", "Content-Length: 500", `{"apiVersion":`), oldThing, false},
		{"converted list", "GET", strings.Replace(path, "v1", "v1beta1", 1), half("application/json", "Transfer-Encoding: chunked", chunked(`{"items":[`)), `{"apiVersion":"acme.io/v1beta1","kind":"ThingList"`, false},
		{"a long list", "GET", path, half("application/json", "Content-Length: 500000", strings.Repeat("x", 100<<10)), strings.Repeat("x", 100<<10), true},
		{"a create", "POST", path, half("application/json", "Content-Length: 500", `{"apiVersion":`), `{"apiVersion":`, true},
		{"a log", "GET", path + "/t/log", half("text/plain", "Content-Length: 500", "one line\n"), "one line\n", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := record(t, "a", "1.31.14", things, tt.broken)
			b := record(t, "b", "1.32.13", things, answers)
			r := start(t, map[string]string{"things.yaml": rules, "a.route.cel": `upstream.name == 'a' ? 1 : 0`}, nil, a, b)
			_, in := r.raw(tt.method + " " + tt.target + " HTTP/1.1\r\nHost: m\r\nContent-Length: 0\r\n\r\n")
			got, err := readAnswer(in, tt.method)
			if got.code != 200 && !tt.cut || !strings.HasPrefix(got.body, tt.want) || errors.Is(err, io.ErrUnexpectedEOF) != tt.cut {
				t.Errorf("answered %d %.200q, %v, want %.200q; cut: %t", got.code, got.body, err, tt.want, tt.cut)
			}
			if tt.cut != (len(b.got()) == 0) || len(a.got()) != 1 {
				t.Errorf("it was sent %d and %d times", len(a.got()), len(b.got()))
			}
		})
	}
}

// hangUpAfter writes text and closes the connection.
func hangUpAfter(text string) func(request) string {
	return func(q request) string {
		_, _ = io.WriteString(q.conn, text)
		_ = q.conn.Close()
		return ""
	}
}

// What a server writes slowly comes as slowly, and not later.
func TestSlowListStreams(t *testing.T) {
	for _, framing := range []string{"Content-Length: 5", "Transfer-Encoding: chunked"} {
		conns := make(chan request, 1)
		piece := func(s string) string {
			if strings.HasPrefix(framing, "Transfer") {
				return chunked(s)
			}
			return s
		}
		u := record(t, "a", "1.32.13", pods, func(q request) string {
			conns <- q
			return fmt.Sprintf("HTTP/1.1 200 OK\r\n%s\r\n\r\n%s", framing, piece("0"))
		})
		r := start(t, nil, nil, u)
		_, in := r.raw(getPods)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		q := <-conns
		for i := range 5 { // the next byte is written when the last one has come
			b := make([]byte, 1)
			if _, err := io.ReadFull(resp.Body, b); err != nil || b[0] != byte('0'+i) {
				t.Fatalf("%s: byte %d is %q, %v", framing, i, b, err)
			}
			if i < 4 {
				_, err = io.WriteString(q.conn, piece(fmt.Sprint(i+1)))
			} else if strings.HasPrefix(framing, "Transfer") {
				_, err = io.WriteString(q.conn, "0\r\n\r\n")
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
			t.Errorf("%s: the body goes on with %q, %v", framing, rest, err)
		}
		resp.Body.Close()
	}
}
