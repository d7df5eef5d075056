package front_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

const upgrade = "POST /exec HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n"

func switching(tunnel func(net.Conn)) *front.Response {
	return &front.Response{
		Status: 101,
		Header: wire.Header{
			{Name: "Connection", Value: "Upgrade"},
			{Name: "Upgrade", Value: "SPDY/3.1"},
			{Name: "X-Stream-Protocol-Version", Value: "a"},
			{Name: "X-Stream-Protocol-Version", Value: "b"},
		},
		Tunnel: tunnel,
	}
}

const switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n" +
	"X-Stream-Protocol-Version: a\r\nX-Stream-Protocol-Version: b\r\n\r\n"

func echo(client net.Conn) { _, _ = io.Copy(client, client) }

func (c *client) expect(s string) {
	c.t.Helper()
	b := make([]byte, len(s))
	if n, err := io.ReadFull(c.r, b); err != nil || string(b) != s {
		c.t.Fatalf("got %q, %v\nwant %q", b[:n], err, s)
	}
}

func TestTunnel(t *testing.T) {
	cfg := front.Config{IdleTimeout: 20 * time.Millisecond, WriteTimeout: 20 * time.Millisecond, BodyTimeout: 20 * time.Millisecond}
	bothWays(t, cfg, func(t *testing.T, cfg front.Config, dial func(*server) *client) {
		done := make(chan outcome, 2)
		cfg.Handler = func(r *front.Request) *front.Response {
			r.OnGone(func() { t.Error("gone") }, 0)
			if r.Target != "/exec" {
				return text(r.Target)
			}
			return ends(switching(echo), done)
		}
		s := start(t, cfg)
		c := dial(s)
		// A request before it, bytes together with it, and a wish to close that an
		// upgrade overrules.
		if got := c.get("/first"); got != "200 OK /first" {
			t.Errorf("answered %q", got)
		}
		c.send(strings.Replace(upgrade, "Connection: Upgrade", "Connection: Upgrade, close", 1) + "EARLY")
		c.expect(switched + "EARLY")
		for range 100 {
			c.send("ping")
			c.expect("ping")
		}
		big := strings.Repeat("x", 1<<20)
		go func() { _, _ = io.WriteString(c, big) }()
		c.expect(big)
		c.Close()
		if got := wait(t, done, "Done"); got != (outcome{int64(5 + 400 + 1<<20), nil}) {
			t.Errorf("Done(%d, %v)", got.written, got.err)
		}
		until(t, "the connection to end", func() bool { return s.Connections() == 0 })
	})
}

// A tunnel that returns ends the connection, also under a reader it forgot.
func TestTunnelReturns(t *testing.T) {
	forgotten := make(chan error, 1)
	s := start(t, front.Config{Handler: func(*front.Request) *front.Response {
		return switching(func(client net.Conn) {
			go func() {
				_, err := io.Copy(io.Discard, client)
				if err == nil {
					_, err = client.Read(make([]byte, 1))
				}
				forgotten <- err
			}()
			_, _ = io.WriteString(client, "bye")
		})
	}})
	c := s.dial()
	c.send(upgrade)
	c.expect(switched)
	if got := c.rest(); got != "bye" {
		t.Errorf("got %q", got)
	}
	if err := wait(t, forgotten, "the forgotten reader"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the forgotten reader got %v", err)
	}
}

// The tunnel is called even when it cannot be opened: it has the other side to
// close.
func TestTunnelThatCannotBe(t *testing.T) {
	tests := []struct {
		name, request, want string
		header              wire.Header
	}{
		{"unread body", "POST /exec HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", "cannot open the tunnel: the request body was not read to its end", nil},
		{"bad header", upgrade, "cannot send the handler's answer: the value of a has a control character", wire.Header{{Name: "a", Value: "\n"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			called := make(chan error, 1)
			done := make(chan outcome, 2)
			s := start(t, front.Config{Handler: func(*front.Request) *front.Response {
				return ends(&front.Response{Status: 101, Header: tt.header, Tunnel: func(client net.Conn) {
					_, err := client.Write([]byte("x"))
					called <- err
				}}, done)
			}})
			c := s.dial()
			c.send(tt.request)
			if err := wait(t, called, "the tunnel"); !errors.Is(err, net.ErrClosed) {
				t.Errorf("its client says %v", err)
			}
			if got := wait(t, done, "Done"); got.err == nil || got.err.Error() != tt.want {
				t.Errorf("Done(%d, %v)", got.written, got.err)
			}
		})
	}
}

func TestTunnelPanics(t *testing.T) {
	done := make(chan outcome, 2)
	s := start(t, front.Config{Handler: func(*front.Request) *front.Response {
		return ends(switching(func(net.Conn) { panic("in the tunnel") }), done)
	}})
	c := s.dial()
	c.send(upgrade)
	c.expect(switched)
	if got := wait(t, done, "Done"); got.err == nil || got.err.Error() != "the tunnel panicked" {
		t.Errorf("Done(%d, %v)", got.written, got.err)
	}
	if !strings.Contains(s.log.String(), "in the tunnel") {
		t.Error("not logged")
	}
}

// Shutdown waits for tunnels until its time is up, and then ends them.
func TestShutdownEndsTunnels(t *testing.T) {
	done := make(chan outcome, 2)
	told := make(chan struct{})
	s := start(t, front.Config{Handler: func(r *front.Request) *front.Response {
		go func() {
			<-r.ShuttingDown()
			close(told)
		}()
		return ends(switching(echo), done)
	}})
	c := s.dial()
	c.send(upgrade)
	c.expect(switched)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(ctx) }()
	wait(t, told, "ShuttingDown")
	c.send("still here")
	c.expect("still here")
	cancel()
	err := wait(t, ended, "Shutdown")
	if !errors.Is(err, context.Canceled) || err.Error() != "closed 1 connections before they ended: context canceled" {
		t.Errorf("Shutdown: %v", err)
	}
	wait(t, done, "Done")
	if n := s.Connections(); n != 0 {
		t.Errorf("%d connections", n)
	}
}
