package demo

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// maxChanges is how many changes the store remembers for watches: one that asks
// for an older resourceVersion gets 410 Gone, as after etcd's compaction.
const maxChanges = 4096

// firstRevision is above zero because resourceVersion 0 means "any".
const firstRevision = 1

// errTooOld is that a revision is no longer remembered.
var errTooOld = errors.New("too old resource version")

// A change is one write, as watches see it.
type change struct {
	resource schema.GroupResource
	revision int64
	event    watch.EventType

	// object is what the write left; for a deletion the last state with the
	// deletion's resourceVersion.
	object *unstructured.Unstructured

	// previous is the object before the write, nil for an addition. A watch with
	// a selector needs it to tell "came into" from "went out of" its set.
	previous *unstructured.Unstructured
}

// store is what etcd is to kube-apiservers: one ordered history of objects. An
// object in it is never changed, only replaced, so readers share it freely.
type store struct {
	mu       sync.Mutex
	revision int64
	objects  map[schema.GroupResource]map[string]*unstructured.Unstructured
	changes  []change      // the newest maxChanges, oldest first
	changed  chan struct{} // closed and replaced at each write
}

func newStore() *store {
	return &store{
		revision: firstRevision,
		objects:  map[schema.GroupResource]map[string]*unstructured.Unstructured{},
		changed:  make(chan struct{}),
	}
}

func objectKey(namespace, name string) string { return namespace + "/" + name }

// get returns the object, nil if there is none, and the store's revision.
func (s *store) get(gr schema.GroupResource, namespace, name string) (*unstructured.Unstructured, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[gr][objectKey(namespace, name)], s.revision
}

// list returns the objects of namespace (empty: of all) in the order of their
// keys, and the revision at which this was the list.
func (s *store) list(gr schema.GroupResource, namespace string) ([]*unstructured.Unstructured, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	table := s.objects[gr]
	var list []*unstructured.Unstructured
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if obj := table[key]; namespace == "" || obj.GetNamespace() == namespace {
			list = append(list, obj)
		}
	}
	return list, s.revision
}

// write replaces one object by what edit makes of it. edit gets the stored object
// (nil: none) and must not change it; it returns the new one, nil to delete it, or
// the very same pointer to leave all as it is. No other write happens meanwhile.
//
// write returns the object as stored, of a deletion the last state.
func (s *store) write(gr schema.GroupResource, namespace, name string, edit func(old *unstructured.Unstructured) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := objectKey(namespace, name)
	old := s.objects[gr][key]
	obj, err := edit(old)
	if err != nil {
		return nil, err
	}
	if obj == old {
		return old, nil
	}
	return s.commit(gr, key, old, obj), nil
}

// drop deletes every object that match says so of, each as a write of its own.
func (s *store) drop(match func(gr schema.GroupResource, obj *unstructured.Unstructured) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for gr, table := range s.objects {
		for _, key := range slices.Sorted(maps.Keys(table)) {
			if old := table[key]; match(gr, old) {
				s.commit(gr, key, old, nil)
			}
		}
	}
}

// inNamespace matches, for drop, all that lives in a namespace.
func inNamespace(name string) func(schema.GroupResource, *unstructured.Unstructured) bool {
	return func(_ schema.GroupResource, obj *unstructured.Unstructured) bool { return obj.GetNamespace() == name }
}

// commit makes obj (nil: nothing) the object of key instead of old and returns it
// as stored.
func (s *store) commit(gr schema.GroupResource, key string, old, obj *unstructured.Unstructured) *unstructured.Unstructured {
	s.revision++
	c := change{resource: gr, revision: s.revision, event: watch.Modified, previous: old}
	table := s.objects[gr]
	if table == nil {
		table = map[string]*unstructured.Unstructured{}
		s.objects[gr] = table
	}
	switch {
	case obj == nil:
		c.event, obj = watch.Deleted, old.DeepCopy()
		delete(table, key)
	case old == nil:
		c.event = watch.Added
		fallthrough
	default:
		table[key] = obj
	}
	obj.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	c.object = obj
	s.record(c)
	return obj
}

func (s *store) record(c change) {
	if len(s.changes) == maxChanges {
		s.changes = slices.Delete(s.changes, 0, 1)
	}
	s.changes = append(s.changes, c)
	close(s.changed)
	s.changed = make(chan struct{})
}

// since returns the changes of gr after revision, the revision up to which they
// are all, and a channel that is closed at the next write of anything. Its error
// is errTooOld.
func (s *store) since(gr schema.GroupResource, revision int64) ([]change, int64, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	forgotten := s.revision - int64(len(s.changes)) // each write has its own revision
	if revision < forgotten {
		return nil, s.revision, nil, errTooOld
	}
	var list []change
	for _, c := range s.changes[min(revision-forgotten, int64(len(s.changes))):] {
		if c.resource == gr {
			list = append(list, c)
		}
	}
	return list, s.revision, s.changed, nil
}
