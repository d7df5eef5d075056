package proxy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// Two slashes are two slashes.
func Test5_03_DoubleSlashes(t *testing.T) {
	u, _ := tapeRecorder(t, nil, "a", nil)
	s := raise(t, setting{}, u)
	for _, want := range []string{"/api/v1/namespaces/d/services/s/proxy//a//b/", "/api/v1/namespaces/d/pods//p", "/en//x", "/x?y=//z//"} {
		u.forget()
		if got, err := s.ask(target(want)); err != nil || got.code != http.StatusOK {
			t.Errorf("%s was answered %d %s, %v", want, got.code, got.body, err)
		}
		if got := u.only().target; got != want {
			t.Errorf("%s arrived as %s", want, got)
		}
	}
}

const (
	// hugeBody is beyond all that the kernel holds for two connections.
	hugeBody = 256 << 20

	// heldBody is what the kernel may hold of one: a few MiB at each of four ends.
	heldBody = 64 << 20

	// stuckTime is how long a writer waits to be sure that nothing more is taken. A
	// shorter one would only make the test see less.
	stuckTime = 300 * time.Millisecond
)

// fill writes to conn until it takes nothing more.
func fill(conn net.Conn) (n int) {
	piece := bytes.Repeat([]byte("x"), 64<<10)
	for n < hugeBody {
		_ = conn.SetWriteDeadline(time.Now().Add(stuckTime))
		m, err := conn.Write(piece)
		n += m
		if err != nil {
			break
		}
	}
	_ = conn.SetWriteDeadline(time.Time{})
	return n
}

// MVP takes of a body what the other side takes, and holds no more than a buffer.
func Test5_08_BackPressure(t *testing.T) {
	const readers = 4
	sent := make(chan int, readers)
	u, taped := tapeRecorder(t, nil, "a", func(q request) string {
		if q.method == "POST" {
			return ok(fmt.Sprint(len(q.body)))
		}
		_, _ = fmt.Fprintf(q.conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", hugeBody)
		n := fill(q.conn)
		sent <- n
		_, _ = io.Copy(q.conn, io.LimitReader(repeat('x'), int64(hugeBody-n)))
		return ""
	})
	s := raise(t, setting{}, u)
	before := heap()
	var slow []*http.Response
	for range readers {
		_, in := s.send("GET /api/v1/namespaces/d/pods/p/log HTTP/1.1\r\nHost: h\r\n\r\n")
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		slow = append(slow, resp)
	}
	for range readers {
		n := <-sent
		t.Logf("%d KiB were taken for a client that reads nothing", n>>10)
		if n > heldBody {
			t.Errorf("%d MiB were taken for a client that reads nothing", n>>20)
		}
	}
	t.Logf("the heap grew by %d KiB", (heap()-before)>>10)
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("the heap grew by %d MiB for %d slow readers", grown>>20, readers)
	}
	if n, err := io.Copy(io.Discard, slow[0].Body); err != nil || n != hugeBody {
		t.Errorf("of the whole body came %d bytes, %v", n, err)
	}

	// A server that reads nothing of an upload.
	hold := make(chan struct{})
	taped.hold.Store(&hold)
	conn, _ := s.send("POST /api/v1/namespaces/d/services/s/proxy/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n", hugeBody))
	if n := fill(conn); n > heldBody {
		t.Errorf("%d MiB were taken for a server that reads nothing", n>>20)
	}
	if grown := heap() - before; grown > 32<<20 { // the first reader's whole body is in no heap
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	close(hold)
	_ = conn.Close() // its rest is not worth the time
}

// heap is what is live of it.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// repeat is an endless body.
type repeat byte

