package front

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// body is a request body for the handler. fasthttp's stream below it reads from
// the connection, and returns to a pool when the exchange is over; the fence
// keeps a late reader, say a goroutine that still sends the body to a server
// which has answered already, away from both.
type body struct {
	conn *conn

	mu     sync.Mutex // held during a Read
	source io.Reader  // nil: no body
	left   int64      // bytes still to come; -1: chunked
	ended  bool       // read to the end
	failed error

	closing atomic.Bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ended:
		return 0, io.EOF
	case b.failed != nil:
		return 0, b.failed
	case len(p) == 0:
		return 0, nil
	}
	if err := b.conn.Conn.SetReadDeadline(time.Now().Add(b.conn.server.cfg.BodyTimeout)); err != nil {
		return 0, b.fail(err)
	}
	if b.closing.Load() { // after the deadline: close sets it last
		return 0, b.fail(errExchangeOver)
	}
	n, err := b.source.Read(p)
	if b.left > 0 {
		b.left -= int64(n)
	}
	switch {
	case b.left == 0 || errors.Is(err, io.EOF) && b.left < 0:
		b.ended = true
		b.conn.bodyEnded()
		if n == 0 {
			return 0, io.EOF
		}
		return n, nil
	case errors.Is(err, io.EOF): // fasthttp does not tell a body that was cut short
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		err = b.fail(err)
	}
	return n, err
}

func (b *body) fail(err error) error {
	switch {
	case b.closing.Load():
		b.failed = errExchangeOver
	case isTimeout(err), errors.Is(err, fasthttp.ErrTimeout): // of the trailers
		b.failed = &BodyError{Code: http.StatusRequestTimeout, Err: errors.New("the client sent nothing for too long")}
	case errors.Is(err, io.ErrUnexpectedEOF), isNetwork(err):
		b.failed = &BodyError{Code: http.StatusBadRequest, Err: err}
	default: // fasthttp's words quote what the client sent
		b.failed = &BodyError{Code: http.StatusBadRequest, Err: errors.New("its chunks or trailers are malformed")}
	}
	return b.failed
}

// isNetwork reports whether the connection, and not what came over it, failed.
func isNetwork(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) || errors.Is(err, net.ErrClosed)
}

// reusable reports whether the connection can carry a next request after an
// answer given now: the body has been read, or what is left is little.
func (b *body) reusable() bool {
	if !b.mu.TryLock() {
		return false // being read
	}
	defer b.mu.Unlock()
	return b.ended || b.failed == nil && b.left >= 0 && b.left <= maxDrainBytes
}

// close breaks off a Read and fails later ones. It reports whether the body had
// been read to its end.
func (b *body) close() bool {
	b.closing.Store(true)
	if !b.mu.TryLock() {
		_ = b.conn.Conn.SetReadDeadline(time.Unix(1, 0))
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	if !b.ended && b.failed == nil {
		b.failed = errExchangeOver
	}
	return b.ended
}

// firstRead is what ReadBody allocates before it has seen a byte, whatever
// length the client announced.
const firstRead = 32 << 10

// readAll is Request.ReadBody.
func readAll(r io.Reader, length, limit int64) ([]byte, error) {
	if length > limit {
		return nil, &BodyTooLargeError{Limit: limit}
	}
	if r == http.NoBody {
		return nil, nil
	}
	size := int64(firstRead)
	if length > 0 {
		size = min(size, length+1) // one more, to meet the end without growing
	}
	buf := make([]byte, 0, size)
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return nil, &BodyTooLargeError{Limit: limit}
		}
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
	}
}
