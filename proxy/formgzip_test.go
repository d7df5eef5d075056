package proxy_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// membersOf compresses each part as a member of its own.
func membersOf(t *testing.T, parts ...string) string {
	t.Helper()
	var out bytes.Buffer
	for _, part := range parts {
		z := gzip.NewWriter(&out)
		if _, err := io.WriteString(z, part); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// encoded is a 200 answer in an encoding.
func encoded(encoding, body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: %s\r\nETag: \"1\"\r\nContent-Length: %d\r\n\r\n%s", encoding, len(body), body)
}

// A server that compresses although it is asked not to is understood all the same,
// also where it does so in several members, and the client gets what it can read.
func TestCompressedAnswers(t *testing.T) {
	const path = "/apis/acme.io/v1beta1/namespaces/d/things/t"
	reply := ""
	u := record(t, "a", "1.32.13", things, func(request) string { return reply })
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	f := func(answered, want string) {
		t.Helper()
		reply = answered
		u.forget()
		got := r.do("GET", path, "", "", "Accept-Encoding", "gzip")
		if got.code != 200 || got.body != want || got.header.Get("Content-Encoding") != "" || got.header.Get("ETag") != "" ||
			got.header.Get("Content-Length") != fmt.Sprint(len(want)) {
			t.Errorf("answered %d %v %q", got.code, got.header, got.body)
		}
		if sent := u.only().raw; !strings.Contains(sent, "\r\nAccept-Encoding: identity\r\n") {
			t.Errorf("sent %q", sent)
		}
	}
	fails := func(answered, want string) {
		t.Helper()
		reply = answered
		if got := r.do("GET", path, "", ""); got.code < 500 || !strings.Contains(got.body, want) {
			t.Errorf("answered %d %s, want %s", got.code, got.body, want)
		}
	}

	f(encoded("gzip", membersOf(t, newThing)), oldThing)
	f(encoded("gzip", membersOf(t, newThing[:50], "", newThing[50:])), oldThing)
	f(encoded("identity", newThing), oldThing)
	fails(encoded("br", newThing), "the encoding br, which was not asked for")
	fails(encoded("gzip", newThing), "gzip: invalid header")
	fails(encoded("gzip", membersOf(t, newThing)[:60]), "unexpected EOF")
	fails(encoded("gzip", ""), "unexpected EOF")
}

// A patch that is worked out from the object reads it compressed, too.
func TestCompressedObjectPatched(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(request) string { return encoded("gzip", membersOf(t, newThing)) })
	r := start(t, programs, nil, u)
	got := r.do("PATCH", "/apis/acme.io/v1beta1/namespaces/d/things/t", "application/merge-patch+json", `{"spec":{"old":2}}`)
	if sent := u.got(); got.body != oldThing || len(sent) != 2 || !sameJSON(sent[1].body, `{"metadata":{"resourceVersion":"7"},"spec":{"new":2}}`) {
		t.Errorf("answered %d %s after %q", got.code, got.body, sent)
	}
}

// Each event of a compressed watch goes out when it comes, not with the next one.
func TestCompressedWatch(t *testing.T) {
	conns := make(chan net.Conn, 1)
	u := record(t, "a", "1.32.13", things, func(q request) string {
		conns <- q.conn
		return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
	})
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	client, in := r.raw("GET /apis/acme.io/v1beta1/things?watch=true HTTP/1.1\r\nHost: mvp\r\nAccept-Encoding: gzip\r\n\r\n")
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer client.Close()
	server, events := <-conns, bufio.NewReader(resp.Body)
	for range 3 {
		if _, err := io.WriteString(server, chunked(membersOf(t, `{"type":"ADDED","object":`+newThing+"}\n"))); err != nil {
			t.Fatal(err)
		}
		got, err := events.ReadString('\n')
		if err != nil || got != `{"type":"ADDED","object":`+oldThing+"}\n" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}
