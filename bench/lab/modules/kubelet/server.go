package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

const (
	// idleTimeout is how long a stream may be silent, as in a kubelet.
	idleTimeout = 4 * time.Hour

	// creationTimeout is how long a SPDY client has to open its streams, as in a
	// kubelet.
	creationTimeout = 30 * time.Second

	// commandParam is the query parameter of a word of the command.
	commandParam = "command"

	// headTimeout is how long a client has for the head of a request.
	headTimeout = 10 * time.Second
)

// A server is the API of the node. Paths, parameters and errors are those of a
// kubelet.
type server struct {
	node          *node
	nodeIP, podIP string // known to CONNECT only
	listens       string // host:port
	port          int    // of listens
}

// serve serves until ctx is done; then it closes everything.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: headTimeout}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.logs)
	for _, method := range []string{"GET", "POST"} { // WebSocket, SPDY
		mux.HandleFunc(method+" /exec/{namespace}/{pod}/{container}", s.exec)
		mux.HandleFunc(method+" /attach/{namespace}/{pod}/{container}", s.attach)
		mux.HandleFunc(method+" /portForward/{namespace}/{pod}", s.portForward)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect { // its target is no path
			s.connect(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// container finds the container that a request is about, or answers 404.
func (s *server) container(w http.ResponseWriter, r *http.Request) *container {
	id := containerID{r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")}
	c := s.node.containers[id]
	switch {
	case c != nil:
	case !s.node.hasPod(id.namespace, id.pod):
		http.Error(w, fmt.Sprintf("pod %q does not exist", id.pod), http.StatusNotFound)
	default:
		http.Error(w, fmt.Sprintf("container %q not found in pod %q", id.name, id.pod), http.StatusNotFound)
	}
	return c
}

func (s *server) exec(w http.ResponseWriter, r *http.Request) {
	opts, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	args := r.URL.Query()[commandParam]
	if len(args) == 0 {
		http.Error(w, "no command", http.StatusBadRequest)
		return
	}
	c := s.container(w, r)
	if c == nil {
		return
	}
	remotecommand.ServeExec(w, r, executor{c, opts}, "", "", "", args, opts, idleTimeout, creationTimeout, remotecommand.SupportedStreamingProtocols)
}

func (s *server) attach(w http.ResponseWriter, r *http.Request) {
	opts, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c := s.container(w, r)
	if c == nil {
		return
	}
	remotecommand.ServeAttach(w, r, executor{c, opts}, "", "", "", opts, idleTimeout, creationTimeout, remotecommand.SupportedStreamingProtocols)
}

func (s *server) portForward(w http.ResponseWriter, r *http.Request) {
	opts, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if pod := r.PathValue("pod"); !s.node.hasPod(r.PathValue("namespace"), pod) {
		http.Error(w, fmt.Sprintf("pod %q does not exist", pod), http.StatusNotFound)
		return
	}
	portforward.ServePortForward(w, r, s.node, "", "", opts, idleTimeout, creationTimeout, portforward.SupportedProtocols)
}
