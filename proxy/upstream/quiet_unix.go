//go:build unix

package upstream

import (
	"errors"
	"net"
	"syscall"
)

// peeker looks whether a TCP connection has something to read. It is made once for a
// connection, so that looking allocates nothing.
type peeker struct {
	rc   syscall.RawConn // nil: cannot look
	peek func(fd uintptr) bool
	b    [1]byte
	err  error
}

func newPeeker(c net.Conn) *peeker {
	p := &peeker{}
	if sc, ok := c.(syscall.Conn); ok {
		p.rc, _ = sc.SyscallConn()
	}
	p.peek = func(fd uintptr) bool {
		_, _, p.err = syscall.Recvfrom(int(fd), p.b[:], syscall.MSG_PEEK)
		return true // the socket does not block: never wait for it
	}
	return p
}

// quiet reports whether the connection is open and has nothing to read, without
// waiting and without taking anything from it. It looks below TLS, where a
// close_notify is something to read as well.
func (p *peeker) quiet() bool {
	if p.rc == nil {
		return true
	}
	err := p.rc.Read(p.peek)
	return err == nil && (errors.Is(p.err, syscall.EAGAIN) || errors.Is(p.err, syscall.EWOULDBLOCK))
}
