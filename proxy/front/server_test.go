package front_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/front"
)

func hello(*front.Request) *front.Response { return text("hello") }

func TestConfigErrors(t *testing.T) {
	f := func(cfg front.Config, want string) {
		t.Helper()
		if _, err := front.New(cfg); err == nil || err.Error() != "cannot make the front end: "+want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}

	f(front.Config{}, "Handler is not set")
	f(front.Config{Handler: hello, MaxHeadBytes: 4095}, "MaxHeadBytes is 4095, want at least 4096")
	f(front.Config{Handler: hello, HeadTimeout: -time.Second, MaxConnectionsPerAddress: -1},
		"HeadTimeout is -1s, want a positive duration\nMaxConnectionsPerAddress is -1, want at least 0")
}

func TestConnectionLimits(t *testing.T) {
	f := func(cfg front.Config, reason, message string) {
		t.Helper()
		refusals := make(chan front.Refusal, 1)
		cfg.Handler = hello
		cfg.OnRefuse = func(client netip.AddrPort, r front.Refusal) {
			if client.Addr().String() != "127.0.0.1" {
				t.Errorf("refused %v", client)
			}
			refusals <- r
		}
		s := start(t, cfg)
		first := s.dial()
		if got := first.get("/"); got != "200 OK hello" {
			t.Errorf("the first got %q", got)
		}
		second := s.dial()
		if n, err := second.r.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("the second got %d bytes, %v", n, err)
		}
		if r := wait(t, refusals, "OnRefuse"); r != (front.Refusal{Reason: reason, Message: message}) {
			t.Errorf("refusal %+v", r)
		}
		if got := first.get("/"); got != "200 OK hello" {
			t.Errorf("the first got %q", got)
		}
		first.Close()
		until(t, "the first to be forgotten", func() bool { return s.Connections() == 0 })
		if got := s.dial().get("/"); got != "200 OK hello" {
			t.Errorf("the third got %q", got)
		}
	}

	f(front.Config{MaxConnections: 1}, "connections", "there are 1 connections, the most that are allowed")
	f(front.Config{MaxConnectionsPerAddress: 1}, "connections_per_address", "127.0.0.1 has 1 connections, the most that one address may have")
}

// Requests under way are answered, streams are told and end cleanly, idle
// connections close, new ones are refused.
func TestShutdown(t *testing.T) {
	begun, proceed := make(chan struct{}, 2), make(chan struct{})
	s := start(t, front.Config{Handler: func(r *front.Request) *front.Response {
		switch r.Target {
		case "/slow":
			begun <- struct{}{}
			<-proceed
		case "/stream":
			return &front.Response{Status: 200, Length: -1, Stream: func(w io.Writer) error {
				begun <- struct{}{}
				<-r.ShuttingDown()
				_, err := io.WriteString(w, "last words")
				return err
			}}
		}
		return text("hello")
	}})
	idle, slow, stream := s.dial(), s.dial(), s.dial()
	idle.get("/")
	slow.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n")
	stream.send("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n")
	wait(t, begun, "the slow request")
	wait(t, begun, "the stream")

	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.Background()) }()
	if rest := idle.rest(); rest != "" {
		t.Errorf("the idle connection got %q", rest)
	}
	if got := read(t, stream.response("GET").Body); got != "last words" {
		t.Errorf("the stream got %q", got)
	}
	if nc, err := net.Dial("tcp", s.addr); err == nil {
		nc.Close()
		t.Error("a new connection was accepted")
	}
	close(proceed)
	resp := slow.response("GET")
	if got := read(t, resp.Body); got != "hello" || !resp.Close {
		t.Errorf("the slow request got %q, close %v", got, resp.Close)
	}
	if err := wait(t, ended, "Shutdown"); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(ln); !errors.Is(err, front.ErrShutdown) {
		t.Errorf("Serve after Shutdown: %v", err)
	}
}

// A listener that breaks ends Serve with its error.
func TestBrokenListener(t *testing.T) {
	s, err := front.New(front.Config{Handler: hello})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if err := s.Serve(ln); !errors.Is(err, net.ErrClosed) || !strings.HasPrefix(err.Error(), "cannot accept connections on 127.0.0.1:") {
		t.Errorf("Serve: %v", err)
	}
}

// The package is a leaf: of this module it imports the shared wire types only.
func TestImports(t *testing.T) {
	const module = "github.com/mixed-version-proxy/mvp"
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range strings.Lines(string(out)) {
		pkg = strings.TrimSpace(pkg)
		switch {
		case pkg == module+"/proxy/front", pkg == module+"/proxy/wire":
		case strings.HasPrefix(pkg, module), strings.HasPrefix(pkg, "k8s.io/"):
			t.Errorf("proxy/front must not depend on %s", pkg)
		}
	}
}

// No type of fasthttp may cross the exported API.
func TestExportedAPI(t *testing.T) {
	out, err := exec.Command("go", "doc", "-all", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "fasthttp.") {
		t.Error("the exported API mentions a type of fasthttp")
	}
}
