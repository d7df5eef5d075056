package proxy

import (
	"errors"
	"io"
	"net"
	"sync"

	"github.com/mixed-version-proxy/mvp/proxy/front"
)

// upgrade reports whether the client asks for another protocol on its connection
// (exec, attach, port-forward).
func (x *exchange) upgrade() bool {
	return x.in.Header.Has("Upgrade") && x.in.Header.HasToken("Connection", "upgrade")
}

// tunnel forwards an upgrade. Only a real 101 opens a pipe; every other answer
// passes as it came, so that the client can fall back.
func (x *exchange) tunnel() (*front.Response, error) {
	out := x.outbound(x.in.Target, x.body.reader(), x.in.ContentLength)
	out.Header = out.Header.Clone(2)
	out.Header.Add("Connection", "Upgrade")
	out.Header.Add("Upgrade", x.in.Header.Get("Upgrade"))
	answer, conn, err := x.server.Server.Upgrade(x.ctx, out)
	if err != nil {
		return nil, err
	}
	x.answer = answer
	if conn == nil {
		return x.pass(), nil
	}
	header := x.answerHeader()
	header.Add("Connection", "Upgrade")
	header.Add("Upgrade", answer.Header.Get("Upgrade"))
	return &front.Response{
		Status: answer.Status,
		Header: header,
		Tunnel: func(client net.Conn) { pipe(client, conn) },
	}, nil
}

// pipe copies both ways until one direction ends, as kube-apiserver's own proxy
// does, and then closes both ends.
func pipe(client, server net.Conn) {
	var once sync.Once
	end := func() {
		once.Do(func() { _ = errors.Join(client.Close(), server.Close()) })
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{server, client}, {client, server}} {
		both.Go(func() {
			defer end()
			_, _ = io.Copy(way[0], way[1])
		})
	}
	both.Wait()
}
