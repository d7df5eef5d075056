package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// An executor runs the one command, or makes the one attachment, of a request.
type executor struct {
	c    *container
	opts *remotecommand.Options
}

// ExecInContainer implements remotecommand.Executor.
func (e executor) ExecInContainer(_ context.Context, _, _, _ string, args []string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	stdout, stderr := e.outputs(out, errOut)
	p, err := start(command(e.c.home, args), tty, stdout, stderr)
	if err != nil {
		return err
	}
	if p.resize != nil {
		go func() {
			for size := range resize { // closed with the stream
				p.resize(size.Width, size.Height)
			}
		}()
	}
	switch {
	case e.opts.Stdin && in != nil:
		// Not waited for: a client may keep its side open longer than the process
		// lives. The copy ends with the connection.
		go func() {
			_, _ = io.Copy(p.stdin, in)
			if !tty { // of a terminal, the end of the input is a control-D
				_ = p.stdin.Close()
			}
		}()
	case !tty:
		_ = p.stdin.Close()
	}
	err = p.wait()
	// As container runtimes do: the end of what was printed, before the status.
	for _, w := range []io.Writer{stdout, stderr} {
		if c, ok := w.(io.Closer); ok {
			_ = c.Close()
		}
	}
	return exitError(err)
}

// AttachContainer implements remotecommand.Attacher.
func (e executor) AttachContainer(_ context.Context, _, _, _ string, in io.Reader, out, errOut io.WriteCloser, _ bool, resize <-chan remotecommand.TerminalSize) error {
	go func() {
		for range resize { // the terminal keeps its size
		}
	}()
	if !e.opts.Stdin {
		in = nil
	}
	stdout, _ := e.outputs(out, errOut)
	e.c.attach(in, stdout)
	return nil
}

// outputs are nil where the client did not ask for them, also over WebSocket,
// where the streams exist all the same.
func (e executor) outputs(out, errOut io.WriteCloser) (stdout, stderr io.Writer) {
	if e.opts.Stdout {
		stdout = out
	}
	if e.opts.Stderr {
		stderr = errOut
	}
	return stdout, stderr
}

// PortForward implements portforward.PortForwarder.
func (n *node) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	conn, err := n.dial(ctx, int(port))
	if err != nil {
		return err
	}
	pipe(stream, conn)
	return nil
}

// dial connects to a port of any pod.
func (n *node) dial(ctx context.Context, port int) (net.Conn, error) {
	addr, ok := n.ports[port]
	if !ok {
		return nil, fmt.Errorf("failed to connect to localhost:%d inside the pod: connection refused", port)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

// pipe copies both ways and closes both ends when the server's side is at its
// end, or cannot be written to. The end of the client's side is passed on.
func pipe(client io.ReadWriteCloser, server net.Conn) {
	defer client.Close()
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client)
		if half, ok := server.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	_, _ = io.Copy(client, server)
}
