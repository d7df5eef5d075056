package upstream

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
)

func upgradeRequest() *Request {
	return &Request{Method: "POST", Target: "/api/v1/namespaces/d/pods/p/exec?command=date", Host: "h", Header: fields(
		"Connection", "Upgrade", "Upgrade", "SPDY/3.1",
		"X-Stream-Protocol-Version", "v4.channel.k8s.io", "X-Stream-Protocol-Version", "channel.k8s.io",
	)}
}

// After a 101 the connection is the caller's, bytes that came with it included.
func TestUpgrade(t *testing.T) {
	request, gone := make(chan string, 1), make(chan struct{}, 1)
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		req, _ := readRequest(r)
		request <- req
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nHELLO")
		_, _ = io.Copy(c, r)
		gone <- struct{}{}
	})
	s := serverAt(t, "http://"+addr, nil)
	resp, tunnel, err := s.Upgrade(testContext(t), upgradeRequest())
	if err != nil || tunnel == nil {
		t.Fatalf("no tunnel: %+v, %v", resp, err)
	}
	if got := resp.Header.Get("Upgrade"); resp.Status != 101 || got != "SPDY/3.1" {
		t.Errorf("status %d, Upgrade %q", resp.Status, got)
	}
	want := "POST /api/v1/namespaces/d/pods/p/exec?command=date HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n" +
		"X-Stream-Protocol-Version: v4.channel.k8s.io\r\nX-Stream-Protocol-Version: channel.k8s.io\r\nContent-Length: 0\r\n\r\n"
	if got := <-request; got != want {
		t.Errorf("server got\n%q\nwant\n%q", got, want)
	}
	if body, err := io.ReadAll(resp.Body); len(body) != 0 || err != nil {
		t.Errorf("the body of a 101: %q, %v", body, err)
	}
	_ = resp.Body.Close()

	if _, err := io.WriteString(tunnel, " WORLD"); err != nil {
		t.Fatal(err)
	}
	echoed := make([]byte, len("HELLO WORLD"))
	if _, err := io.ReadFull(tunnel, echoed); string(echoed) != "HELLO WORLD" {
		t.Errorf("%q, %v", echoed, err)
	}
	if s.Streams() != 1 {
		t.Errorf("%d streams, want 1", s.Streams())
	}
	_ = tunnel.Close()
	_ = tunnel.Close()
	within(t, gone, "the close at the server")
	if s.Streams() != 0 || idleCount(s) != 0 {
		t.Errorf("%d streams and %d idle connections are left", s.Streams(), idleCount(s))
	}
}

func TestUpgradeHalfClose(t *testing.T) {
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		_, _ = readRequest(r)
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
		said, _ := io.ReadAll(r)
		_, _ = io.WriteString(c, strings.ToUpper(string(said)))
	})
	_, tunnel, err := serverAt(t, "http://"+addr, nil).Upgrade(testContext(t), upgradeRequest())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tunnel.Close() }()
	_, _ = io.WriteString(tunnel, "over")
	if err := tunnel.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(tunnel); string(got) != "OVER" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// A refused upgrade is an answer like any other: there is no connection over which the
// client's next bytes could reach the server.
func TestUpgradeRefused(t *testing.T) {
	addr := listen(t, answerEach("HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"))
	s := serverAt(t, "http://"+addr, nil)
	resp, tunnel, err := s.Upgrade(testContext(t), upgradeRequest())
	if err != nil || tunnel != nil {
		t.Fatalf("tunnel %v, error %v", tunnel, err)
	}
	body, err := io.ReadAll(resp.Body)
	if resp.Status != 403 || string(body) != "{}" || err != nil {
		t.Errorf("%d %q, %v", resp.Status, body, err)
	}
	_ = resp.Body.Close()
	if s.Streams() != 0 {
		t.Errorf("%d streams are left", s.Streams())
	}
}

func TestUpgradeFails(t *testing.T) {
	addr := listen(t, answerEach("garbage\r\n\r\n"))
	s := serverAt(t, "http://"+addr, nil)
	_, _, err := s.Upgrade(testContext(t), upgradeRequest())
	wantError(t, err, OpReadHead, true, "not an HTTP/1.1 status line")
	req := upgradeRequest()
	req.Body, req.ContentLength = strings.NewReader("x"), 1
	_, _, err = s.Upgrade(testContext(t), req)
	wantError(t, err, OpRequest, false, "must not have a body")
	if s.Streams() != 0 {
		t.Errorf("%d streams are left", s.Streams())
	}
}
