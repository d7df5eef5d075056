package front

import (
	"net"
	"sync"
	"time"
)

// guardian notices that a client leaves while its request is being answered:
// nobody reads from the connection then, so a background read of one byte does.
// A byte that comes (the next request, sent early) is kept for the next reader.
type guardian struct {
	mu      sync.Mutex
	idle    sync.Cond // on mu: pending became false
	source  net.Conn
	onPanic func(what string, p any)

	pending bool    // the background read runs
	one     [1]byte // what it read
	has     bool    // one is to be delivered
	failed  error   // how it ended; for good

	exchange bool        // a request is being answered
	bodyRead bool        // its body has been read to the end
	due      bool        // the delay of gone is over
	gone     func()      // what to call
	timer    *time.Timer // of the delay; used again and again

	calling sync.Mutex // held while gone runs, for the end of the exchange to wait
}

func (g *guardian) init(source net.Conn, onPanic func(string, any)) {
	g.source, g.onPanic = source, onPanic
	g.idle.L = &g.mu
}

// read is the connection's Read beside a background read: it waits for one that
// runs, which takes what it would have taken.
func (g *guardian) read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	g.mu.Lock()
	for g.pending {
		g.idle.Wait()
	}
	if g.has {
		g.has = false
		p[0] = g.one[0]
		g.mu.Unlock()
		return 1, nil
	}
	err := g.failed
	g.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return g.source.Read(p)
}

// start opens an exchange. hasBody: the watch must not begin before the body has
// been read, or it would take a byte of it and see nothing more.
func (g *guardian) start(hasBody bool) {
	g.mu.Lock()
	g.exchange, g.bodyRead = true, !hasBody
	g.mu.Unlock()
}

// guard is Request.OnGone.
func (g *guardian) guard(f func(), after time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.exchange {
		return
	}
	g.gone = f
	switch {
	case after <= 0:
		g.due = true
		g.arm()
	case g.timer == nil:
		g.timer = time.AfterFunc(after, g.delayOver)
	default:
		// A late call of the timer of an earlier exchange starts this watch
		// early, which is no harm.
		g.timer.Reset(after)
	}
}

func (g *guardian) delayOver() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone != nil {
		g.due = true
		g.arm()
	}
}

// bodyEnded says that the request's body has been read to its end.
func (g *guardian) bodyEnded() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bodyRead = true
	g.arm()
}

// arm starts the background read if it is time and none has news. g.mu is held,
// so that it cannot clear a deadline that belongs to the time after the exchange.
func (g *guardian) arm() {
	if g.gone == nil || !g.due || !g.bodyRead || g.has {
		return
	}
	if g.failed != nil {
		go g.call()
		return
	}
	// What fasthttp set for reading the request still runs.
	_ = g.source.SetReadDeadline(time.Time{})
	if !g.pending {
		g.pending = true
		go g.watch()
	}
}

func (g *guardian) watch() {
	n, err := g.source.Read(g.one[:])
	g.mu.Lock()
	g.pending = false
	g.has = n > 0
	// A timeout is none of the client's doing: the read outlived its exchange and
	// met the idle deadline, which the next reader will meet too.
	if err != nil && !isTimeout(err) {
		g.failed = err
	}
	lost := g.failed != nil && !g.has
	g.idle.Broadcast()
	g.mu.Unlock()
	if lost {
		g.call()
	}
}

// call tells the exchange that is under way, if any, and only once.
func (g *guardian) call() {
	g.calling.Lock()
	defer g.calling.Unlock()
	g.mu.Lock()
	f := g.gone
	g.gone = nil
	g.mu.Unlock()
	if f == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			g.onPanic("a function given to OnGone", p)
		}
	}()
	f()
}

// end closes the exchange: gone does not run, and is not called from now on. It
// may be called again.
func (g *guardian) end() {
	g.calling.Lock() // waits for a call that runs
	defer g.calling.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone != nil && g.timer != nil {
		g.timer.Stop()
	}
	g.exchange, g.due, g.gone = false, false, nil
}
