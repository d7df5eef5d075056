package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/mixed-version-proxy/mvp/proxy/front"
)

const (
	// vanishing is how many clients leave without a word.
	vanishing = 2000

	// vanishingTLS is how many of them do so over TLS, where each costs four
	// handshakes' sides.
	vanishingTLS = 200

	// fdsPerClient are the ends of its two connections, all of which are this
	// process's.
	fdsPerClient = 4
)

// footprint is what connections leave behind in this process: the ends of both their
// connections, and who serves them.
type footprint struct {
	fds, goroutines  int
	upstream, client int // open connections at the server, and at MVP
}

func (s *stage) footprint(t *testing.T, server *tape) footprint {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("cannot count file descriptors: %v", err)
	}
	return footprint{len(fds), runtime.NumGoroutine(), int(server.open.Load()), s.front.Connections()}
}

// within reports whether no more is left than base, and a few connections to the
// server that are kept for next requests, each with two ends and who serves it.
func (f footprint) within(base footprint) bool {
	const kept = 3
	return f.client <= base.client && f.upstream <= base.upstream+kept &&
		f.fds <= base.fds+2*kept && f.goroutines <= base.goroutines+2*kept
}

// allowFiles raises the limit of open files to what n clients need, and returns how
// many there can be.
func allowFiles(t *testing.T, n int) int {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Skipf("cannot read the limit of open files: %v", err)
	}
	const others = 200
	need := uint64(n*fdsPerClient + others)
	if limit.Cur < need {
		limit.Cur = min(need, limit.Max)
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Logf("cannot raise the limit of open files: %v", err)
		}
	}
	if limit.Cur < need {
		n = int(limit.Cur-others) / fdsPerClient
		t.Logf("the limit of %d open files allows %d clients only", limit.Cur, n)
	}
	return n
}

// visit is what a client does before it vanishes.
type visit struct {
	request string
	head    bool // an answer begins
}

var visits = []visit{
	{"GET /api/v1/pods?watch=1&resourceVersion=7 HTTP/1.1\r\nHost: h\r\n\r\n", true},
	{"GET /api/v1/namespaces/d/configmaps?watch=true&allowWatchBookmarks=true HTTP/1.1\r\nHost: h\r\n\r\n", true},
	{"GET /apis/acme.io/v1beta1/things?watch=1 HTTP/1.1\r\nHost: h\r\n\r\n", true}, // converted
	{"GET /api/v1/namespaces/d/pods/p/log?follow=true HTTP/1.1\r\nHost: h\r\n\r\n", false},
	{"POST /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n", false},
	{"POST /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n{\"a\":", false},
	{"POST /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n{\"a\":", false}, // held
	{"GET /api/v1/namespaces/d/pods/p/exec?command=sh HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", true},
	{"GET /api/v1/namespaces/d/pods?slow HTTP/1.1\r\nHost: h\r\n\r\n", false},
}

// silentServer answers the visits, and says nothing more.
func silentServer(t *testing.T, ca *authority) (*recorder, *tape) {
	gone := make(chan struct{})
	t.Cleanup(func() { close(gone) })
	u, taped := tapeRecorder(t, ca, "a", func(q request) string {
		switch {
		case strings.Contains(q.target, "watch="):
			return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
		case strings.Contains(q.target, "exec"):
			return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
		case strings.Contains(q.target, "follow="), strings.Contains(q.target, "slow"):
			return "" // nothing yet
		}
		return ok("{}")
	})
	u.serves = append(things[:len(things):len(things)], pods...)
	return u, taped
}

// Clients that vanish, in order or not, from streams and uploads that say nothing
// take with them all that was held for them; and as long as they are there, others
// are served.
func TestClientsVanish(t *testing.T) {
	t.Run("plain", func(t *testing.T) { testClientsVanish(t, nil, vanishing) })
	t.Run("TLS", func(t *testing.T) { testClientsVanish(t, newAuthority(t), vanishingTLS) })
}

func testClientsVanish(t *testing.T, ca *authority, n int) {
	n = allowFiles(t, n)
	u, taped := silentServer(t, ca)
	s := raise(t, setting{
		ca: ca, front: front.Config{MaxHeadBytes: 16 << 10}, policies: map[string]string{"things.yaml": rules},
	}, u)
	get := func() {
		t.Helper()
		got, err := s.in(t).ask("GET /api/v1/namespaces/d/pods/p HTTP/1.1\r\nHost: h\r\n\r\n")
		if err != nil || got.code != http.StatusOK {
			t.Fatalf("a GET was answered %d %s, %v", got.code, got.body, err)
		}
	}
	s.visit(t, len(visits))() // what is kept for the next: an idle connection, a timer
	get()
	await(t, "the first have gone", func() bool { return s.front.Connections() == 0 })
	base := s.footprint(t, taped)
	t.Logf("before: %+v", base)

	leave := s.visit(t, n)
	t.Logf("with %d clients: %+v", n, s.footprint(t, taped))
	get()
	leave()
	defer func() { t.Logf("after: %+v", s.footprint(t, taped)) }()
	await(t, "all is as before", func() bool { return s.footprint(t, taped).within(base) })
	get()
}

// visitorsAtOnce is how many clients come at the same moment.
const visitorsAtOnce = 32

// visit has n clients make their requests, each on a connection of its own, and waits
// until the server has those that can have come to it. The function that it returns
// makes them vanish, every other one by a reset.
func (s *stage) visit(t *testing.T, n int) (leave func()) {
	t.Helper()
	conns := make([]net.Conn, n)
	next := make(chan int)
	var all sync.WaitGroup
	for range visitorsAtOnce {
		all.Go(func() {
			for i := range next {
				conn, err := s.connect()
				if err == nil {
					err = visits[i%len(visits)].make(conn)
				}
				if err != nil {
					t.Errorf("client %d: %v", i, err)
				}
				conns[i] = conn
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return func() {
		for i, conn := range conns {
			if i/len(visits)%2 == 1 {
				reset(conn)
			} else {
				_ = conn.Close()
			}
		}
	}
}

// make sends the request and reads the head of the answer, if there is one.
func (v visit) make(conn net.Conn) error {
	if _, err := io.WriteString(conn, v.request); err != nil || !v.head {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil && resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("answered %s", resp.Status)
	}
	return err // its body stays unread: closing it would wait for its end
}
