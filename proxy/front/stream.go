package front

import (
	"fmt"
	"runtime/debug"
	"strconv"
)

// bodyWriter writes an answer: first its head, then the body in its framing. It
// is the io.Writer of Response.Stream.
type bodyWriter struct {
	conn    *conn
	held    *[]byte // a buffer with the head, until the first byte of the body
	framing framing
	left    int64 // of a fixed length
	written int64
	err     error // the first one; every later Write fails with it
}

// begin takes the head. One of a known length waits for the first Write; the
// client can make nothing of it before.
func (w *bodyWriter) begin(resp *Response, f framing, length int64, closing bool) {
	w.framing, w.left = f, length
	w.held = buffers.Get().(*[]byte)
	*w.held = appendHead(*w.held, resp, f, length, closing)
	if f == chunked {
		w.flush()
	}
}

// flush sends what is held.
func (w *bodyWriter) flush() {
	if w.held == nil {
		return
	}
	if w.err == nil {
		w.err = w.conn.send(*w.held)
	}
	putBuffer(w.held)
	w.held = nil
}

// Write sends p at once.
func (w *bodyWriter) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.framing == fixedLength && int64(len(p)) > w.left {
		w.fail(&lengthError{wrote: w.written + int64(len(p)), want: w.written + w.left})
		return 0, w.err
	}
	if w.framing == fixedLength && int64(len(p)) == w.left {
		w.last()
	}
	n := 0
	for n < len(p) && w.err == nil {
		sent := w.piece(p[n:])
		if w.err != nil {
			break
		}
		n += sent
		w.written += int64(sent)
		w.left -= int64(sent)
	}
	return n, w.err
}

// piece sends as much of p as goes into one buffer, with the head if it still
// waits, and returns how much that was. What follows a full buffer of a fixed
// length needs none.
func (w *bodyWriter) piece(p []byte) int {
	if w.held == nil {
		if w.framing == fixedLength {
			w.err = w.conn.send(p)
			return len(p)
		}
		w.held = buffers.Get().(*[]byte)
	}
	buf := *w.held
	n := len(p)
	if w.framing == chunked {
		n = min(n, cap(buf)-len(buf)-maxChunkFrame)
		buf = strconv.AppendInt(buf, int64(n), 16)
		buf = append(buf, '\r', '\n')
		buf = append(buf, p[:n]...)
		buf = append(buf, '\r', '\n')
	} else {
		n = min(n, cap(buf)-len(buf))
		buf = append(buf, p[:n]...)
	}
	*w.held = buf
	w.flush()
	return n
}

// last is called before the bytes are sent that complete the answer: a client
// that leaves because it has all of it does not count as gone.
func (w *bodyWriter) last() { w.conn.end() }

// finish ends the message, or reports why it cannot be.
func (w *bodyWriter) finish() error {
	if w.framing != fixedLength || w.left == 0 {
		w.last()
	}
	w.flush()
	switch {
	case w.err != nil:
	case w.framing == chunked:
		w.err = w.conn.send([]byte("0\r\n\r\n"))
	case w.framing == fixedLength && w.left > 0:
		w.fail(&lengthError{wrote: w.written, want: w.written + w.left})
	}
	return w.err
}

func (w *bodyWriter) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// run lets the stream write. Its error or panic is the writer's.
func (w *bodyWriter) run(resp *Response) {
	defer func() {
		if p := recover(); p != nil {
			w.conn.server.logPanic("the stream of an answer", p)
			w.flush()
			w.fail(fmt.Errorf("the stream panicked: %v", p))
		}
	}()
	if err := resp.Stream(w); err != nil {
		w.flush() // what the client was promised, so that it sees it cut short
		w.fail(err)
	}
}

func (s *Server) logPanic(what string, p any) {
	s.cfg.Log.Error("panic in "+what, "panic", p, "stack", string(debug.Stack()))
}
