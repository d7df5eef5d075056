package proxy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// Whatever a server does, writes reach at most one server and at most once, reads are
// answered by the other server where nothing has been answered yet, clients get a
// Status or an answer that breaks off, and nobody gets a byte of another's answer.
func TestFaults(t *testing.T) {
	t.Run("plain", func(t *testing.T) { testFaults(t, nil, faults) })
	t.Run("TLS", func(t *testing.T) {
		testFaults(t, newAuthority(t), append(faults[:len(faults):len(faults)], tlsFaults...))
	})
}

// A server that takes too long has the request still, so nobody else gets it.
func TestStalls(t *testing.T) {
	testFaultsWith(t, setting{upstream: upstream.Config{
		HeaderTimeout: 300 * time.Millisecond, ProbeInterval: time.Second, DiscoveryInterval: time.Second, CRDInterval: time.Hour,
	}}, stalls)
}

func testFaults(t *testing.T, ca *authority, faults []fault) {
	testFaultsWith(t, setting{ca: ca}, faults)
}

// faultsAtOnce is how many requests are under way together: they must not meet.
const faultsAtOnce = 16

func testFaultsWith(t *testing.T, set setting, faults []fault) {
	f := newFaulty(t, set, nil, func(q request) string {
		_, n, _ := strings.Cut(q.target, "&fault=")
		i, err := strconv.Atoi(n)
		if err != nil {
			return respond(400, "text/plain", "no such fault")
		}
		return faults[i].do(q, echoed(q))
	})
	methods := []string{"POST", "PATCH", "PUT", "DELETE", "GET", "GET", "POST", "PATCH"}
	next := make(chan int)
	var all sync.WaitGroup
	for range faultsAtOnce {
		all.Go(func() {
			for n := range next {
				i := n % len(faults)
				f.check(t, &faults[i], f.request(t, methods[n/len(faults)], fmt.Sprintf("&fault=%d", i)))
			}
		})
	}
	for n := range len(faults) * len(methods) {
		next <- n
	}
	close(next)
	all.Wait()
}

// faulty is MVP before a server a, which all requests go to first and which does what
// a test says, and a server b without a fault.
type faulty struct {
	*stage
	a, b   *recorder
	ta, tb *tape
	marks  atomic.Int64
}

// newFaulty starts one. reply is what a answers; ready, if not nil, its /readyz.
func newFaulty(t *testing.T, set setting, ready func() string, reply func(request) string) *faulty {
	t.Helper()
	f := &faulty{}
	f.a, f.ta = tapeRecorder(t, set.ca, "a", reply)
	f.a.ready = ready
	f.b, f.tb = tapeRecorder(t, set.ca, "b", func(q request) string { return ok(echoed(q)) })
	set.policies = map[string]string{"a.route.cel": `upstream.name == 'a' ? 1 : 0`}
	f.stage = raise(t, set, f.a, f.b)
	return f
}

// marked is what came back for one request.
type marked struct {
	method, mark string
	answer
	err error
}

var marks = regexp.MustCompile(`mark-[0-9]+-`)

// request sends one request whose target and body carry a mark of its own, and checks
// that what comes back carries no other.
func (f *faulty) request(t *testing.T, method, query string) marked {
	t.Helper()
	m := marked{method: method, mark: fmt.Sprintf("mark-%d-", f.marks.Add(1))}
	raw := method + " /api/v1/namespaces/d/pods/p?m=" + m.mark + query + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + m.mark + "\r\n"
	if method == "GET" {
		raw += "\r\n"
	} else {
		raw += "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
	}
	conn, err := f.connect()
	if err != nil {
		t.Error(err)
		return m
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Error(err)
		return m
	}
	var got bytes.Buffer
	m.answer, m.err = readAnswer(bufio.NewReader(io.TeeReader(conn, &got)), raw)
	for _, other := range marks.FindAllString(got.String(), -1) {
		if other != m.mark {
			t.Errorf("%s %s got what is %s's: %.300q", method, m.mark, other, got.String())
		}
	}
	return m
}

// sent is how often a marked request was sent to a server.
func (f *faulty) sent(m marked) int {
	return f.ta.count("?m="+m.mark) + f.tb.count("?m="+m.mark)
}

