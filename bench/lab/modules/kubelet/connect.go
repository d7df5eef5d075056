package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
)

// connect is the network between kube-apiservers and the node, which they reach
// by an egress selector: the addresses of the node and of its pods exist here
// only. Kube-apiservers refuse to proxy to loopback addresses.
func (s *server) connect(w http.ResponseWriter, r *http.Request) {
	conn, err := s.dial(r.Context(), r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = conn.Close()
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if buffered.Reader.Buffered() > 0 {
		// Nobody speaks before the answer.
		_, _ = client.Close(), conn.Close()
		return
	}
	if _, err := fmt.Fprint(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		_, _ = client.Close(), conn.Close()
		return
	}
	pipe(client, conn)
}

// dial connects to the node, to a pod or, for webhooks, to loopback.
func (s *server) dial(ctx context.Context, addr string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, fmt.Errorf("bad port in %.60q", addr)
	}
	var d net.Dialer
	switch ip := net.ParseIP(host); {
	case host == s.nodeIP && port == s.port:
		return d.DialContext(ctx, "tcp", s.listens)
	case host == s.podIP:
		return s.node.dial(ctx, port)
	case ip != nil && ip.IsLoopback():
		return d.DialContext(ctx, "tcp", addr)
	}
	return nil, fmt.Errorf("no route to %.60q", addr)
}
