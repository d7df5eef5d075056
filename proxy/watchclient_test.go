package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/proxy"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// inTurn prefers a to b to c.
var inTurn = map[string]string{"turn.route.cel": `upstream.name == 'a' ? 3 : upstream.name == 'b' ? 2 : 1`}

// watchStage is MVP before watch servers, the first of which is chosen first.
func watchStage(t testing.TB, settings proxy.Config, servers ...*watchServer) *stage {
	t.Helper()
	return raise(t, setting{policies: inTurn, proxy: settings}, recorders(servers)...)
}

// probedStage is a watchStage whose servers are probed.
func probedStage(t testing.TB, settings proxy.Config, servers ...*watchServer) *stage {
	t.Helper()
	return raise(t, setting{policies: inTurn, proxy: settings, upstream: upstream.Config{
		ProbeInterval: probed, ProbeTimeout: 10 * probed, DiscoveryInterval: probed, CRDInterval: patience,
	}}, recorders(servers)...)
}

func recorders(servers []*watchServer) (all []*recorder) {
	for _, s := range servers {
		all = append(all, s.recorder)
	}
	return all
}

// watcher is a client that watches.
type watcher struct {
	t    testing.TB
	conn net.Conn
	resp *http.Response
	in   *bufio.Reader
}

func (s *stage) watch(target string, headers ...string) *watcher {
	s.t.Helper()
	conn, in := s.send("GET " + target + " HTTP/1.1\r\nHost: h\r\n" + strings.Join(append(headers, ""), "\r\n") + "\r\n")
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.StatusCode != 200 {
		body, _ := io.ReadAll(resp.Body)
		s.t.Fatalf("the watch was answered %d %s", resp.StatusCode, body)
	}
	return &watcher{s.t, conn, resp, bufio.NewReader(resp.Body)}
}

// want reads as much as want has, and compares.
func (w *watcher) want(want ...string) {
	w.t.Helper()
	all := strings.Join(want, "")
	got := make([]byte, len(all))
	if n, err := io.ReadFull(w.in, got); err != nil || string(got) != all {
		w.t.Fatalf("the client saw %q, %v\nwant %q", got[:n], err, all)
	}
}

// wantEnd reads the end of the stream, with nothing before it.
func (w *watcher) wantEnd() {
	w.t.Helper()
	if rest, err := io.ReadAll(w.in); err != nil || len(rest) > 0 {
		w.t.Fatalf("the watch went on with %q and ended with %v, want its end", rest, err)
	}
}

// events writes changes as a server does.
func (d *dialect) events(changes ...change) (text string) {
	for _, c := range changes {
		text += d.write(c)
	}
	return text
}

// sameList fails unless got is want.
func sameList(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