// check compares what a client got of a fault.
func (f *faulty) check(t *testing.T, fault *fault, m marked) {
	t.Helper()
	want, cut := fault.code, fault.cut
	who := fault.name + ": " + m.method
	if m.method == "GET" && fault.get != 0 {
		want, cut = fault.get, false
		if !strings.HasPrefix(m.body, "</api/v1/namespaces/d/pods/p?m="+m.mark) || !strings.HasSuffix(m.body, ">") {
			t.Errorf("%s got %d %.300q, want the other server's answer", who, m.code, m.body)
		}
	}
	if m.code != want {
		t.Errorf("%s got %d %.300q, %v, want %d", who, m.code, m.body, m.err, want)
	}
	if (m.err != nil) != cut {
		t.Errorf("%s got %.300q, which ended with %v; cut short: %t", who, m.body, m.err, cut)
	}
	if m.code >= 300 {
		wantStatus(t, m.answer)
	}
	if n := f.sent(m); m.method != "GET" && n != 1 {
		t.Errorf("%s was sent %d times", who, n)
	}
}

// count is how often text arrived.
func (l *tape) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.mu.Lock()
		n += bytes.Count(c.got.Bytes(), []byte(text))
		c.mu.Unlock()
	}
	return n
}

// racePasses is how often a connection is closed just as it is used again.
const racePasses = 400

// A server that closes its idle connections while requests are written to them costs
// no read its answer and makes no write happen twice.
func TestIdleConnectionsCloseAsWeWrite(t *testing.T) {
	const brief = 300 * time.Microsecond // about as long as the next request takes
	soon := func(end func(request)) func(request) {
		return func(q request) {
			go func() {
				for start, wait := time.Now(), rand.N(brief); time.Since(start) < wait; {
					runtime.Gosched()
				}
				end(q)
			}()
		}
	}
	for name, end := range map[string]func(request){
		"in order": soon(func(q request) { _ = q.conn.Close() }),
		"by reset": soon(func(q request) { reset(q.conn) }),
		"with the next request unread": func(q request) {
			_, _ = q.conn.Read(make([]byte, 1))
			reset(q.conn)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFaulty(t, setting{}, nil, func(q request) string {
				_, _ = io.WriteString(q.conn, ok(echoed(q)))
				end(q)
				return ""
			})
			var failed atomic.Int64
			var clients sync.WaitGroup
			for range 4 {
				clients.Go(func() {
					for i := range racePasses / 4 {
						m := f.request(t, []string{"POST", "GET", "PATCH", "GET"}[i%4], "")
						sent := f.sent(m)
						switch {
						case m.err != nil:
							t.Errorf("%s got %d, then %v", m.method, m.code, m.err)
						case m.code == http.StatusOK:
							if m.method != "GET" && sent != 1 {
								t.Errorf("%s was answered, and sent %d times", m.method, sent)
							}
						case m.method == "GET":
							t.Errorf("GET was answered %d %s", m.code, m.body)
						default:
							failed.Add(1)
							wantStatus(t, m.answer)
							if sent > 1 {
								t.Errorf("%s failed, and was sent %d times", m.method, sent)
							}
						}
					}
				})
			}
			clients.Wait()
			t.Logf("%d of %d writes met a connection that was closing", failed.Load(), racePasses/2)
		})
	}
}

// Clients that leave in the middle of an answer leave none of it to those who come
// after them.
func TestAbandonedAnswers(t *testing.T) {
	const passes, pieces = 100, 30
	f := newFaulty(t, setting{}, nil, func(q request) string {
		if !strings.Contains(q.target, "&abandon") {
			return ok(echoed(q))
		}
		_, _ = fmt.Fprintf(q.conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", pieces*len(echoed(q)))
		for range pieces {
			_, _ = io.WriteString(q.conn, echoed(q))
			for range rand.IntN(20) {
				runtime.Gosched()
			}
		}
		return ""
	})
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for i := range passes / 4 {
				mark := fmt.Sprintf("mark-%d-", f.marks.Add(1))
				conn, err := f.connect()
				if err == nil {
					_, err = io.WriteString(conn, "GET /api/v1/namespaces/d/pods/p?m="+mark+"&abandon HTTP/1.1\r\nHost: h\r\n\r\n")
				}
				if err == nil {
					_, err = io.ReadFull(conn, make([]byte, rand.IntN(300)))
				}
				if err != nil {
					t.Error(err)
					return
				}
				if i%2 == 0 {
					reset(conn)
				}
				_ = conn.Close()
				if m := f.request(t, "GET", ""); m.err != nil || m.code != http.StatusOK {
					t.Errorf("the next was answered %d %.300q, %v", m.code, m.body, m.err)
				}
			}
		})
	}
	clients.Wait()
}
