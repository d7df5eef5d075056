package proxy_test

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// A server that is killed with requests under way takes no write with it twice; what
// comes later goes to the other one.
func TestServerIsKilled(t *testing.T) {
	const clients = 20
	arrived, dead := make(chan struct{}, clients), make(chan struct{})
	f := newFaulty(t, setting{}, nil, func(request) string { arrived <- struct{}{}; <-dead; return "" })
	var waiting sync.WaitGroup
	for i := range clients {
		waiting.Go(func() {
			m := f.request(t, []string{"POST", "GET", "PATCH", "PUT"}[i%4], "")
			f.check(t, &fault{name: "killed", code: brokeOff, get: readElsewhere}, m)
		})
	}
	for range clients {
		<-arrived
	}
	_ = f.a.listener.Close()
	f.a.mu.Lock()
	for _, conn := range f.a.conns {
		reset(conn)
	}
	f.a.mu.Unlock()
	close(dead)
	waiting.Wait()
	for _, method := range []string{"POST", "GET", "PATCH", "DELETE"} {
		m := f.request(t, method, "")
		if f.check(t, &fault{name: "dead", code: http.StatusOK}, m); f.tb.count("?m="+m.mark) != 1 {
			t.Errorf("%s did not go to the other server", method)
		}
	}
}

// A server that takes connections and requests and says nothing, neither to clients
// nor to probes, loses its reads to the other one; its writes are not repeated.
func TestServerIsStopped(t *testing.T) {
	const clients = 12
	arrived, stopped, end := make(chan struct{}, clients), make(chan struct{}), make(chan struct{})
	f := newFaulty(t, setting{upstream: upstream.Config{
		HeaderTimeout: 4 * time.Second, // more than the probes need to find it out
		ProbeInterval: 50 * time.Millisecond, ProbeTimeout: time.Second,
		DiscoveryInterval: time.Hour, CRDInterval: time.Hour,
	}}, func() string {
		select {
		case <-stopped:
			<-end
		default:
		}
		return respond(200, "text/plain", "ok")
	}, func(request) string { arrived <- struct{}{}; <-end; return "" })
	defer close(end)
	var waiting sync.WaitGroup
	for i := range clients {
		waiting.Go(func() {
			f.check(t, &fault{name: "stopped", code: tooLate, get: readElsewhere}, f.request(t, []string{"POST", "GET", "PATCH"}[i%3], ""))
		})
	}
	for range clients {
		<-arrived
	}
	close(stopped)
	waiting.Wait()
	for _, method := range []string{"POST", "GET", "PATCH"} {
		f.check(t, &fault{name: "still stopped", code: http.StatusOK}, f.request(t, method, ""))
	}
}

// An answer whose server stops in the middle of it breaks off.
func TestServerStopsInABody(t *testing.T) {
	stopped, end := make(chan struct{}), make(chan struct{})
	f := newFaulty(t, setting{
		proxy: proxy.Config{HungTime: 100 * time.Millisecond},
		upstream: upstream.Config{
			ProbeInterval: 50 * time.Millisecond, ProbeTimeout: 500 * time.Millisecond,
			DiscoveryInterval: time.Hour, CRDInterval: time.Hour,
		},
	}, func() string {
		select {
		case <-stopped:
			<-end
		default:
		}
		return respond(200, "text/plain", "ok")
	}, func(request) string { return head200 + "Content-Length: 10\r\n\r\n12345" })
	defer close(end)
	_, in := f.send(target("/api/v1/namespaces/d/pods"))
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, resp.Body, 5); got != "12345" {
		t.Fatalf("the body begins with %q", got)
	}
	close(stopped)
	if rest, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) || len(rest) > 0 {
		t.Errorf("the body went on with %q and ended with %v", rest, err)
	}
}

// A body that stalls goes on when its server does, is cut when its server is, and
// lets go of the server when its client leaves.
func TestBodyStalls(t *testing.T) {
	conns := make(chan request, 1)
	f := newFaulty(t, setting{}, nil, func(q request) string {
		conns <- q
		return head200 + "Content-Length: 10\r\n\r\n12345"
	})
	begin := func() (io.Closer, *http.Response, request) {
		t.Helper()
		conn, in := f.send("GET /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: h\r\n\r\n")
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, resp.Body, 5); got != "12345" {
			t.Fatalf("the body begins with %q", got)
		}
		return conn, resp, <-conns
	}

	_, resp, q := begin()
	if _, err := io.WriteString(q.conn, "67890"); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "67890" {
		t.Errorf("the body went on with %q, %v", rest, err)
	}

	_, resp, q = begin()
	reset(q.conn)
	if rest, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) || len(rest) > 0 {
		t.Errorf("the body went on with %q and ended with %v", rest, err)
	}

	client, _, _ := begin()
	_ = client.Close()
	<-f.a.closed
}
