package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// watch is one client's watch, over as many servers as it takes: when the answer of
// one ends, it goes on with that of another, where it is certain what comes next.
//
// It passes whole events only, so that a server can be lost at any byte. It is read
// by the goroutine that serves the request.
type watch struct {
	x       *exchange
	options watchOptions
	pos     position

	body        io.Reader // of the answer
	contentType string    // of what the client gets
	cutter      cutter
	fresh       bool  // no event of this answer has been seen
	ended       bool  // an ERROR event has: there will be nothing more
	unended     bool  // the last event is in JSON and its newline has not come
	dropped     bool  // the last event was not for the client
	err         error // what ended the answer

	buf  []byte // what was read, from its first byte that has not been passed on
	out  int    // how much of buf was handed out last
	full bool   // the last read left no room
	raw  bool   // the answer is not understood, and passes as it comes

	conv    *engine.Conversion // which the answer needs
	pending []byte             // what Read has still to give
	turned  bool               // Read ended because the next answer needs another conversion

	resume resumption
}

// newWatch follows the watch that x asks for; nil if it is not to be.
func newWatch(x *exchange) *watch {
	if x.s.cfg.PassWatches || x.in.Method != http.MethodGet || x.in.ContentLength != 0 || x.req.Subresource != "" || x.upgrade() {
		return nil
	}
	options, ok := parseWatchOptions(x.req.Query, x.in.Header.Values("Accept"))
	if !ok {
		return nil
	}
	return &watch{x: x, options: options, pos: newPosition(options)}
}

// asks changes a request as it goes to the server, where the watch needs it.
func (w *watch) asks(out *upstream.Request) {
	if w == nil {
		return
	}
	if w.options.initial && w.options.bookmarks && out.Header.Has("Accept-Encoding") {
		// kube-apiserver may compress such a watch, and no event could be seen.
		out.Header.Set("Accept-Encoding", "identity")
	}
	if w.resume.from == 0 { // it has not begun
		out.Target = w.options.first(out.Target)
		return
	}
	out.Target = w.options.resumed(out.Target, w.resume.from, w.left())
}

// left is what is left of the time that the client gave the watch.
func (w *watch) left() time.Duration {
	if w.options.timeout == 0 {
		return 0
	}
	return max(time.Until(w.x.start.Add(w.options.timeout)), time.Second)
}

// follows reports whether the answer is one that w can follow.
func (w *watch) follows(answer *upstream.Response) bool {
	if w == nil || answer.Status != http.StatusOK || answer.ContentLength >= 0 || answer.Header.Has("Content-Encoding") {
		return false
	}
	_, ok := cuttable(answer.Header.Get("Content-Type"))
	return ok
}

// begin makes the answer of x the one that is read.
func (w *watch) begin() {
	answer := w.x.answer
	w.contentType = w.clientType()
	form, _ := cuttable(answer.Header.Get("Content-Type"))
	w.body, w.cutter = answer.Body, cutter{form: form}
	w.fresh, w.dropped, w.err, w.full = true, false, nil, false
	w.buf, w.out = w.buf[:0], 0
	w.resume.began = time.Now()
}

// clientType is the Content-Type in which the client gets the answer of x.
func (w *watch) clientType() string {
	if w.x.conv != nil {
		if contentType := w.x.eventsType(); contentType != "" {
			return contentType
		}
	}
	return w.x.answer.Header.Get("Content-Type")
}

// copy is the Response.Stream of a watch.
func (w *watch) copy(out io.Writer) error {
	w.begin()
	w.conv = w.x.conv
	for {
		w.turned = false
		var err error
		if w.conv == nil {
			err = w.pass(out)
		} else {
			err = w.x.convertWatch(w.x.events(out), w)
		}
		if !w.turned || err != nil {
			return err
		}
	}
}

