package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// end is one side of a tunnel, by script.
type end struct {
	net.Conn // no other method is called

	read  func() ([]byte, error)
	write func([]byte) (int, error)

	mu          sync.Mutex
	got         bytes.Buffer
	closed      chan struct{}
	writeClosed chan struct{}
}

func newEnd() *end {
	e := &end{closed: make(chan struct{}), writeClosed: make(chan struct{})}
	e.write = func(p []byte) (int, error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.got.Write(p)
	}
	return e
}

func (e *end) Read(p []byte) (int, error) {
	data, err := e.read()
	return copy(p, data), err
}

func (e *end) Write(p []byte) (int, error) { return e.write(p) }

func (e *end) Close() error      { return e.once(e.closed) }
func (e *end) CloseWrite() error { return e.once(e.writeClosed) }

func (e *end) SetDeadline(time.Time) error { return nil }

// once closes a channel that may be closed already.
func (e *end) once(c chan struct{}) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
	return nil
}

// waits blocks until c is closed, or until the end is.
func (e *end) waits(c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-e.closed:
		return net.ErrClosed
	}
}

// A server that takes no more input may still have sent an exit code. Without it
// `kubectl exec -i` ends with 0 for a command that failed.
func TestPipeKeepsWhatTheServerSaidLast(t *testing.T) {
	client, server := newEnd(), newEnd()
	discarded := make(chan struct{})
	reads := 0
	client.read = func() ([]byte, error) {
		if reads++; reads == 1 {
			return []byte("input"), nil
		}
		_ = client.once(discarded)
		if err := client.waits(client.writeClosed); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
	server.write = func([]byte) (int, error) { return 0, errors.New("broken pipe") }
	said := false
	server.read = func() ([]byte, error) {
		if said {
			return nil, io.EOF
		}
		said = true
		// Only after the tunnel has seen that the server takes nothing more.
		if err := server.waits(discarded); err != nil {
			return nil, err
		}
		return []byte("exit code 42"), nil
	}
	pipe(client, server)
	if got := client.got.String(); got != "exit code 42" {
		t.Errorf("the client got %q, want the exit code", got)
	}
}

func TestPipeEnds(t *testing.T) {
	t.Run("client has no more to say", func(t *testing.T) {
		client, server := newEnd(), newEnd()
		client.read = func() ([]byte, error) { return nil, io.EOF }
		said := false
		server.read = func() ([]byte, error) {
			if said {
				return nil, io.EOF
			}
			said = true
			if err := server.waits(server.writeClosed); err != nil {
				return nil, err
			}
			return []byte("answer"), nil
		}
		pipe(client, server)
		if got := client.got.String(); got != "answer" {
			t.Errorf("the client got %q, want the answer", got)
		}
	})
	t.Run("client has failed", func(t *testing.T) {
		client, server := newEnd(), newEnd()
		client.read = func() ([]byte, error) { return nil, errors.New("connection reset by peer") }
		server.read = func() ([]byte, error) { return nil, server.waits(nil) } // until it is closed
		pipe(client, server)
	})
	t.Run("server has ended", func(t *testing.T) {
		client, server := newEnd(), newEnd()
		server.read = func() ([]byte, error) { return nil, io.EOF }
		client.read = func() ([]byte, error) {
			if err := client.waits(client.writeClosed); err != nil {
				return nil, err
			}
			return nil, io.EOF
		}
		pipe(client, server)
	})
}
