package proxy_test

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mixed-version-proxy/mvp/proxy"
	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

const (
	execPath = "/api/v1/namespaces/d/pods/p/exec?command=sh"
	switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
)

// echo answers an upgrade and gives back what it gets, as long as it gets something.
func echo(q request) string {
	if _, err := io.WriteString(q.conn, switched); err == nil {
		_, _ = io.Copy(q.conn, q.conn)
	}
	return ""
}

// openTunnel asks for an upgrade with the connection lines, and returns the tunnel.
func (s *stage) openTunnel(lines string) (net.Conn, *bufio.Reader) {
	s.t.Helper()
	conn, in := s.send("POST " + execPath + " HTTP/1.1\r\nHost: h\r\n" + lines + "Content-Length: 0\r\n\r\n")
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		s.t.Fatalf("the upgrade was answered %v, %v", resp, err)
	}
	return conn, in
}

// talk says something and wants it back.
func talk(t *testing.T, conn net.Conn, in io.Reader, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, in, len(text)); got != text {
		t.Errorf("said %q, got %q", text, got)
	}
}

// However many hops have added to Connection, the server gets one line of it.
func Test1_05_ConnectionOfSeveralHops(t *testing.T) {
	u, _ := tapeRecorder(t, nil, "a", echo)
	s := raise(t, setting{}, u)
	for _, lines := range []string{
		"Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n",
		"Connection: keep-alive, Upgrade\r\nUpgrade: SPDY/3.1\r\n",
		"Connection: close, Upgrade, close\r\nUpgrade: SPDY/3.1\r\n",
		"Connection: keep-alive\r\nUpgrade: SPDY/3.1\r\nConnection: upgrade\r\nConnection: X\r\n",
	} {
		u.forget()
		conn, in := s.openTunnel(lines)
		talk(t, conn, in, "ls")
		conn.Close()
		raw := u.only().raw
		if strings.Count(raw, "Connection:") != 1 || !strings.Contains(raw, "\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n") {
			t.Errorf("%q arrived as %q", lines, raw)
		}
	}
}

// With metrics, access log, policies and conversions switched on, upgrades work and
// watches are flushed.
func Test1_06_EveryFeatureKeepsStreams(t *testing.T) {
	events := make(chan net.Conn, 1)
	u, _ := tapeRecorder(t, nil, "a", func(q request) string {
		if strings.Contains(q.target, "exec") {
			return echo(q)
		}
		events <- q.conn
		return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
	})
	u.serves = append(things[:len(things):len(things)], pods...)
	s := raise(t, setting{proxy: proxy.Config{Metrics: prometheus.NewRegistry()}, policies: map[string]string{
		"things.yaml":        rules,
		"10-all.match.cel":   `request.path.startsWith('/')`,
		"10-all.warn.cel":    `'seen ' + request.verb`,
		"20-route.route.cel": `upstream.inflight >= 0`,
		"30-try.match.cel":   `request.subresource == 'exec'`,
		"30-try.deny.cel":    `'not now'`,
		"30-try.mode.cel":    `'audit'`,
	}}, u)
	conn, in := s.openTunnel("Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n")
	talk(t, conn, in, "ls")
	for _, version := range []string{"v1", "v1beta1"} {
		_, in := s.send("GET /apis/acme.io/" + version + "/things?watch=1 HTTP/1.1\r\nHost: h\r\n\r\n")
		resp, err := http.ReadResponse(in, nil) // before any event
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(<-events, chunked(`{"type":"ADDED","object":`+newThing+"}\n")); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || !strings.Contains(line, "acme.io/"+version) {
			t.Errorf("the watch of %s got %q, %v", version, line, err)
		}
	}
}

// A server that could do HTTP/2 is spoken to in HTTP/1.1, or it could not upgrade.
func Test1_07_UpgradeOverHTTP11(t *testing.T) {
	ca := newAuthority(t)
	u, _ := tapeRecorder(t, ca, "a", func(q request) string {
		if got := q.conn.(*tapedConn).Conn.(*tls.Conn).ConnectionState().NegotiatedProtocol; got == "h2" {
			t.Errorf("the connection speaks %q", got)
		}
		return echo(q)
	})
	s := raise(t, setting{ca: ca}, u)
	conn, in := s.openTunnel("Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n")
	talk(t, conn, in, "ls")
	if raw := u.only().raw; !strings.HasPrefix(raw, "POST "+execPath+" HTTP/1.1\r\n") {
		t.Errorf("the upgrade arrived as %q", raw)
	}
}

