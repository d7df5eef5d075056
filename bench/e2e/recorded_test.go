package e2e

import (
	"context"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// recorded are the events of one informer.
type recorded struct {
	stop    func() // returns when the informer has ended
	mu      sync.Mutex
	changes int                 // events that tell of another resourceVersion
	events  map[string][]string // by name
	deletes int
}

// record runs an informer until the test ends and keeps what it tells.
func record(t *testing.T, ctx context.Context, informer cache.SharedIndexInformer) *recorded {
	t.Helper()
	r := &recorded{events: map[string][]string{}}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { r.add("add", obj, true) },
		UpdateFunc: func(old, obj any) {
			r.add("update", obj, old.(metav1.Object).GetResourceVersion() != obj.(metav1.Object).GetResourceVersion())
		},
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			r.add("delete", obj, true)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	r.stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(r.stop)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("an informer does not get its list")
	}
	return r
}

func (r *recorded) add(kind string, obj any, change bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !change {
		return
	}
	object := obj.(metav1.Object)
	r.changes++
	if kind == "delete" {
		r.deletes++
	}
	r.events[object.GetName()] = append(r.events[object.GetName()], kind+" at "+object.GetResourceVersion())
}

func (r *recorded) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changes
}

func (r *recorded) deleted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.deletes
}
