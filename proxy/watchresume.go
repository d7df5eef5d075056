package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// DefaultResumeTime is long enough for the one server of a kind to restart, and
// short against what an informer may be behind.
const DefaultResumeTime = 20 * time.Second

const (
	// resumeHeadTime is how long a server may take until the head of its answer to a
	// watch that goes on; kube-apiserver sends it before anything happens.
	resumeHeadTime = 5 * time.Second

	// The pauses between two rounds through the servers double from the first to the
	// longest. Each is up to a half shorter or longer, so that watches that were lost
	// together do not come back together.
	firstResumePause   = 100 * time.Millisecond
	longestResumePause = time.Second

	// settledTime is how long an answer must have lasted for its end to be a new
	// matter, also if nothing happened in it.
	settledTime = time.Second
)

// resumption is what a watch remembers of going on.
type resumption struct {
	count int       // answers after the first
	from  uint64    // where the present answer began, if it is not the first
	began time.Time // when
	left  string    // the server whose answer ended last

	setback
}

// setback is what went wrong since the last event.
type setback struct {
	deadline time.Time         // when the watch is given up; zero: nothing is wrong
	pause    time.Duration     // before the next round
	ended    []*upstream.State // servers whose answers ended: they are asked last
	gone     []goneServer
	unfit    []*upstream.State // servers that will not have the watch
	proofs   int               // that were tried

	verdict []byte // the ERROR event of the first answer, if that was all it said
}

// goneServer is a server whose history does not reach back to the position.
type goneServer struct {
	server *upstream.State
	oldest uint64 // to where it does; 0: not known
}

// progress says that the watch goes on as it should.
func (r *resumption) progress() {
	if !r.deadline.IsZero() {
		r.setback = setback{}
	}
}

// result is what became of a watch that lost its server, as metrics and the log say
// it.
type result string

const (
	resultResumed     result = "resumed"     // it goes on
	resultProved      result = "proved"      // so it does, after a proof that nothing had happened
	resultUncertain   result = "uncertain"   // ended: it is not certain what comes next
	resultExpired     result = "expired"     // ended: no server's history reaches back
	resultRefused     result = "refused"     // ended: no server, or no policy, will have it any more
	resultUnavailable result = "unavailable" // ended: no server in time
	resultAbandoned   result = "abandoned"   // the client has left, or its time is over
)

var errTurnedAway = errors.New("the server answered with an ERROR event at once")

// turnsAway reports whether an ERROR event that an answer begins with is for MVP to
// deal with: of an answer that was to go on, any is; of the first one, that the
// position is too old for this server, which may be news to another.
func (w *watch) turnsAway(raw []byte) bool {
	r := &w.resume
	status := statusOf(w.cutter.body(raw), w.cutter.form)
	oldest, tooOld := gone(status)
	if r.count == 0 {
		if !tooOld || w.pos.certain() == 0 {
			return false
		}
		r.verdict = slices.Clone(raw)
	}
	w.turnedAway(int(status.Code), oldest, tooOld)
	w.err = errTurnedAway
	return true
}

// turnedAway notes that the present server will not have the watch, and reports
// whether it may later.
func (w *watch) turnedAway(code int, oldest uint64, tooOld bool) (later bool) {
	r, server := &w.resume, w.x.server
	switch {
	case tooOld:
		r.gone = append(r.gone, goneServer{server, oldest})
	case code == http.StatusTooManyRequests || code >= 500:
		return true
	default:
		r.unfit = append(r.unfit, server)
	}
	return false
}

// goElsewhere opens the watch anew where it is certain how it goes on: on another
// server, or on the same when that is back.
func (w *watch) goElsewhere() result {
	x, r := w.x, &w.resume
	_ = x.answer.Body.Close()
	r.left = x.server.Name
	if w.pos.certain() == 0 {
		return resultUncertain
	}
	if !errors.Is(w.err, errTurnedAway) && time.Since(r.began) >= settledTime {
		r.progress()
	}
	again := !r.deadline.IsZero() && len(r.gone) == 0
	if r.deadline.IsZero() {
		r.deadline = time.Now().Add(x.s.cfg.ResumeTime)
	}
	r.ended = slices.DeleteFunc(r.ended, func(s *upstream.State) bool { return sameServer(s, x.server) })
	r.ended = append(r.ended, x.server)
	for {
		if again && !w.wait() {
			return w.gaveUp()
		}
		if result, done := w.round(); done {
			return result
		}
		again = true
	}
}

// wait lets some time pass between two rounds. It returns false when there is none
// left.
func (w *watch) wait() bool {
	r := &w.resume
	r.pause = min(max(2*r.pause, firstResumePause), longestResumePause)
	pause := r.pause/2 + rand.N(r.pause)
	if time.Now().Add(pause).After(r.deadline) || w.overdue() {
		return false
	}
	select {
	case <-time.After(pause):
		return true
	case <-w.x.ctx.Done():
		return false
	}
}

func (w *watch) gaveUp() result {
	if w.x.ctx.Err() != nil || w.overdue() {
		return resultAbandoned
	}
	return resultUnavailable
}

// attempt is how it went to ask one server.
type attempt int

const (
	opened     attempt = iota
	noneLeft           // there is no server left to ask
	busy               // it may have the watch later
	turnedDown         // it will not
	denied             // the request may not be made any more
	abandoned          // nobody waits for it
)

