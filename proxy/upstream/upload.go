package upstream

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

const (
	// uploadPieceBytes is how much of a request's body is held in memory.
	uploadPieceBytes = 32 << 10

	// chunkPrefixBytes is room for the size line of a chunk that large.
	chunkPrefixBytes = len("8000\r\n")

	// maxEmptyReads is how often a body may return nothing before it is broken.
	maxEmptyReads = 100

	// answerGrace is how long we go on reading the answer of a server that will not
	// get the rest of the request. What is not here by then will hardly come.
	answerGrace = 2 * time.Second
)

var uploadPieces = sync.Pool{New: func() any { return new([chunkPrefixBytes + uploadPieceBytes + len("\r\n")]byte) }}

// upload sends a request's body in a goroutine of its own, so that an answer that
// comes before the end of the body is seen. All methods work on nil: no upload.
type upload struct {
	c       *conn
	body    io.Reader
	length  int64 // -1: chunked
	timeout time.Duration
	done    chan struct{} // closed when body is no longer used

	mu   sync.Mutex
	op   string // of err
	err  error
	head bool // the head of the answer has been read
}

// startUpload takes over the deadlines of c: each write gets timeout, and the answer's
// head gets it from the end of the body on.
func startUpload(c *conn, req *Request, timeout time.Duration) *upload {
	_ = c.SetReadDeadline(time.Time{})
	u := &upload{c: c, body: req.Body, length: req.ContentLength, timeout: timeout, done: make(chan struct{})}
	go u.run()
	return u
}

func (u *upload) run() {
	defer close(u.done)
	op, err := u.copy()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.op, u.err = op, err
	switch {
	case op == OpRequestBody && !u.head: // there is nothing to wait for
		_ = u.c.Close()
	case op != "":
		_ = u.c.SetReadDeadline(time.Now().Add(answerGrace))
	case !u.head:
		_ = u.c.SetReadDeadline(time.Now().Add(u.timeout))
	}
}

// copy sends the body. On failure op says on which side. A panic of the caller's
// reader is an error here, because this goroutine has no caller to recover it.
func (u *upload) copy() (op string, err error) {
	defer func() {
		if p := recover(); p != nil {
			op, err = OpRequestBody, fmt.Errorf("the reader panicked: %v", p)
		}
	}()
	piece := uploadPieces.Get().(*[chunkPrefixBytes + uploadPieceBytes + len("\r\n")]byte)
	defer uploadPieces.Put(piece)
	data := piece[chunkPrefixBytes : chunkPrefixBytes+uploadPieceBytes]
	for left := u.length; left != 0; {
		if left > 0 && left < int64(len(data)) {
			data = data[:left]
		}
		n, err := u.read(data)
		if n > 0 {
			if err := u.write(frameChunk(piece[:], n, u.length < 0)); err != nil {
				return OpWrite, err
			}
		}
		if left > 0 {
			left -= int64(n)
		}
		switch {
		case err == nil || left == 0:
		case !errors.Is(err, io.EOF):
			return OpRequestBody, err
		case left > 0:
			return OpRequestBody, io.ErrUnexpectedEOF
		default:
			return u.lastChunk()
		}
	}
	return "", nil
}

func (u *upload) lastChunk() (op string, err error) {
	if err := u.write([]byte("0\r\n\r\n")); err != nil {
		return OpWrite, err
	}
	return "", nil
}

// read reads at least a byte or returns an error.
func (u *upload) read(b []byte) (int, error) {
	for range maxEmptyReads {
		if n, err := u.body.Read(b); n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

func (u *upload) write(b []byte) error {
	_ = u.c.SetWriteDeadline(time.Now().Add(u.timeout))
	_, err := u.c.Write(b)
	return err
}

// frameChunk returns the n bytes of data in piece, as one chunk if chunked.
func frameChunk(piece []byte, n int, chunked bool) []byte {
	end := chunkPrefixBytes + n
	if !chunked {
		return piece[chunkPrefixBytes:end]
	}
	var sizeLine [chunkPrefixBytes]byte
	size := append(strconv.AppendInt(sizeLine[:0], int64(n), 16), "\r\n"...)
	start := chunkPrefixBytes - len(size)
	copy(piece[start:], size)
	end += copy(piece[end:], "\r\n")
	return piece[start:end]
}

// answered says that the head of the answer has been read, so that no deadline is to
// limit the reading any more.
func (u *upload) answered() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.head = true
	_ = u.c.SetReadDeadline(time.Time{})
}

// explain replaces the error of reading the answer by that of sending the body, which
// caused it.
func (u *upload) explain(op string, err error) (string, error) {
	if u == nil {
		return op, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err != nil {
		return u.op, u.err
	}
	return op, err
}

// complete reports whether the whole body was sent.
func (u *upload) complete() bool {
	if u == nil {
		return true
	}
	select {
	case <-u.done:
		return u.err == nil
	default:
		return false
	}
}

// stop waits until the body is no longer used. The connection is settled by then, so
// that only the body's own Read can last.
func (u *upload) stop() {
	if u == nil {
		return
	}
	select {
	case <-u.done:
		return
	default:
	}
	if closer, ok := u.body.(io.Closer); ok {
		_ = closer.Close()
	}
	<-u.done
}
