package upstream

import (
	"bufio"
	"errors"
	"io"
	"os"
	"time"
)

// Fill reads from the Body until b is full, the body has ended (io.EOF), or the given
// time has passed: n then is what has come so far and err nil. The wait is for what
// follows the first bytes; for those it waits as Read does, so that n is 0 only with
// an error.
//
// An answer that is short is read whole in this way before anything is made of it,
// and one that its server writes slowly is not held up.
func (r *Response) Fill(b []byte, within time.Duration) (n int, err error) {
	x, ok := r.Body.(*exchange)
	if !ok || x.upload != nil || x.state.Load() != exchangeOpen { // an upload has the deadlines
		return r.Body.Read(b)
	}
	if n, err = r.Body.Read(b); err != nil || n == len(b) || x.payload.complete() {
		return n, err
	}
	m, err := x.fill(b[n:], within)
	return n + m, err
}

func (x *exchange) fill(b []byte, within time.Duration) (int, error) {
	if err := x.c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return 0, nil //nolint:nilerr // of a connection that is closed: the next Read says why
	}
	broken := x.c.broken
	n, err := x.payload.fill(b)
	_ = x.c.SetReadDeadline(time.Time{})
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		x.settle(exchangeFinished)
	case errors.Is(err, os.ErrDeadlineExceeded) && x.ctx.Err() == nil:
		x.c.broken = broken // it only paused
		return n, nil
	case x.settle(exchangeFailed):
		return n, x.fail(OpReadBody, err)
	}
	return n, x.ended()
}

// fill reads until b is full or the body ends. A read that times out loses nothing:
// a line of the chunked coding is taken only when all of it is there.
func (p *payload) fill(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		switch {
		case p.framing == framingChunked && p.state == chunksDone:
			err = io.EOF
		case p.framing == framingChunked && p.state != chunkData:
			if err = p.awaitLine(); err == nil {
				err = p.stepChunk()
			}
		case p.framing == framingChunked:
			var m int
			m, err = p.readSome(b[n:])
			n += m
			if p.left == 0 {
				p.state = chunkEnd
			}
		default:
			var m int
			m, err = p.Read(b[n:])
			n += m
		}
	}
	return n, err
}

// awaitLine waits until the next line of the coding has arrived, or is too long.
func (p *payload) awaitLine() error {
	for !p.stepArrived() {
		_, err := p.r.Peek(p.r.Buffered() + 1)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return nil
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
	return nil
}

// complete reports whether nothing of the body is left to wait for.
func (p *payload) complete() bool {
	return p.framing == framingNone || p.framing == framingLength && p.left == 0
}