// round asks the servers in the order in which they would be chosen, and then those
// whose answers ended, the last one last. done is false if another round may have more luck.
func (w *watch) round() (_ result, done bool) {
	x, later := w.x, false
	x.st = x.s.state.Load()
	var tried []*upstream.State
	for spared := w.resume.ended; ; {
		x.failed = slices.Concat(w.unwilling(), tried, spared)
		switch w.ask(w.pos.certain()) {
		case opened:
			return resultResumed, true
		case noneLeft:
			if len(spared) == 0 {
				return w.nobody(later)
			}
			spared = spared[1:]
		case busy:
			later = true
			tried = append(tried, x.server)
		case denied:
			return resultRefused, true
		case abandoned:
			return resultAbandoned, true
		case turnedDown: // and unwilling from now on
		}
	}
}

// nobody is the end of a round in which no server took the watch.
func (w *watch) nobody(later bool) (_ result, done bool) {
	r := &w.resume
	switch {
	case len(r.gone) > 0:
		return w.prove(), true
	case len(r.unfit) > 0 && !later:
		return resultRefused, true
	}
	return resultUnavailable, false
}

func sameServer(a, b *upstream.State) bool { return a.Name == b.Name }

// unwilling are the servers that need not be asked again.
func (w *watch) unwilling() []*upstream.State {
	servers := slices.Clone(w.resume.unfit)
	for _, g := range w.resume.gone {
		servers = append(servers, g.server)
	}
	return servers
}

// ask takes the request through its steps again, as the client's of this moment, and
// opens the watch after the resourceVersion from.
func (w *watch) ask(from uint64) attempt {
	if a := w.choose(); a != opened {
		return a
	}
	return w.open(from)
}

// choose decides who is asked, and by which conversion.
func (w *watch) choose() attempt {
	x := w.x
	for _, step := range []func() error{x.authenticate, x.identify, x.decide} {
		if err := step(); err != nil {
			if x.ctx.Err() != nil {
				return abandoned
			}
			x.err = err // for the log
			return denied
		}
	}
	if x.choose() != nil {
		return noneLeft
	}
	return opened
}

// open asks the chosen server.
func (w *watch) open(from uint64) attempt {
	x := w.x
	leave, ok := x.s.watches.enter(x.ctx, x.server.Name)
	if !ok {
		return abandoned
	}
	err := w.send(from)
	leave()
	var status *statusError
	var refusal *refusedError
	switch {
	case x.ctx.Err() != nil:
		return abandoned
	case errors.As(err, &refusal):
		return w.judge(refusal.answer)
	case errors.As(err, &status): // it cannot be asked in this server's version
		w.turnedAway(status.code, 0, false)
		return turnedDown
	case err != nil:
		return busy
	case w.follows(x.answer) && w.clientType() == w.contentType:
		w.resume.count++
		x.failed = nil
		w.begin()
		return opened
	}
	return w.judge(x.answer)
}

// judge finds out from an answer that is no watch whether there may be one later.
func (w *watch) judge(answer *upstream.Response) attempt {
	defer func() { _ = answer.Body.Close() }()
	status := metav1.Status{Code: int32(answer.Status)}
	if answer.Status == http.StatusGone {
		late := time.AfterFunc(resumeHeadTime, func() { _ = answer.Body.Close() })
		defer late.Stop()
		if raw, err := io.ReadAll(io.LimitReader(answer.Body, maxStatusBody)); err == nil {
			_ = json.Unmarshal(raw, &status) // what it does not say is not known
		}
	}
	oldest, tooOld := gone(&status)
	if w.turnedAway(answer.Status, oldest, tooOld) {
		return busy
	}
	return turnedDown
}

// maxStatusBody is how much of a refusal is read, in bytes.
const maxStatusBody = 64 << 10

var errNoHead = errors.New("the server did not answer in time")

// send sends the request, and waits for the head of the answer.
func (w *watch) send(from uint64) error {
	x := w.x
	parent := x.ctx
	ctx, cancel := context.WithCancelCause(parent)
	late := time.AfterFunc(resumeHeadTime, func() { cancel(errNoHead) })
	w.resume.from, x.ctx = from, ctx
	err := x.sendWatch()
	x.ctx = parent
	if !late.Stop() && err == nil {
		_ = x.answer.Body.Close()
		err = errNoHead
	}
	if err != nil {
		cancel(nil)
		return err
	}
	end := x.endTrip
	x.endTrip = func() {
		if end != nil {
			end()
		}
		cancel(nil)
	}
	return nil
}

// sendWatch forwards the request of a watch, converted where it must be.
func (x *exchange) sendWatch() error {
	if x.conv == nil {
		return x.forward(x.outbound(x.in.Target, nil, 0))
	}
	target, err := x.convertedHead()
	if err != nil {
		return err
	}
	return x.forward(x.outbound(target, nil, 0))
}

// readyTime is how long a server may take to say that it is as well as before.
const readyTime = time.Second

// ready asks the server whether it is, and not about to shut down.
func (w *watch) ready() bool {
	ctx, cancel := context.WithTimeout(w.x.ctx, readyTime)
	defer cancel()
	answer, err := w.x.server.Server.Get(ctx, "/readyz", nil, maxStatusBody)
	return err == nil && answer.Status == http.StatusOK
}
