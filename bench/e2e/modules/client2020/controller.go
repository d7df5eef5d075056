package main

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
)

// settledBy is the annotation that a reconciled object has.
const settledBy = "example.com/settled"

// A controller settles the objects of a kind: first their status, then an annotation.
// It remembers each state that a write was answered, and each that the informer saw.
type controller struct {
	kind  kind
	queue workqueue.RateLimitingInterface

	mu           sync.Mutex
	changed      *sync.Cond
	written      map[string]bool // resourceVersions
	seen         map[string]bool
	added, ended int
	conflicts    int
	err          error // the first of the worker
}

func newController(k kind) *controller {
	c := &controller{
		kind: k, queue: workqueue.NewRateLimitingQueue(workqueue.DefaultControllerRateLimiter()),
		written: map[string]bool{}, seen: map[string]bool{},
	}
	c.changed = sync.NewCond(&c.mu)
	k.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object interface{}) { c.sees(object, &c.added) },
		UpdateFunc: func(_, object interface{}) { c.sees(object, nil) },
		DeleteFunc: func(interface{}) { c.note(func() { c.ended++ }) },
	})
	return c
}

// note changes what c knows.
func (c *controller) note(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	c.changed.Broadcast()
}

func (c *controller) sees(object interface{}, counter *int) {
	o := object.(metav1.Object)
	c.note(func() {
		c.seen[o.GetResourceVersion()] = true
		if counter != nil {
			*counter++
		}
	})
	c.queue.Add(o.GetNamespace() + "/" + o.GetName())
}

// wrote notes what a write was answered.
func (c *controller) wrote(object metav1.Object, err error) error {
	if err == nil {
		c.note(func() { c.written[object.GetResourceVersion()] = true })
	}
	return err
}

// work reconciles until ctx is done.
func (c *controller) work(ctx context.Context) {
	go func() {
		<-ctx.Done()
		c.queue.ShutDown()
		c.note(func() {}) // whoever waits looks at ctx
	}()
	for {
		key, shut := c.queue.Get()
		if shut {
			return
		}
		if err := c.reconcile(ctx, key.(string)); err != nil {
			c.note(func() {
				if c.err == nil {
					c.err = fmt.Errorf("cannot reconcile %s: %w", key, err)
				}
			})
		}
		c.queue.Done(key)
	}
}

func (c *controller) reconcile(ctx context.Context, key string) error {
	cached, exists, err := c.kind.informer.GetStore().GetByKey(key)
	if err != nil || !exists {
		return err
	}
	object := cached.(metav1.Object)
	if object.GetAnnotations()[settledBy] != "" {
		return nil
	}
	if !c.kind.settled(object) {
		err := c.wrote(c.kind.updateStatus(ctx, object))
		if apierrors.IsConflict(err) {
			return nil // the informer sees the newer one, and the key comes again
		}
		return err
	}
	// Somebody else writes in between, so that this one has to try again.
	name, tries := object.GetName(), 0
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current, err := c.kind.get(ctx, name)
		if err != nil || current.GetAnnotations()[settledBy] != "" {
			return err
		}
		if tries++; tries == 1 {
			if err := c.labelled(ctx, name); err != nil {
				return err
			}
		}
		current.SetAnnotations(map[string]string{settledBy: "client2020"})
		err = c.wrote(c.kind.update(ctx, current))
		if apierrors.IsConflict(err) {
			c.note(func() { c.conflicts++ })
		}
		return err
	})
}

// labelled changes the object as somebody else would.
func (c *controller) labelled(ctx context.Context, name string) error {
	object, err := c.kind.get(ctx, name)
	if err != nil {
		return err
	}
	object.SetLabels(map[string]string{"example.com/by": "another"})
	return c.wrote(c.kind.update(ctx, object))
}

// scenario makes objects, waits until all are settled, and takes them away.
func (c *controller) scenario(ctx context.Context) error {
	for i := 0; i < count; i++ {
		if err := c.wrote(c.kind.create(ctx, fmt.Sprintf("object-%d", i))); err != nil {
			return err
		}
	}
	if err := c.wait(ctx, "all objects are settled, and each state was seen", c.isSettled); err != nil {
		return err
	}
	for i := 0; i < count; i++ {
		if err := c.kind.delete(ctx, fmt.Sprintf("object-%d", i)); err != nil {
			return err
		}
	}
	return c.wait(ctx, "the end of all objects was seen", func() bool { return c.ended == count })
}

// isSettled is called with c locked.
func (c *controller) isSettled() bool {
	for version := range c.written {
		if !c.seen[version] {
			return false
		}
	}
	settled := 0
	for _, object := range c.kind.informer.GetStore().List() {
		o := object.(metav1.Object)
		if o.GetAnnotations()[settledBy] != "" && o.GetLabels()["example.com/by"] != "" && c.kind.settled(o) {
			settled++
		}
	}
	return settled == count
}

func (c *controller) wait(ctx context.Context, what string, condition func() bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !condition() {
		if c.err != nil {
			return c.err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("not in time: %s; %d states written, %d seen", what, len(c.written), len(c.seen))
		}
		c.changed.Wait()
	}
	return c.err
}

// report is what c has seen.
func (c *controller) report() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	missed := 0
	for version := range c.written {
		if !c.seen[version] {
			missed++
		}
	}
	return fmt.Sprintf("%d made, %d ended, %d states written, %d of them missed, %d others seen, %d conflicts",
		c.added, c.ended, len(c.written), missed, len(c.seen)+missed-len(c.written), c.conflicts)
}
