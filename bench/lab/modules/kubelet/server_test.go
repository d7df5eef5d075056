package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/moby/spdystream"
	"golang.org/x/net/websocket"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// startNode serves a node with one pod, in plain text.
func startNode(t *testing.T) *httptest.Server {
	t.Helper()
	var pod podSpec
	pod.Metadata.Namespace, pod.Metadata.Name = "default", "p"
	pod.Spec.Containers = []containerSpec{
		{Name: "main", Command: []string{"sh", "-c", "echo started; exec cat"}},
		{Name: "terminal", Command: []string{"sh"}, TTY: true},
	}
	n, err := newNode([]podSpec{pod}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &server{node: n, nodeIP: "10.244.0.1", podIP: "10.244.0.2"}
	srv := httptest.NewServer(s.handler())
	addr := srv.Listener.Addr().(*net.TCPAddr)
	s.listens, s.port = addr.String(), addr.Port
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		n.close()
	})
	return srv
}

// result is what a client saw of an exec.
type result struct{ stdout, stderr, status string }

// streams are one connection, over SPDY or over WebSocket.
type streams interface {
	run(t *testing.T, path string, q url.Values, stdin string) result
}

type overSPDY struct{ base string }

func dialSPDY(t *testing.T, target, protocol string) httpstream.Connection {
	t.Helper()
	rt, err := spdy.NewRoundTripper(nil)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(httpstream.HeaderProtocolVersion, protocol)
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	conn, err := rt.NewConnection(resp)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (c overSPDY) run(t *testing.T, path string, q url.Values, stdin string) result {
	t.Helper()
	conn := dialSPDY(t, c.base+path+"?"+q.Encode(), "v4.channel.k8s.io")
	open := func(kind string) httpstream.Stream {
		s, err := conn.CreateStream(http.Header{"streamType": {kind}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	read := func(s httpstream.Stream, into *string, done chan<- struct{}) {
		data, _ := io.ReadAll(s)
		*into = string(data)
		done <- struct{}{}
	}
	var r result
	done := make(chan struct{})
	outputs := 1
	go read(open("error"), &r.status, done)
	if q.Get("input") == "1" {
		in := open("stdin")
		defer func() { _ = in.Close() }()
		go func() {
			_, _ = io.WriteString(in, stdin)
			_ = in.Close()
		}()
	}
	if q.Get("output") == "1" {
		outputs++
		go read(open("stdout"), &r.stdout, done)
	}
	if q.Get("error") == "1" && q.Get("tty") != "1" {
		outputs++
		go read(open("stderr"), &r.stderr, done)
	}
	if q.Get("tty") == "1" {
		_, _ = io.WriteString(open("resize"), `{"Width":100,"Height":30}`) // fails if the process has ended
	}
	for range outputs {
		<-done
	}
	return r
}

type overWebSocket struct{ base string }

func (c overWebSocket) run(t *testing.T, path string, q url.Values, stdin string) result {
	t.Helper()
	config, err := websocket.NewConfig("ws"+strings.TrimPrefix(c.base, "http")+path+"?"+q.Encode(), c.base)
	if err != nil {
		t.Fatal(err)
	}
	config.Protocol = []string{"v4.channel.k8s.io"}
	conn, err := websocket.DialConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if q.Get("tty") == "1" {
		if err := websocket.Message.Send(conn, []byte("\x04{\"Width\":100,\"Height\":30}")); err != nil {
			t.Fatal(err)
		}
	}
	if stdin != "" {
		if err := websocket.Message.Send(conn, append([]byte{0}, stdin...)); err != nil {
			t.Fatal(err)
		}
	}
	var r result
	for {
		var frame []byte
		if err := websocket.Message.Receive(conn, &frame); err != nil {
			return r
		}
		if len(frame) == 0 || frame[0] > 3 {
			t.Fatalf("bad frame %q", frame)
		}
		into := []*string{0: nil, 1: &r.stdout, 2: &r.stderr, 3: &r.status}[frame[0]]
		*into += string(frame[1:])
	}
}

func TestExec(t *testing.T) {
	srv := startNode(t)
	tests := []struct {
		name           string
		args           string // of sh -c
		query          string
		stdin          string
		stdout, stderr string
		status         string // a part of it
	}{
		{"success", "echo out; echo err >&2", "output=1&error=1", "", "out\n", "err\n", `"status":"Success"`},
		{"exit code", "exit 42", "output=1&error=1", "", "", "", `"causes":[{"reason":"ExitCode","message":"42"}]`},
		{"signal", "kill -9 $$", "output=1", "", "", "", `"message":"137"`},
		{"stdin", "read -r line; echo got $line", "input=1&output=1", "hello\n", "got hello\n", "", `"status":"Success"`},
		{"stdin is open when the process ends", "exit 3", "input=1&output=1", "", "", "", `"message":"3"`},
		{"terminal", `test -t 1; until [ "$(stty size)" = "30 100" ]; do :; done; echo tty`, "input=1&output=1&tty=1", "", "tty\r\n", "", `"status":"Success"`},
		{"terminal without input", "echo x; exit 5", "output=1&tty=1", "", "x\r\n", "", `"message":"5"`},
	}
	for transport, c := range map[string]streams{"spdy": overSPDY{srv.URL}, "websocket": overWebSocket{srv.URL}} {
		for _, tt := range tests {
			t.Run(transport+"/"+tt.name, func(t *testing.T) {
				q, err := url.ParseQuery(tt.query)
				if err != nil {
					t.Fatal(err)
				}
				q["command"] = []string{"sh", "-c", tt.args}
				r := c.run(t, "/exec/default/p/main", q, tt.stdin)
				if r.stdout != tt.stdout || r.stderr != tt.stderr || !strings.Contains(r.status, tt.status) {
					t.Errorf("got stdout %q, stderr %q, status %s\nwant %q, %q, %s in it", r.stdout, r.stderr, r.status, tt.stdout, tt.stderr, tt.status)
				}
			})
		}
	}
	r := overSPDY{srv.URL}.run(t, "/exec/default/p/main", url.Values{"command": {"no-such-command"}, "output": {"1"}}, "")
	if !strings.Contains(r.status, "executable file not found") || !strings.Contains(r.status, "InternalError") {
		t.Errorf("status of a missing command is %s", r.status)
	}
}

func TestResize(t *testing.T) {
	srv := startNode(t)
	q := url.Values{"command": {"sh", "-c", "until stty size | grep '^30 100$'; do :; done"}, "input": {"1"}, "output": {"1"}, "tty": {"1"}}
	for transport, c := range map[string]streams{"spdy": overSPDY{srv.URL}, "websocket": overWebSocket{srv.URL}} {
		if got := c.run(t, "/exec/default/p/main", q, "").stdout; got != "30 100\r\n" {
			t.Errorf("%s: the terminal's size is %q", transport, got)
		}
	}
}

// TestAttach talks to the main process and finds what it said in the log, while
// the log is followed.
func TestAttach(t *testing.T) {
	srv := startNode(t)
	resp, err := http.Get(srv.URL + "/containerLogs/default/p/main?follow=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	log := bufio.NewReader(resp.Body)
	line := func(r *bufio.Reader, want string) {
		t.Helper()
		if got, err := r.ReadString('\n'); err != nil || got != want {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
	}
	line(log, "started\n")

	conn := dialSPDY(t, srv.URL+"/attach/default/p/main?input=1&output=1", "v4.channel.k8s.io")
	var all []httpstream.Stream
	for _, kind := range []string{"error", "stdin", "stdout"} {
		s, err := conn.CreateStream(http.Header{"streamType": {kind}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	out := bufio.NewReader(all[2])
	for i := range 3 {
		want := fmt.Sprintf("line %d\n", i)
		if _, err := io.WriteString(all[1], want); err != nil {
			t.Fatal(err)
		}
		line(log, want)
		line(out, want)
	}
}

func TestPortForward(t *testing.T) {
	srv := startNode(t)
	conn := dialSPDY(t, srv.URL+"/portForward/default/p", "portforward.k8s.io")
	forward := func(port, request string) (data, errs string) {
		t.Helper()
		header := http.Header{"port": {port}, "requestID": {port}, "streamType": {"error"}}
		errStream, err := conn.CreateStream(header)
		if err != nil {
			t.Fatal(err)
		}
		_ = errStream.Close()
		header["streamType"] = []string{"data"}
		// Where the port is closed, the node may reset the stream before it has said that
		// it took it, and what is left is the text on the other one.
		dataStream, err := conn.CreateStream(header)
		if err == nil {
			go func() {
				_, _ = io.WriteString(dataStream, request)
				_ = dataStream.Close()
			}()
			d, _ := io.ReadAll(dataStream)
			data = string(d)
		} else if !errors.Is(err, spdystream.ErrReset) {
			t.Fatal(err)
		}
		e, _ := io.ReadAll(errStream)
		return data, string(e)
	}
	if data, errs := forward("9090", "ping"); data != "ping" || errs != "" {
		t.Errorf("echo answered %q, %q", data, errs)
	}
	if data, _ := forward("8080", "GET /bytes?n=10 HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(data, "HTTP/1.1 200 OK\r\n") {
		t.Errorf("web answered %q", data)
	}
	if data, errs := forward("1", ""); data != "" || !strings.Contains(errs, "connection refused") {
		t.Errorf("a closed port answered %q, %q", data, errs)
	}
}

// TestConnect reaches the node and its pod as a kube-apiserver does.
func TestConnect(t *testing.T) {
	srv := startNode(t)
	port := srv.Listener.Addr().(*net.TCPAddr).Port
	f := func(target, path, want string) {
		t.Helper()
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", target)
		r := bufio.NewReader(conn)
		connect := &http.Request{Method: http.MethodConnect}
		resp, err := http.ReadResponse(r, connect)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusOK {
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n", path)
			if resp, err = http.ReadResponse(r, nil); err != nil {
				t.Fatal(err)
			}
		}
		body, _ := io.ReadAll(resp.Body)
		if got := fmt.Sprintf("%d %s", resp.StatusCode, bytes.TrimSpace(body)); !strings.HasPrefix(got, want) {
			t.Errorf("%s %s: got %q, want %q", target, path, got, want)
		}
	}

	f(fmt.Sprintf("10.244.0.1:%d", port), "/healthz", "200 ok")
	f(fmt.Sprintf("127.0.0.1:%d", port), "/healthz", "200 ok")
	f("10.244.0.2:8080", "/refuse", "403 the pod refuses")
	f("10.244.0.2:1", "/", "502 failed to connect")
	f("10.244.0.1:1", "/", `502 no route to "10.244.0.1:1"`)
	f("192.0.2.1:443", "/", `502 no route to "192.0.2.1:443"`)
}

func TestRefusals(t *testing.T) {
	srv := startNode(t)
	f := func(path string, code int, want string) {
		t.Helper()
		resp, err := http.Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != code || !strings.Contains(string(body), want) {
			t.Errorf("GET %s: got %d %q, want %d %q", path, resp.StatusCode, body, code, want)
		}
	}

	f("/exec/default/q/main?output=1&command=date", 404, `pod "q" does not exist`)
	f("/exec/default/p/other?output=1&command=date", 404, `container "other" not found in pod "p"`)
	f("/exec/default/p/main?command=date", 400, "you must specify at least 1 of stdin, stdout, stderr")
	f("/exec/default/p/main?output=1", 400, "no command")
	f("/exec/default/p/main?output=1&command=date", 400, "unable to upgrade")
	f("/attach/default/q/main?output=1", 404, `pod "q" does not exist`)
	f("/portForward/default/q", 404, `pod "q" does not exist`)
	f("/containerLogs/default/p/other", 404, `container "other" not found in pod "p"`)
	f("/containerLogs/default/p/main?tailLines=x", 422, `bad tailLines "x": want a number`)
	f("/containerLogs/default/p/main?sinceTime=x", 422, "bad sinceTime: ")
	f("/pods", 404, "not found")
}