// Streams may be silent for longer than any timeout; what should answer may not.
func Test1_09_SilentStreams(t *testing.T) {
	const short = 300 * time.Millisecond
	conns := make(chan request, 1)
	u, _ := tapeRecorder(t, nil, "a", func(q request) string {
		switch {
		case strings.Contains(q.target, "exec"):
			return echo(q)
		case strings.Contains(q.target, "stall"):
			return ""
		}
		conns <- q
		if strings.Contains(q.target, "log") { // no head before its first line
			return ""
		}
		return head200 + "Transfer-Encoding: chunked\r\n\r\n"
	})
	s := raise(t, setting{
		upstream: upstream.Config{
			HeaderTimeout: short, IdleTimeout: short,
			ProbeInterval: time.Second, DiscoveryInterval: time.Second, CRDInterval: time.Second,
		},
		front: front.Config{HeadTimeout: short, IdleTimeout: short, BodyTimeout: short, WriteTimeout: short},
	}, u)
	_, watch := s.send("GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: h\r\n\r\n")
	watchConn := (<-conns).conn
	_, log := s.send("GET /api/v1/namespaces/d/pods/p/log?follow=true HTTP/1.1\r\nHost: h\r\n\r\n")
	logConn := (<-conns).conn
	exec, execIn := s.openTunnel("Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n")
	talk(t, exec, execIn, "before")

	for range 3 { // each takes as long as the longest of the timeouts
		got, err := s.ask("GET /api/v1/namespaces/d/pods/stall HTTP/1.1\r\nHost: h\r\n\r\n")
		if err != nil || got.code != http.StatusGatewayTimeout {
			t.Fatalf("a GET that stalls was answered %d %s, %v", got.code, got.body, err)
		}
		wantStatus(t, got)
	}

	talk(t, exec, execIn, "after")
	for name, stream := range map[string]struct {
		in   *bufio.Reader
		conn net.Conn
		text string
	}{
		"watch":  {watch, watchConn, chunked("{}\n")},
		"log -f": {log, logConn, head200 + "Transfer-Encoding: chunked\r\n\r\n" + chunked("{}\n")},
	} {
		if _, err := io.WriteString(stream.conn, stream.text); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(stream.in, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := readAll(t, resp.Body, 3); got != "{}\n" {
			t.Errorf("%s got %q", name, got)
		}
	}
}

// When the server's side of a watch ends and it is not certain how to go on, the
// client's ends at once, behind a whole event, however the server's was cut.
func Test1_17_WatchEndsWithItsServer(t *testing.T) {
	event := chunked("{\"type\":\"ADDED\"}\n")
	for name, end := range map[string]struct {
		how func(request)
		tls bool
	}{
		"the last chunk": {func(q request) { _, _ = io.WriteString(q.conn, "0\r\n\r\n") }, false},
		"FIN":            {func(q request) { _ = q.conn.Close() }, false},
		"RST":            {func(q request) { reset(q.conn) }, false},
		"close_notify":   {func(q request) { _ = q.conn.Close() }, true},
		"FIN below TLS":  {func(q request) { _ = socket(q.conn).Close() }, true},
		"an alert":       {func(q request) { _, _ = io.WriteString(socket(q.conn), tlsAlert) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			var ca *authority
			if end.tls {
				ca = newAuthority(t)
			}
			conns := make(chan request, 1)
			u, _ := tapeRecorder(t, ca, "a", func(q request) string {
				conns <- q
				return head200 + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + event + chunked(`{"type":"MODIF`)
			})
			s := raise(t, setting{ca: ca}, u)
			_, in := s.send("GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: h\r\n\r\n")
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			readAll(t, resp.Body, len("{\"type\":\"ADDED\"}\n"))
			end.how(<-conns)
			if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
				t.Errorf("the watch went on with %q and ended with %v", rest, err)
			}
		})
	}
}

// Escaped slashes and empty segments behind a proxied service stay as they are.
func Test1_25_EscapedSlashes(t *testing.T) {
	u, _ := tapeRecorder(t, nil, "a", nil)
	s := raise(t, setting{}, u)
	for _, path := range []string{"/metrics/gauges/a%2Fb%2Fc", "/a%2fb", "//x", "/a//b/", "/./a/../b", "/%2e%2E/", "/a%252Fb"} {
		u.forget()
		want := "/api/v1/namespaces/d/services/s:80/proxy" + path
		if got, err := s.ask(target(want)); err != nil || got.code != http.StatusOK {
			t.Errorf("%s was answered %d, %v", want, got.code, err)
		}
		if got := u.only().target; got != want {
			t.Errorf("%s arrived as %s", want, got)
		}
	}
}

