package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mixed-version-proxy/mvp/proxy/front"
)

// upgrade reports whether the client asks for one of the protocols that
// Kubernetes speaks on a connection of its own (exec, attach, port-forward, a
// watch by WebSocket). A server may ignore any other wish (RFC 9110 section 7.8),
// so those are dropped with the other lines of the connection.
func (x *exchange) upgrade() bool {
	if x.in.ContentLength != 0 || !x.in.Header.HasToken("Connection", "upgrade") {
		return false
	}
	protocol := x.in.Header.Get("Upgrade")
	return strings.EqualFold(protocol, "websocket") || hasPrefixFold(protocol, "SPDY/")
}

// tunnel forwards an upgrade. Only a real 101 opens a pipe; every other answer
// passes as it came, so that the client can fall back.
func (x *exchange) tunnel() (*front.Response, error) {
	if x.conv != nil {
		return nil, &statusError{
			code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest,
			message: fmt.Sprintf("%s is converted between versions, which is not possible over %s; ask for it without an upgrade",
				x.req.String(), clip(x.in.Header.Get("Upgrade"))),
		}
	}
	out := x.outbound(x.in.Target, nil, 0)
	out.Header = out.Header.Clone(2)
	out.Header.Add("Connection", "Upgrade")
	out.Header.Add("Upgrade", x.in.Header.Get("Upgrade"))
	answer, conn, err := x.server.Server.Upgrade(x.ctx, out)
	if err != nil {
		return nil, err
	}
	x.answer = answer
	if conn == nil {
		if r := x.refused(); r != nil {
			return nil, r
		}
		return x.pass(), nil
	}
	header := x.answerHeader()
	header.Add("Connection", "Upgrade")
	header.Add("Upgrade", answer.Header.Get("Upgrade"))
	return &front.Response{
		Status: answer.Status, Reason: answer.Reason, HasReason: true,
		Header: header,
		Tunnel: func(client net.Conn) { pipe(client, conn) },
	}, nil
}

// lingerTime is how long a tunnel goes on after one side has ended, for what the
// other has still to say. Kube-apiservers and their clients end at once when they
// are told so; this is for those that do not.
const lingerTime = 3 * time.Second

// pipe copies both ways. When one side ends, the other is told so and has
// lingerTime to finish. It must not lose what is on its way: a server that has
// sent an exit code closes although the client still sends, so the first sign of
// the end is often that the server takes nothing more. A client that has failed
// ends the tunnel at once.
func pipe(client, server net.Conn) {
	closeBoth := func() { _ = errors.Join(client.Close(), server.Close()) }
	defer closeBoth()
	linger := sync.OnceFunc(func() {
		deadline := time.Now().Add(lingerTime)
		_ = errors.Join(client.SetDeadline(deadline), server.SetDeadline(deadline))
	})
	var both sync.WaitGroup
	both.Go(func() {
		_, err := io.Copy(server, client)
		linger()
		closeWrite(server)
		if err == nil {
			return
		}
		// What the client sends is read on: a connection that is closed with bytes
		// unread is reset, and takes with it what was sent last.
		if _, err := io.Copy(io.Discard, client); err != nil {
			closeBoth()
		}
	})
	both.Go(func() {
		_, _ = io.Copy(client, server)
		linger()
		closeWrite(client)
	})
	both.Wait()
}

// closeWrite ends our side of a connection, or all of one that has no sides.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}
