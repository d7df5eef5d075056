package e2e

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
)

// A balancer is what stands before kube-apiservers where MVP does not: it hands
// connections round, as HAProxy does in mode tcp, to those whose /readyz says that
// they are ready, and asks each once a second. A connection that a server refuses goes
// to the next. It looks at no byte of what passes.
type balancer struct {
	url     string
	servers []*balanced
	next    atomic.Int64
}

type balanced struct {
	name, address string
	up            atomic.Bool
}

const (
	checkInterval = time.Second
	checkTimeout  = time.Second
)

// balance starts a balancer, which ends with the test.
func (l *lab) balance(t *testing.T) *balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{url: "https://" + listener.Addr().String()}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		running.Wait()
	})
	client, err := l.HTTPClient(controlplane.Discovery)
	if err != nil {
		t.Fatal(err)
	}
	client.Timeout = checkTimeout
	for _, name := range l.Names() {
		s := &balanced{name: name, address: strings.TrimPrefix(l.URL(name), "https://")}
		s.up.Store(true)
		b.servers = append(b.servers, s)
		running.Go(func() { s.check(ctx, client) })
	}
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { b.pass(ctx, conn) })
		}
	})
	return b
}

func (s *balanced) check(ctx context.Context, client *http.Client) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.up.Store(ready(ctx, client, "https://"+s.address+"/readyz"))
		}
	}
}

func ready(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection is used again
	return resp.StatusCode == http.StatusOK
}

// pass passes one connection until either side ends it.
func (b *balancer) pass(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := b.dial(ctx)
	if err != nil {
		return
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = client.Close()
		_ = server.Close()
	})
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { copyHalf(server, client) })
	both.Go(func() { copyHalf(client, server) })
	both.Wait()
}

// copyHalf copies one direction and ends both, if it ends by an error.
func copyHalf(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if err != nil {
		_ = to.Close()
		_ = from.Close()
		return
	}
	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
}

// dial connects to the next server that is up.
func (b *balancer) dial(ctx context.Context) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	for range b.servers {
		s := b.servers[int(b.next.Add(1))%len(b.servers)]
		if !s.up.Load() {
			continue
		}
		if conn, err := dialer.DialContext(ctx, "tcp", s.address); err == nil {
			return conn, nil
		}
	}
	return nil, errors.New("no server is up")
}