// Slashes at the end are the server's to judge. Two at the beginning, which some read
// as a host, are refused: nothing is routed by another path than the server's.
func Test1_26_SlashesInTheBaseURL(t *testing.T) {
	u, _ := tapeRecorder(t, nil, "a", func(q request) string {
		if strings.HasSuffix(q.target, "/moved/") {
			return "HTTP/1.1 301 Moved Permanently\r\nLocation: /moved\r\nContent-Length: 0\r\n\r\n"
		}
		return respond(404, "text/plain", "404 page not found\n")
	})
	s := raise(t, setting{}, u)
	for path, code := range map[string]int{
		"/version/": 404, "/healthz/": 404, "/moved/": 301, "/api/v1/namespaces/": 404, "/apis/apps/v1/deployments/": 404,
		"//version": 400, "//api/v1/secrets": 400, "///": 400,
	} {
		u.forget()
		got, err := s.ask(target(path))
		if err != nil || got.code != code || code == 404 && got.body != "404 page not found\n" || code == 301 && got.header.Get("Location") != "/moved" {
			t.Errorf("%s was answered %d %q, %v, want %d", path, got.code, got.body, err, code)
		}
		if seen := len(u.got()); seen > 1 || (code == 400) != (seen == 0) {
			t.Errorf("%s was sent %d times", path, seen)
		}
	}
}

// Every link of the OpenAPI index leads to the document that it names, whichever
// server has it and whoever asks.
func Test1_28_DocumentLinks(t *testing.T) {
	openapi := func(server string, groups ...string) func(string) string {
		return func(target string) string {
			paths := map[string]any{}
			for _, group := range groups {
				link := "/openapi/v3/apis/" + group + "?hash=" + server + "7"
				paths["apis/"+group] = map[string]string{"serverRelativeURL": link}
				if target == link {
					return ok(`{"openapi":"3.0.0","info":{"title":"` + server + `","version":"1"},"paths":{},"components":{}}`)
				}
			}
			if target == "/openapi/v3" {
				index, err := json.Marshal(map[string]any{"paths": paths})
				if err != nil {
					t.Error(err)
				}
				return ok(string(index))
			}
			return respond(404, "text/plain", "404 page not found\n")
		}
	}
	a := record(t, "a", "1.31.14", []served{{"acme.io", "v1", "things", "Thing"}, {"old.io", "v1", "olds", "Old"}}, nil)
	b := record(t, "b", "1.32.13", []served{{"acme.io", "v1", "things", "Thing"}, {"new.io", "v1", "news", "New"}}, nil)
	a.openapi, b.openapi = openapi("a", "acme.io/v1", "old.io/v1"), openapi("b", "acme.io/v1", "new.io/v1")
	r := start(t, nil, nil, a, b)
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	r.eventually("the index has all groups", func() bool {
		return json.Unmarshal([]byte(r.do("GET", "/openapi/v3", "", "").body), &index) == nil && len(index.Paths) == 3
	})
	for path, link := range index.Paths {
		if !strings.HasPrefix(link.ServerRelativeURL, "/openapi/v3/"+path+"?hash=") {
			t.Errorf("%s is linked to %q", path, link.ServerRelativeURL)
		}
		first := r.do("GET", link.ServerRelativeURL, "", "")
		for i := range 20 {
			got := r.do("GET", link.ServerRelativeURL, "", "", "Authorization", fmt.Sprintf("Bearer %d", i))
			if got.code != http.StatusOK || got.body != first.body {
				t.Errorf("%s was answered %d %.100s, before %.100s", link.ServerRelativeURL, got.code, got.body, first.body)
			}
		}
	}
}

// Thousands of groups to impersonate are the server's to review: MVP asks nothing.
func Test1_32_ManyGroups(t *testing.T) {
	const groups = 2000
	u, taped := tapeRecorder(t, nil, "a", nil)
	s := raise(t, setting{}, u)
	var lines strings.Builder
	for i := range groups {
		fmt.Fprintf(&lines, "Impersonate-Group: g%d\r\n", i)
	}
	got, err := s.ask("GET /api/v1/pods HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer t\r\nImpersonate-User: u\r\n" + lines.String() + "\r\n")
	if err != nil || got.code != http.StatusOK {
		t.Errorf("answered %d %s, %v", got.code, got.body, err)
	}
	if raw := u.only().raw; !strings.Contains(raw, lines.String()) {
		t.Errorf("%d of %d groups arrived as they were", strings.Count(raw, "Impersonate-Group"), groups)
	}
	if taped.has("accessreviews") {
		t.Error("the server was asked for reviews")
	}
}