// pass copies the events as they are.
func (w *watch) pass(out io.Writer) error {
	for {
		events, err := w.next()
		switch {
		case errors.Is(err, errRaw):
			return w.x.copyFrom(out, w.rest())
		case errors.Is(err, errTurned), errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		end := w.x.ending.at(true)
		if _, err := out.Write(events); err != nil || end {
			return err
		}
	}
}

// Read gives the events to a converter.
func (w *watch) Read(p []byte) (int, error) {
	if len(w.pending) == 0 {
		events, err := w.next()
		switch {
		case errors.Is(err, errRaw):
			w.pending, w.out = w.buf, len(w.buf)
			if len(w.pending) == 0 {
				return w.body.Read(p)
			}
		case errors.Is(err, errTurned):
			return 0, io.EOF
		case err != nil:
			return 0, err
		default:
			w.pending = events
		}
	}
	n := copy(p, w.pending)
	w.pending = w.pending[n:]
	return n, nil
}

var (
	errRaw    = errors.New("the answer is not understood")
	errTurned = errors.New("the next answer needs another conversion")
)

// next returns one whole event or more, valid until the next call. The end of the
// watch is io.EOF. After errRaw the rest is to be had from rest, and after errTurned
// comes what w.conv converts.
func (w *watch) next() ([]byte, error) {
	w.drop()
	for {
		if n := w.cut(); n > 0 {
			w.out = n
			return w.buf[:n], nil
		}
		if w.raw {
			return nil, errRaw
		}
		if w.err == nil {
			w.fill()
			continue
		}
		if err := w.goOn(); err != nil {
			return nil, err
		}
		if w.x.conv != w.conv {
			w.conv, w.turned = w.x.conv, true
			return nil, errTurned
		}
	}
}

// The sizes of a watch's buffer, in bytes.
const (
	// idleWatchBuffer is what a watch holds while nothing happens: thousands of
	// watches are idle at any time.
	idleWatchBuffer = 4 << 10

	// largeWatchBuffer is from when on a buffer that an event made grow is given
	// back.
	largeWatchBuffer = 64 << 10
)

// drop forgets what was handed out.
func (w *watch) drop() {
	rest := w.buf[w.out:]
	if cap(w.buf) > largeWatchBuffer && len(rest) <= idleWatchBuffer {
		w.buf = make([]byte, 0, idleWatchBuffer)
	}
	w.buf, w.out = append(w.buf[:0], rest...), 0
}

// fill reads once. What ends the answer is w.err.
func (w *watch) fill() {
	switch {
	case cap(w.buf) == 0:
		w.buf = make([]byte, 0, idleWatchBuffer)
	case len(w.buf) == cap(w.buf), w.full && cap(w.buf) < copyBuffer:
		w.buf = append(make([]byte, 0, 2*cap(w.buf)), w.buf...)
	}
	n, err := w.body.Read(w.buf[len(w.buf):cap(w.buf)])
	w.buf = w.buf[:len(w.buf)+n]
	w.full = len(w.buf) == cap(w.buf)
	w.err = err
}

// cut looks at what has been read and returns how much of its beginning is for the
// client: whole events.
func (w *watch) cut() int {
	end := 0
	for !w.raw {
		n, e, ok := w.cutter.cut(w.buf[end:])
		switch {
		case !ok, n == 0 && len(w.buf)-end > maxHeldEvent:
			w.passAsItComes()
		case n == 0:
			return end
		case w.fresh && e.kind == errorEvent && w.turnsAway(w.buf[end:end+n]):
			w.buf = w.buf[:end]
			return end
		case w.see(e, w.buf[end:end+n]):
			end += n
		default:
			w.buf = append(w.buf[:end], w.buf[end+n:]...)
		}
	}
	return end
}

// see notes an event and reports whether the client gets it.
func (w *watch) see(e event, raw []byte) bool {
	if e.kind == blankEvent {
		w.unended = false
		return !w.dropped
	}
	w.pos.pass(e, func() bool { return endsInitial(w.cutter.body(raw), w.cutter.form) })
	w.resume.progress()
	w.fresh = false
	w.ended = w.ended || e.kind == errorEvent
	w.dropped = e.kind == bookmarkEvent && !w.options.bookmarks
	w.unended = !w.dropped && w.cutter.form == formJSON && raw[len(raw)-1] != '\n'
	return !w.dropped
}

// passAsItComes gives up on following the answer.
func (w *watch) passAsItComes() {
	w.raw = true
	w.x.s.streams.on(w.x, placed{server: w.x.server.Name})
}

// rest is what is left of an answer that passes as it comes.
func (w *watch) rest() io.Reader {
	return io.MultiReader(bytes.NewReader(w.buf), w.body)
}

// goOn is called when the answer has ended. It returns nil when the watch goes on,
// with another answer or with what is to be passed before the end, and io.EOF at
// the end: a client that has whole events only comes back and goes on by itself.
func (w *watch) goOn() error {
	x := w.x
	switch {
	case w.unended: // a client may read line by line
		w.buf = append(w.buf[:0], '\n')
		return nil
	case x.ending.ended(), w.ended:
		return io.EOF
	case x.ctx.Err() != nil:
		return fmt.Errorf("cannot read the answer of %s: %w", x.server.Name, w.err)
	case w.timedOut():
		return io.EOF
	}
	result := w.goElsewhere()
	x.s.watches.note(w.resume.left, result)
	switch {
	case result == resultResumed, result == resultProved:
		return nil
	case x.ending.ended():
		return io.EOF
	case w.resume.verdict != nil: // what the first server said is as good as any
		w.buf, w.out = append(w.buf[:0], w.resume.verdict...), 0
		w.resume.verdict, w.fresh, w.err = nil, false, io.EOF
		return nil
	}
	return io.EOF
}

// overdue reports whether the time that the client gave the watch is over.
func (w *watch) overdue() bool {
	return w.options.timeout > 0 && time.Since(w.x.start) >= w.options.timeout
}

// serverTimeout is the shortest time after which kube-apiserver ends a watch that
// has no limit of its own (--min-request-timeout; it takes up to twice as long).
const serverTimeout = 30 * time.Minute

// timedOut reports whether the answer ended because its time was over: the client's,
// or that of a server that is as well as before.
func (w *watch) timedOut() bool {
	if w.options.timeout > 0 {
		return w.overdue()
	}
	return errors.Is(w.err, io.EOF) && time.Since(w.resume.began) >= w.x.s.watches.serverTimeout && w.ready()
}
