package upstream

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// What objects say that a server will serve something else soon.
var (
	crdResource        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServiceResource = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

const (
	// refusedPause is about how long a watch that the server refused is left alone
	// while the server stays up: whoever grants the right need not restart MVP.
	refusedPause = time.Minute

	// watchGap is the least time between two watch requests for one resource, also
	// to a server that ends each of them at once.
	watchGap = 500 * time.Millisecond
)

// followBackoff is the pause after a failed list or watch, with as much again at
// random. It begins anew after two quiet minutes, or when the server has been down.
var followBackoff = wait.Backoff{Duration: 400 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10, Cap: 15 * time.Second}

// follower follows the metadata of all objects of one resource on one server, by a
// client-go reflector: list, watch with bookmarks, go on where a watch ended, list
// again after 410. Its methods are for one goroutine.
type follower struct {
	resource schema.GroupVersionResource
	client   metadata.Getter
	store    *followed
	live     atomic.Bool // the objects are listed and their changes come

	cancel    context.CancelFunc // of the run under way; nil without one
	ended     chan struct{}      // closed when it has ended
	refused   atomic.Pointer[error]
	problem   error     // why it does not run though it should
	up        time.Time // since when the server is up, as tend was last told
	notBefore time.Time // of the next run, after a refusal
}

// newFollower makes a follower that tells of each change, from a goroutine of its own.
// The first list counts as one change, of no object.
func newFollower(server *Server, resource schema.GroupVersionResource, tell func(event)) *follower {
	client, err := metadata.NewForConfigAndClient(
		&rest.Config{Host: server.URL(), UserAgent: userAgent, QPS: -1, WarningHandlerWithContext: rest.NoWarnings{}},
		&http.Client{
			Transport:     transport{server},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		})
	if err != nil { // only for a URL that is none, and the server's was parsed
		panic(err)
	}
	f := &follower{resource: resource, client: client.Resource(resource)}
	f.store = &followed{tell: tell}
	return f
}

// tend starts and ends the run as wanted, and returns why it cannot run, as far as
// that is the decision of the server, which is up since then.
func (f *follower) tend(ctx context.Context, wanted bool, up time.Time) error {
	if refused := f.refused.Swap(nil); refused != nil {
		f.stop()
		f.problem = *refused
		f.notBefore = time.Now().Add(refusedPause/2 + rand.N(refusedPause))
	}
	if !up.Equal(f.up) { // perhaps it has been started anew
		f.up, f.notBefore = up, time.Time{}
	}
	switch {
	case !wanted:
		f.stop()
	case f.cancel == nil && time.Now().After(f.notBefore):
		f.start(ctx)
	case f.live.Load():
		f.problem = nil
	}
	return f.problem
}

func (f *follower) start(ctx context.Context) {
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, klog.Logger{})) // silent: health tells what is wrong
	ended := make(chan struct{})
	f.cancel, f.ended = cancel, ended
	reflector := cache.NewReflectorWithOptions(f.listWatch(cancel), &metav1.PartialObjectMetadata{}, f.store, cache.ReflectorOptions{
		Name: f.resource.Resource, Logger: &klog.Logger{}, Backoff: &followBackoff,
	})
	go func() {
		defer close(ended)
		reflector.RunWithContext(ctx)
	}()
}

// stop ends the run and waits for its end.
func (f *follower) stop() {
	if f.cancel != nil {
		f.cancel()
		<-f.ended
		f.cancel = nil
	}
	f.live.Store(false)
}

// failed takes note that a list or a watch could not be begun, and ends the run if that
// is the server's decision.
func (f *follower) failed(err error, cancel func()) {
	f.live.Store(false)
	if isRefusal(err) {
		f.refused.Store(&err)
		cancel()
	}
}

// isRefusal reports whether the same request would fail again in a moment.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// listWatch is what a run's reflector asks.
func (f *follower) listWatch(cancel func()) cache.ListerWatcher {
	var next time.Time // of the next watch request
	return plainList{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			ctx, done := context.WithTimeout(ctx, documentTimeout)
			defer done()
			list, err := f.client.List(ctx, options)
			if err != nil {
				f.failed(err, cancel)
				return nil, err
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if !sleep(ctx, time.Until(next)) {
				return nil, context.Cause(ctx)
			}
			next = time.Now().Add(watchGap)
			w, err := f.client.Watch(ctx, options)
			if err != nil {
				f.failed(err, cancel)
				return nil, err
			}
			f.live.Store(true)
			return w, nil
		},
	}}
}

// plainList has a reflector list and not stream the list: metadata is small, servers
// differ in whether they stream, and while a reflector tries to it cannot be ended.
type plainList struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is what a reflector asks.
func (plainList) IsWatchListSemanticsUnSupported() bool { return true }

// sleep waits and reports whether ctx is still not done.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
