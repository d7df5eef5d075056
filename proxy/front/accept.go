package front

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// Serve accepts connections from ln until Shutdown, then returns nil. It closes
// ln. Another error is that of a broken listener.
func (s *Server) Serve(ln net.Listener) error {
	if !s.addListener(ln) {
		return errors.Join(ErrShutdown, ln.Close())
	}
	defer s.removeListener(ln)
	pause := time.Duration(0)
	for {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			pause = 0
			s.admit(nc)
		case s.isStopping():
			return nil
		case transient(err):
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.cfg.Log.Warn("cannot accept a connection, trying again", "error", err, "pause", pause)
			select {
			case <-time.After(pause):
			case <-s.stopping:
				return nil
			}
		default:
			return fmt.Errorf("cannot accept connections on %v: %w", ln.Addr(), err)
		}
	}
}

// transient reports whether accepting may work again in a moment: the process or
// the kernel is out of something, or the client left before its turn.
func transient(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return isTimeout(err)
}

func (s *Server) addListener(ln net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.listeners[ln] = true
	}
	return !s.stopped
}

func (s *Server) removeListener(ln net.Listener) {
	s.mu.Lock()
	delete(s.listeners, ln)
	stopped := s.stopped
	s.mu.Unlock()
	if !stopped { // else stop has closed it
		_ = ln.Close() // it is broken already
	}
}

// admit starts a connection, if there may be one more.
func (s *Server) admit(nc net.Conn) {
	c := &conn{Conn: nc, tcp: nc, server: s, remote: addressOf(nc), opened: time.Now()}
	if r := s.register(c); r != nil {
		c.kill()
		s.refused(c.remote, *r)
		return
	}
	keepAlive(nc)
	if s.tls == nil {
		go s.serve(c)
		return
	}
	go s.handshake(c)
}

func addressOf(nc net.Conn) netip.AddrPort {
	if tcp, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		a := tcp.AddrPort()
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
	}
	return netip.AddrPort{}
}

func (s *Server) register(c *conn) *Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	address := c.remote.Addr()
	switch {
	case s.stopped:
		return &Refusal{Reason: RefusedConnections, Message: "the server is shutting down"}
	case len(s.conns) >= s.cfg.MaxConnections:
		return &Refusal{
			Reason:  RefusedConnections,
			Message: fmt.Sprintf("there are %d connections, the most that are allowed", len(s.conns)),
		}
	case s.cfg.MaxConnectionsPerAddress > 0 && s.addresses[address] >= s.cfg.MaxConnectionsPerAddress:
		return &Refusal{
			Reason:  RefusedConnectionsPerAddress,
			Message: fmt.Sprintf("%v has %d connections, the most that one address may have", address, s.addresses[address]),
		}
	}
	s.conns[c] = true
	s.addresses[address]++
	return nil
}

// release ends a connection's time, whoever had it last.
func (s *Server) release(c *conn) {
	_ = c.Conn.Close() // mostly closed already
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	address := c.remote.Addr()
	if s.addresses[address]--; s.addresses[address] == 0 {
		delete(s.addresses, address)
	}
}

// handshake makes the connection speak TLS. It has a goroutine of its own, which
// ends with it: the handshake's deep stack is not kept for the connection's life.
func (s *Server) handshake(c *conn) {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.HandshakeTimeout)
	defer cancel()
	tc := tls.Server(c.tcp, s.tls)
	if err := tc.HandshakeContext(ctx); err != nil {
		s.refuseHandshake(c, err)
		s.release(c)
		return
	}
	c.Conn = tc
	if chains := tc.ConnectionState().VerifiedChains; len(chains) > 0 {
		c.peer = chains[0]
	}
	go s.serve(c)
}

func (s *Server) refuseHandshake(c *conn, err error) {
	r := Refusal{Reason: RefusedHandshake, Message: "the TLS handshake failed: " + err.Error()}
	var notTLS tls.RecordHeaderError
	if errors.As(err, &notTLS) && notTLS.Conn != nil && looksLikeHTTP(notTLS.RecordHeader) {
		r.Code = http.StatusBadRequest
		r.Message = "the client sent an HTTP request to an HTTPS server"
		if c.tcp.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
			_, _ = io.WriteString(c.tcp, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"+
				"The client sent an HTTP request to an HTTPS server.\n")
		}
	}
	s.refused(c.remote, r)
}

// looksLikeHTTP reports whether the first bytes of a connection are those of a
// request line.
func looksLikeHTTP(b [5]byte) bool {
	switch string(b[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO":
		return true
	}
	return false
}

// serve runs a connection to its end, or to where a tunnel takes it.
func (s *Server) serve(c *conn) {
	defer func() {
		if p := recover(); p != nil {
			s.logPanic("the reading of a request", p)
			s.release(c)
		}
	}()
	c.init(c.Conn, s.logPanic)
	if err := s.http.ServeConn(c); err != nil {
		s.cfg.Log.Debug("connection ended", "client", c.remote, "error", err)
	}
	if !c.tunnelled {
		s.release(c)
	}
}
