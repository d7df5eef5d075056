package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"time"
)

// readBufferBytes is the size of a connection's read buffer. Bodies are read past
// it; it must hold one line of the chunked coding.
const readBufferBytes = 4 << 10

// keepAlive finds a dead server behind a silent connection, such as a watch's: it
// is noticed after about a minute.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}

// conn is one connection to a server.
type conn struct {
	net.Conn          // plain or TLS
	raw      net.Conn // the TCP connection
	br       *bufio.Reader
	peeker   *peeker // of raw
	cut      func()  // Close, made once for all contexts that may call it
	kind     connKind
	ip       netip.Addr
	era      uint64 // of the TLS material it was made with

	idleSince time.Time
	reused    bool
	received  bool // a byte, since the present exchange began
	broken    bool // a Read failed
}

// connKind tells connections apart that must not serve each other's requests.
type connKind struct {
	credential Credential
	long       bool // for Long requests
}

// Read notes what the checks of reuse want to know. It is called through br.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.received = c.received || n > 0
	c.broken = c.broken || err != nil
	return n, err
}

// Close closes the TCP connection at once. It sends no TLS close_notify: that write
// could block on a server that reads nothing.
func (c *conn) Close() error { return c.raw.Close() }

// alive reports whether an idle connection can take a request: nothing must have
// come since the last answer, neither data nor the end. The check costs one system
// call and saves a POST, which nobody may send twice.
func (c *conn) alive() bool {
	return !c.broken && c.br.Buffered() == 0 && c.peeker.quiet()
}

// dial makes a new connection. Its error is an *Error.
func (s *Server) dial(ctx context.Context, kind connKind) (*conn, error) {
	dialCtx, cancel := context.WithTimeout(ctx, s.cfg.DialTimeout)
	defer cancel()
	raw, err := s.dialer.DialContext(dialCtx, "tcp", s.end.addr)
	if err != nil {
		if ctx.Err() == nil && !isLocal(err) {
			s.dialFailed(err)
		}
		return nil, s.fail(ctx, OpDial, false, err)
	}
	c := &conn{Conn: raw, raw: raw, kind: kind, ip: remoteIP(raw), peeker: newPeeker(raw)}
	c.cut = func() { _ = c.Close() }
	if s.end.tls {
		if err := s.handshake(ctx, c); err != nil {
			_ = raw.Close()
			return nil, s.fail(ctx, OpHandshake, false, err)
		}
	}
	c.br = bufio.NewReaderSize(c, readBufferBytes)
	return c, nil
}

func (s *Server) handshake(ctx context.Context, c *conn) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.HandshakeTimeout)
	defer cancel()
	material := s.secrets.current()
	client := tls.Client(c.raw, s.tlsConfig(material, c.kind.credential))
	if err := client.HandshakeContext(ctx); err != nil {
		return err
	}
	c.Conn, c.era = client, material.era
	return nil
}

func remoteIP(c net.Conn) netip.Addr {
	if addr, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return addr.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
