package objects

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/mixed-version-proxy/mvp/policies"
)

const (
	// listTimeout bounds one list, of at most some tens of megabytes.
	listTimeout = 30 * time.Second

	// lookInterval is how often to look for a CRD that is not there, beside the looks
	// when something tells that the servers serve something else.
	lookInterval = 10 * time.Second

	// soonInterval is how often to look for a resource whose CRD is there, and that
	// will be served in a moment.
	soonInterval = 500 * time.Millisecond
)

// backoff is the pause after a failed list or watch, with as much again at random.
var backoff = wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10, Cap: 10 * time.Second}

// follower follows the objects of one resource, or some of them.
type follower struct {
	what     string // for messages
	resource schema.GroupVersionResource
	client   dynamic.ResourceInterface
	selector string
	problems *problems
	changed  chan struct{}

	// read makes policies of an object, version tells whether it says something else.
	read    func(*item) policies.Object
	version func(*unstructured.Unstructured) string

	// missing reports whether there is certainly no such resource. Nil: it is always
	// there.
	missing func(context.Context) (bool, error)
	look    chan struct{} // holds an element when it may be there by now

	mu      sync.Mutex
	objects map[string]*item
	listed  bool
}

// item is an object at one moment.
type item struct {
	name   string // as policies.Object's
	object *unstructured.Unstructured
}

func (s *follower) itemOf(o *unstructured.Unstructured) *item {
	name := s.resource.Resource + "/" + o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		name = s.resource.Resource + "/" + ns + "/" + o.GetName()
	}
	return &item{name, o}
}

// items returns what is known, and whether that is from a list.
func (s *follower) items() (items []*item, listed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.objects {
		items = append(items, it)
	}
	return items, s.listed
}

// get returns the object called name, nil if there is none.
func (s *follower) get(name string) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it := s.objects[name]; it != nil {
		return it.object
	}
	return nil
}

// run follows the objects until ctx is done.
func (s *follower) run(ctx context.Context) {
	silent := klog.Logger{} // problems tells what is wrong
	reflector := cache.NewReflectorWithOptions(s.listWatch(), &unstructured.Unstructured{}, store{s}, cache.ReflectorOptions{
		Name: s.what, Logger: &silent, Backoff: &backoff,
	})
	reflector.RunWithContext(klog.NewContext(ctx, silent))
}

func (s *follower) listWatch() cache.ListerWatcher {
	return plainList{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = s.selector
			list, err := s.list(ctx, options)
			if err != nil {
				return nil, err // and no pointer that is nil in an interface
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = s.selector
			w, err := s.client.Watch(ctx, options)
			s.problems.note(ctx, "watch "+s.what, err)
			return w, err
		},
	}}
}

// plainList lists before it watches, which every server can.
type plainList struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is what the reflector asks.
func (plainList) IsWatchListSemanticsUnSupported() bool { return true }

// list lists the objects. While there is no such resource, there are none, and it waits
// for the resource.
func (s *follower) list(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	for {
		list, err := s.listOnce(ctx, options)
		if !apierrors.IsNotFound(err) || s.missing == nil {
			s.problems.note(ctx, "list "+s.what, err)
			return list, err
		}
		pause := soonInterval
		missing, err := s.missing(ctx)
		switch {
		case err != nil:
			s.problems.note(ctx, "list "+s.what, err)
			return nil, err
		case missing:
			pause = lookInterval
			s.problems.absent(s.what)
			if err := (store{s}).Replace(nil, ""); err != nil {
				return nil, err
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		case <-s.look:
			timer.Stop()
		case <-timer.C:
		}
	}
}

func (s *follower) listOnce(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	return s.client.List(ctx, options)
}

// store is what the reflector writes to.
type store struct{ *follower }

func (s store) Add(o any) error    { return s.change(o, false) }
func (s store) Update(o any) error { return s.change(o, false) }
func (s store) Delete(o any) error { return s.change(o, true) }
func (s store) Resync() error      { return nil }

func (s store) Replace(all []any, _ string) error {
	objects := make(map[string]*item, len(all))
	for _, o := range all {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("the list of %s has a %T", s.what, o)
		}
		it := s.itemOf(u)
		objects[it.name] = it
	}
	s.mu.Lock()
	s.objects, s.listed = objects, true
	s.mu.Unlock()
	wake(s.follower.changed)
	return nil
}

func (s store) change(o any, deleted bool) error {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("the watch of %s sent a %T", s.what, o)
	}
	it := s.itemOf(u)
	s.mu.Lock()
	if deleted {
		delete(s.objects, it.name)
	} else {
		s.put(it)
	}
	s.mu.Unlock()
	wake(s.follower.changed)
	return nil
}

// put takes over an object, unless what is known of it is newer. It is called with the
// lock held.
func (s *follower) put(it *item) {
	known := s.objects[it.name]
	if known != nil && known.object.GetUID() == it.object.GetUID() {
		if order, err := resourceversion.CompareResourceVersion(known.object.GetResourceVersion(), it.object.GetResourceVersion()); err == nil && order > 0 {
			return
		}
	}
	s.objects[it.name] = it
}

// written takes over what a write answered, as long as the object is there: the watch
// tells of it later.
func (s *follower) written(o *unstructured.Unstructured) {
	it := s.itemOf(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[it.name] != nil {
		s.put(it)
	}
}
