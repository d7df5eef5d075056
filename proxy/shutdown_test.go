package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// A shutdown ends a watch after a whole event, plain and converted, and in a way
// that a client takes for the end. 5.10.
func TestShutdownEndsWatches(t *testing.T) {
	for name, path := range map[string]string{
		"plain": "/apis/acme.io/v1/things", "converted": "/apis/acme.io/v1beta1/things",
	} {
		t.Run(name, func(t *testing.T) {
			conns := make(chan net.Conn, 1)
			u := record(t, "a", "1.32.13", things, func(q request) string {
				conns <- q.conn
				return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
			})
			r := start(t, map[string]string{"things.yaml": rules}, nil, u)
			_, in := r.raw("GET " + path + "?watch=true HTTP/1.1\r\nHost: mvp\r\n\r\n")
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			upstreamConn := <-conns
			events := bufio.NewReader(resp.Body)
			send := func(text string) {
				t.Helper()
				if _, err := io.WriteString(upstreamConn, chunked(text)); err != nil {
					t.Fatal(err)
				}
			}
			event := `{"type":"ADDED","object":` + newThing + "}\n"
			send(event)
			if line, err := events.ReadString('\n'); err != nil || !strings.Contains(line, "ADDED") {
				t.Fatalf("the first event came as %q, %v", line, err)
			}
			half := len(event) / 2
			send(event[:half])
			r.proxy.EndStreams()
			rest, err := io.ReadAll(events)
			if err != nil {
				t.Errorf("the watch broke off: %v", err)
			}
			if len(rest) > 0 {
				t.Errorf("at the end the client got %q", rest)
			}
		})
	}
}

// A proxy that is about to leave says so on /readyz, and still serves.
func TestDrain(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(request) string { return ok(newThing) })
	r := start(t, nil, nil, u)
	if got := r.do("GET", "/readyz", "", ""); got.code != 200 || got.body != "ok" {
		t.Errorf("/readyz answered %d %q before", got.code, got.body)
	}
	r.proxy.Drain()
	if got := r.do("GET", "/readyz", "", ""); got.code != 503 || !strings.Contains(got.body, "the proxy is shutting down") {
		t.Errorf("/readyz answered %d %q while draining", got.code, got.body)
	}
	if got := r.do("GET", "/apis/acme.io/v1/namespaces/d/things/t", "", ""); got.code != 200 {
		t.Errorf("a request was answered %d while draining", got.code)
	}
}

// A followed log goes on through the beginning of a shutdown: its client would
// take the end of the answer for the end of the log.
func TestShutdownLeavesLogs(t *testing.T) {
	conns := make(chan net.Conn, 1)
	u := record(t, "a", "1.32.13", pods, func(q request) string {
		conns <- q.conn
		return "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked("one\n")
	})
	r := start(t, nil, nil, u)
	conn, in := r.raw("GET /api/v1/namespaces/d/pods/p/log?follow=true HTTP/1.1\r\nHost: mvp\r\n\r\n")
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer conn.Close()
	lines := bufio.NewReader(resp.Body)
	if line, err := lines.ReadString('\n'); line != "one\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	r.proxy.EndStreams()
	if _, err := io.WriteString(<-conns, chunked("two\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := lines.ReadString('\n'); line != "two\n" {
		t.Errorf("after the shutdown began got %q, %v", line, err)
	}
}
