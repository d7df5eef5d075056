package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// maxOwnAnswerBytes bounds one answer to a request of MVP's own that is no watch.
const maxOwnAnswerBytes = 64 << 20

var errNoServer = errors.New("no kube-apiserver is healthy")

// Cluster is an http.RoundTripper for what is in the cluster, whichever of its servers
// is asked. Requests are MVP's own, with its own credential, over connections of their
// own and under the trust of all others: never give it a request of a client's. They go
// to one server for as long as that is healthy and answers, then to another one. It is
// safe for concurrent use.
type Cluster struct {
	pool *Pool

	mu      sync.Mutex
	server  *Server // that is asked; nil: none yet
	avoid   *Server // that failed last
	watches map[*clusterWatch]struct{}
}

// Cluster returns a new one. The pool must be running for it to reach anything.
func (p *Pool) Cluster() *Cluster {
	return &Cluster{pool: p, watches: map[*clusterWatch]struct{}{}}
}

// RoundTrip implements http.RoundTripper.
func (c *Cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	server, err := c.choose()
	if err != nil {
		closeBody(r)
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	watch := isWatch(r)
	resp, err := server.RoundTrip(ctx, ownRequest(r, watch))
	if err != nil {
		cancel()
		c.failed(server)
		return nil, err
	}
	out := httpResponse(r, resp)
	w := &clusterWatch{ReadCloser: out.Body, cluster: c, server: server, cancel: cancel}
	out.Body = w
	if watch {
		c.mu.Lock()
		c.watches[w] = struct{}{}
		c.mu.Unlock()
		c.Recheck() // it may have become unhealthy meanwhile
	} else {
		out.Body = http.MaxBytesReader(nil, w, maxOwnAnswerBytes)
	}
	return out, nil
}

// choose returns the server to ask.
func (c *Cluster) choose() (*Server, error) {
	usable := c.pool.View().Usable(nil)
	if len(usable) == 0 {
		return nil, errNoServer
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	chosen := usable[0].Server
	for _, s := range usable {
		if s.Server == c.server {
			return c.server, nil
		}
		if chosen == c.avoid {
			chosen = s.Server
		}
	}
	c.server = chosen
	return chosen, nil
}

// failed has the next request go to another server, if there is one.
func (c *Cluster) failed(server *Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == server {
		c.server, c.avoid = nil, server
	}
}

// Recheck ends the watches of servers that are not healthy any more, which may hang and
// never tell. Call it when the pool's view has changed.
func (c *Cluster) Recheck() {
	usable := map[*Server]bool{}
	for _, s := range c.pool.View().Usable(nil) {
		usable[s.Server] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watches {
		if !usable[w.server] {
			w.cancel()
		}
	}
}

// clusterWatch is the body of an answer, whose request ends when it is closed.
type clusterWatch struct {
	io.ReadCloser
	cluster *Cluster
	server  *Server
	cancel  context.CancelFunc
}

// Close implements io.Closer.
func (w *clusterWatch) Close() error {
	w.cancel()
	w.cluster.mu.Lock()
	delete(w.cluster.watches, w)
	w.cluster.mu.Unlock()
	return w.ReadCloser.Close()
}
