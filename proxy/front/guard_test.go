package front_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/front"
)

// A client that leaves is noticed while the handler waits, and while a stream is
// silent.
func TestOnGone(t *testing.T) {
	bothWays(t, front.Config{}, func(t *testing.T, cfg front.Config, dial func(*server) *client) {
		begun := make(chan struct{}, 1)
		cfg.Handler = func(r *front.Request) *front.Response {
			gone := make(chan struct{})
			delay := time.Duration(0)
			if r.Target == "/later" {
				delay = time.Millisecond
			}
			r.OnGone(func() { close(gone) }, delay)
			if _, err := r.ReadBody(10); err != nil {
				t.Error(err)
			}
			await := func() error {
				begun <- struct{}{}
				select {
				case <-gone:
				case <-time.After(patience):
					t.Errorf("%s: nobody noticed that the client left", r.Target)
				}
				return errors.New("gone")
			}
			if r.Target != "/stream" {
				_ = await()
				return text("")
			}
			return &front.Response{Status: 200, Length: -1, Stream: func(io.Writer) error { return await() }}
		}
		s := start(t, cfg)
		for _, request := range []string{
			"GET /now HTTP/1.1\r\nHost: h\r\n\r\n",
			"GET /later HTTP/1.1\r\nHost: h\r\n\r\n",
			"GET /stream HTTP/1.1\r\nHost: h\r\n\r\n",
			"POST /later HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
			"POST /now HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		} {
			c := dial(s)
			c.send(request)
			wait(t, begun, "the handler")
			c.Close()
		}
		until(t, "the connections to end", func() bool { return s.Connections() == 0 })
	})
}

// A guarded connection serves on: the guard's read takes nothing from the next
// request, be it in time or early.
func TestGuardKeepsAlive(t *testing.T) {
	bothWays(t, front.Config{}, func(t *testing.T, cfg front.Config, dial func(*server) *client) {
		var after atomic.Int32
		cfg.Handler = func(r *front.Request) *front.Response {
			over := make(chan struct{})
			r.OnGone(func() {
				select {
				case <-over:
					after.Add(1)
				default:
				}
			}, 0)
			b, err := r.ReadBody(100)
			if err != nil {
				t.Error(err)
			}
			resp := text(r.Target + string(b))
			resp.Done = func(int64, error) { close(over) }
			return resp
		}
		s := start(t, cfg)
		c := dial(s)
		for i := range 500 {
			c.send(fmt.Sprintf("POST /%d HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", i))
			if got := read(t, c.response("POST").Body); got != fmt.Sprintf("/%dabc", i) {
				t.Fatalf("answer %d is %q", i, got)
			}
		}
		c.Close()
		until(t, "the connection to end", func() bool { return s.Connections() == 0 })
		if n := after.Load(); n != 0 {
			t.Errorf("OnGone was called %d times after the exchange", n)
		}
	})
}

// A request sent while the one before is being answered is not lost.
func TestGuardAndEarlyRequest(t *testing.T) {
	proceed := make(chan struct{})
	s := start(t, front.Config{Handler: func(r *front.Request) *front.Response {
		r.OnGone(func() { t.Error("gone") }, 0)
		<-proceed
		return text(r.Target)
	}})
	c := s.dial()
	c.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n")
	c.send("GET /2 HTTP/1.1\r\nHost: h\r\n\r\nGET /3 HT")
	for i := 1; i <= 3; i++ {
		if i == 3 {
			c.send("TP/1.1\r\nHost: h\r\n\r\n")
		}
		proceed <- struct{}{}
		if got := read(t, c.response("GET").Body); got != fmt.Sprintf("/%d", i) {
			t.Errorf("answer %d is %q", i, got)
		}
	}
}

// The guard's read outlives its exchange and meets the idle timeout; that is not
// the client leaving.
func TestGuardAndIdleTimeout(t *testing.T) {
	s := start(t, front.Config{
		IdleTimeout: 20 * time.Millisecond,
		Handler: func(r *front.Request) *front.Response {
			r.OnGone(func() { t.Error("gone") }, 0)
			return text("ok")
		},
	})
	c := s.dial()
	if got := c.get("/"); got != "200 OK ok" {
		t.Errorf("answered %q", got)
	}
	if rest := c.rest(); rest != "" {
		t.Errorf("more came: %q", rest)
	}
}

func TestOnGonePanics(t *testing.T) {
	proceed := make(chan struct{})
	s := start(t, front.Config{Handler: func(r *front.Request) *front.Response {
		r.OnGone(func() { defer close(proceed); panic("in OnGone") }, 0)
		<-proceed
		return text("")
	}})
	c := s.dial()
	c.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	until(t, "the request", func() bool { return s.Connections() == 1 })
	c.Close()
	until(t, "the log", func() bool { return strings.Contains(s.log.String(), "in OnGone") })
}
