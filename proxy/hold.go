package proxy

import (
	"errors"
	"io"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/front"
)

// holdAnswerTime is how long the beginning of an answer may wait for the rest: a server
// that is killed cuts what it writes at once, and a slow one is not held up so that
// anyone would see it.
const holdAnswerTime = 50 * time.Millisecond

// heldAnswer is the beginning of an answer, before any of it went to the client.
type heldAnswer struct {
	buf   *[copyBuffer]byte // nil: nothing is held
	n     int
	whole bool
}

// hold reads the beginning of the answer to a request that only reads, so that one
// that breaks off there can be read from another server instead: a short one whole.
// Watches are never held.
func (x *exchange) hold() error {
	if !x.reads() || x.endless() || x.answer.ContentLength == 0 {
		return nil
	}
	buf := copyBuffers.Get().(*[copyBuffer]byte)
	n, err := x.answer.Fill(buf[:], holdAnswerTime)
	if err != nil && !errors.Is(err, io.EOF) {
		copyBuffers.Put(buf)
		return err
	}
	x.held = heldAnswer{buf: buf, n: n, whole: err != nil}
	return nil
}

// passHeld hands the answer on as it came, the beginning that is held first.
func (x *exchange) passHeld() (*front.Response, error) {
	if err := x.hold(); err != nil {
		return nil, err
	}
	x.sampleAnswer()
	resp := x.pass()
	if x.held.buf != nil && !resp.NoBody {
		resp.Stream = x.copyHeld
	}
	return resp, nil
}

func (x *exchange) copyHeld(w io.Writer) error {
	if x.held.n > 0 {
		if _, err := w.Write(x.held.buf[:x.held.n]); err != nil {
			return err
		}
	}
	if x.held.whole {
		return nil
	}
	return x.copyBody(w)
}

// release gives the buffer back.
func (h *heldAnswer) release() {
	if h.buf != nil {
		copyBuffers.Put(h.buf)
		*h = heldAnswer{}
	}
}
