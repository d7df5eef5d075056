package proxy

import (
	"context"
	"log/slog"
	"maps"
	"reflect"
	"sync"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/discovery"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// openAPIV2 makes the /openapi/v2 that clients see, on a goroutine of its own: the
// documents are large, and newer clients do not ask for them. Nothing is read before
// a client asks, and what was read goes when nobody has asked for idleV2. The methods
// may be called from any goroutine.
//
// While all servers have the same document, and nothing is converted, no document is
// made at all: any server answers for all.
type openAPIV2 struct {
	log  *slog.Logger
	wake chan struct{}

	mu     sync.Mutex
	wanted wantedV2
	asked  time.Time     // when a client asked the last time
	made   *madeV2       // nil: nothing yet
	news   chan struct{} // closed when made changes

	readers readersV2 // of run's goroutine only
}

// wantedV2 is what the document is to be made of.
type wantedV2 struct {
	change  uint64 // grows when servers or conversions would make another document
	view    *upstream.View
	derived []discovery.DerivedV2
}

// madeV2 is the document, and of what it was made.
type madeV2 struct {
	change   uint64
	document *discovery.OpenAPIV2Document // nil: a server answers
}

const (
	// firstV2Wait and freshV2Wait are how long a request waits: for the first document
	// ever, which the servers may have to make, too; and for one that has in it what
	// has just changed. Then the newest server answers, or the document as it was.
	firstV2Wait, freshV2Wait = 10 * time.Second, 2 * time.Second

	// activeV2 is how long after a request the servers are asked for changes, so that
	// a client that asks again gets them; idleV2 how long until all memory is given
	// back.
	activeV2, idleV2 = time.Minute, 15 * time.Minute
)

func newOpenAPIV2(log *slog.Logger) *openAPIV2 {
	return &openAPIV2{
		log: log, wake: make(chan struct{}, 1), news: make(chan struct{}),
		wanted:  wantedV2{change: 1, view: &upstream.View{}},
		readers: newReadersV2(log),
	}
}

// want says of what the document is to be made from now on.
func (v *openAPIV2) want(view *upstream.View, derived []discovery.DerivedV2) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !describedAlike(v.wanted.view, view) || !reflect.DeepEqual(v.wanted.derived, derived) {
		v.wanted.change++
	}
	v.wanted.view, v.wanted.derived = view, derived
	if time.Since(v.asked) < idleV2 {
		v.poke()
	}
}

// describedAlike reports whether both views have the same servers with the same
// OpenAPI v3 documents, and so the same OpenAPI v2 documents.
func describedAlike(a, b *upstream.View) bool {
	if len(a.Servers) != len(b.Servers) {
		return false
	}
	for i, s := range a.Servers {
		o := b.Servers[i]
		if s.Name != o.Name || s.GitVersion != o.GitVersion || !maps.Equal(s.OpenAPIV3, o.OpenAPIV3) {
			return false
		}
	}
	return true
}

func (v *openAPIV2) poke() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// serversOwn reports whether it is known that any server's document is that of all.
func (v *openAPIV2) serversOwn() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	own := v.made != nil && v.made.document == nil && v.made.change == v.wanted.change
	if own {
		v.asked = time.Now()
		v.poke()
	}
	return own
}

// get returns the document; nil: a server answers. It waits for it for a bounded
// time, and no longer than ctx.
func (v *openAPIV2) get(ctx context.Context) *discovery.OpenAPIV2Document {
	v.mu.Lock()
	v.asked = time.Now()
	change, made, news := v.wanted.change, v.made, v.news
	v.mu.Unlock()
	v.poke()
	wait := freshV2Wait
	if made == nil {
		wait = firstV2Wait
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	for made == nil || made.change < change {
		select {
		case <-news:
			v.mu.Lock()
			made, news = v.made, v.news
			v.mu.Unlock()
			continue
		case <-late.C:
		case <-ctx.Done():
		}
		break
	}
	if made == nil {
		return nil
	}
	return made.document
}

// run makes the document when it is wanted until ctx is done.
func (v *openAPIV2) run(ctx context.Context) {
	again := time.NewTimer(idleV2)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.wake:
		case <-again.C:
		}
		again.Reset(v.round(ctx))
	}
}

// round brings the document up to date and returns when to do so again.
func (v *openAPIV2) round(ctx context.Context) time.Duration {
	v.mu.Lock()
	wanted, quiet := v.wanted, time.Since(v.asked)
	if quiet >= idleV2 {
		v.made = nil
		v.mu.Unlock()
		v.readers = newReadersV2(v.log)
		return idleV2
	}
	v.mu.Unlock()
	next := v.readers.read(ctx, wanted.view)
	if ctx.Err() != nil {
		return idleV2
	}
	document := v.readers.make(wanted)
	v.mu.Lock()
	if v.made == nil || v.made.change != wanted.change || v.made.document != document {
		v.made = &madeV2{wanted.change, document}
		close(v.news)
		v.news = make(chan struct{})
	}
	v.mu.Unlock()
	if quiet >= activeV2 {
		return idleV2 - quiet
	}
	return next
}