func (r repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

// Clients that are invited to send and do not, gone or not, leave nothing behind.
func Test5_14_InvitedAndSilent(t *testing.T) {
	const clients = 500
	u, taped := tapeRecorder(t, nil, "a", nil)
	s := raise(t, setting{front: front.Config{MaxHeadBytes: 16 << 10, HeadTimeout: time.Second, BodyTimeout: time.Second}}, u)
	if got, err := s.ask(target("/api/v1/pods")); err != nil || got.code != http.StatusOK {
		t.Fatalf("answered %d, %v", got.code, err)
	}
	await(t, "the first has gone", func() bool { return s.front.Connections() == 0 })
	base := s.footprint(t, taped)
	conns := make([]net.Conn, clients)
	var refused atomic.Int64
	var all sync.WaitGroup
	for i := range conns {
		conn, in := s.send(fmt.Sprintf("POST /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", []int{100, 1 << 20}[i%2]))
		conns[i] = conn
		all.Go(func() {
			if got, err := readAnswer(in, "POST"); err != nil || got.code != http.StatusContinue {
				t.Errorf("client %d was answered %d, %v, want an invitation", i, got.code, err)
			}
			if i%4 < 2 { // vanishes
				if i%4 == 0 {
					reset(conn)
				}
				_ = conn.Close()
				return
			}
			if got, err := readAnswer(in, "POST"); err == nil && got.code == http.StatusRequestTimeout {
				refused.Add(1)
			}
			_ = conn.Close()
		})
	}
	all.Wait()
	if n := refused.Load(); n != clients/2 {
		t.Errorf("%d of %d silent clients were answered 408", n, clients/2)
	}
	await(t, "all is as before", func() bool { return s.footprint(t, taped).within(base) })
	if got := u.got(); len(got) != 1 {
		t.Errorf("%d requests arrived", len(got)-1)
	}
}

const (
	// sessions are tunnels with nothing to say.
	sessions = 2000

	// sessionBytes is what one may cost, with its client and its server, which are in
	// this process too. A head's buffer is the largest part; of that only the pages
	// that were used count.
	sessionBytes = 96 << 10
)

// What a tunnel holds is not what its connection could have held.
func Test5_15_IdleTunnels(t *testing.T) {
	n := allowFiles(t, sessions)
	if raceDetector {
		n /= 10 // memory is not what it is otherwise, and each takes long
	}
	u, _ := tapeRecorder(t, nil, "a", echo)
	s := raise(t, setting{}, u)
	first, firstIn := s.openTunnel("Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n")
	before := resident(t)
	for range n {
		s.openTunnel("Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n")
	}
	each := (resident(t) - before) / int64(n)
	t.Logf("%d KiB a session", each>>10)
	if each > sessionBytes && !raceDetector {
		t.Errorf("%d KiB a session, more than %d", each>>10, sessionBytes>>10)
	}
	talk(t, first, firstIn, "still there")
}

// resident is the memory that the kernel backs.
func resident(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory() // what other tests have left would serve these, and be counted as nothing
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skipf("cannot read the size of the process: %v", err)
	}
	var size, rss int64
	if _, err := fmt.Sscan(string(text), &size, &rss); err != nil {
		t.Fatal(err)
	}
	return rss * int64(os.Getpagesize())
}

// Names keep their characters and case, and lines that repeat stay lines.
func Test5_16_HeaderNames(t *testing.T) {
	const reply = head200 + "Warning: 299 - \"one\"\r\nx_w.a%2F: 1\r\nWarning: 299 - \"two\"\r\nSet-Cookie: a\r\nSet-Cookie: a\r\nContent-Length: 0\r\n\r\n"
	const lines = "X_a.b%2Fc: 1\r\nAccept: a\r\naccept: b\r\nCookie: a=1\r\nCookie: b=2\r\nuser-AGENT: k\r\n"
	u, _ := tapeRecorder(t, nil, "a", func(request) string { return reply })
	s := raise(t, setting{}, u)
	_, in := s.send("GET /api/v1/pods HTTP/1.1\r\nHost: h\r\n" + lines + "\r\n")
	if got := readAll(t, in, len(reply)); got != reply {
		t.Errorf("the client got\n%q\nwant\n%q", got, reply)
	}
	if raw := u.only().raw; !strings.Contains(raw, "\r\n"+lines) {
		t.Errorf("the server got %q, want the lines %q", raw, lines)
	}
}

// mutable is a listener whose connections, from some moment on, are taken and never
// served.
type mutable struct {
	net.Listener
	mute atomic.Bool

	mu   sync.Mutex
	held []net.Conn
}

func (l *mutable) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || !l.mute.Load() {
			return conn, err
		}
		l.mu.Lock()
		l.held = append(l.held, conn)
		l.mu.Unlock()
	}
}

// silentHandshakes is how many clients connect and say nothing.
const silentHandshakes = 1000

// A server that takes connections and no handshake is passed over; clients that never
// finish theirs hold nobody up.
func Test5_18_SilentHandshakes(t *testing.T) {
	ca := newAuthority(t)
	listener := &mutable{Listener: listen(t)}
	a := recordOn(t, ca, listener, "a", func(q request) string { return ok("a") })
	b, _ := tapeRecorder(t, ca, "b", func(q request) string { return ok("b") })
	s := raise(t, setting{
		ca: ca, upstream: upstream.Config{HandshakeTimeout: 300 * time.Millisecond, ProbeInterval: time.Second, DiscoveryInterval: time.Second, CRDInterval: time.Hour},
		policies: map[string]string{"a.route.cel": `upstream.name == 'a' ? 1 : 0`},
	}, a, b)
	for range allowFiles(t, silentHandshakes) {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	f := func(method, want string) {
		t.Helper()
		raw := method + " /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"
		if got, err := s.ask(raw); err != nil || got.body != want {
			t.Errorf("%s was answered %d %s, %v, want %s", method, got.code, got.body, err, want)
		}
	}

	f("GET", "a")
	f("POST", "a")
	listener.mute.Store(true)
	a.hangUp()
	f("GET", "b")
	f("POST", "b")
}

// An upload and an answer that keep coming have no time limit, and what they use is
// not used by anybody else meanwhile.
func Test5_19_LongTransfers(t *testing.T) {
	const short = 300 * time.Millisecond
	u, _ := tapeRecorder(t, nil, "a", func(q request) string {
		if strings.Contains(q.target, "stall") {
			return ""
		}
		return ok(q.body)
	})
	s := raise(t, setting{
		upstream: upstream.Config{HeaderTimeout: short, ProbeInterval: time.Second, DiscoveryInterval: time.Second, CRDInterval: time.Hour},
		front:    front.Config{HeadTimeout: short, IdleTimeout: short},
	}, u)
	type upload struct {
		conn net.Conn
		in   *bufio.Reader
		want string
	}
	var uploads []upload
	for i := range 8 {
		conn, in := s.send(fmt.Sprintf("POST /api/v1/namespaces/d/pods/%d HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", i))
		uploads = append(uploads, upload{conn, in, strings.Repeat(fmt.Sprintf("<%d>", i), 4)})
	}
	for range 4 {
		for i, up := range uploads {
			if _, err := io.WriteString(up.conn, chunked(fmt.Sprintf("<%d>", i))); err != nil {
				t.Fatal(err)
			}
		}
		// Longer than any of the limits on heads.
		if got, err := s.ask(target("/api/v1/namespaces/d/pods/stall")); err != nil || got.code != http.StatusGatewayTimeout {
			t.Fatalf("a GET that stalls was answered %d %s, %v", got.code, got.body, err)
		}
	}
	for i, up := range slices.Backward(uploads) {
		if _, err := io.WriteString(up.conn, "0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if got, err := readAnswer(up.in, "POST"); err != nil || got.body != up.want {
			t.Errorf("upload %d was answered %d %q, %v, want %q", i, got.code, got.body, err, up.want)
		}
	}
}
