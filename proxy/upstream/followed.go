package upstream

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// managedLabel marks the APIServices that a server makes for its own group versions
// and for those of CRDs.
const managedLabel = "kube-aggregator.kubernetes.io/automanaged"

// event is one change of a followed object; the zero event is a first list.
type event struct {
	name     string
	old, new *followedObject // nil: there was none, there is none any more
}

// followedObject is what is kept of an object.
type followedObject struct {
	uid, resourceVersion string
	generation           int64
	managed              bool // see managedLabel
}

// followed is the store of a follower's reflector: it compares what comes with what
// came before, also of an earlier run.
type followed struct {
	tell    func(event)
	objects map[string]*followedObject // by name; nil before the first list
}

// Add implements cache.ReflectorStore.
func (s *followed) Add(obj any) error { return s.put(obj) }

// Update implements cache.ReflectorStore.
func (s *followed) Update(obj any) error { return s.put(obj) }

func (s *followed) put(obj any) error {
	name, o, err := reduce(obj)
	if err != nil {
		return err
	}
	s.set(name, o)
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *followed) Delete(obj any) error {
	name, _, err := reduce(obj)
	if err != nil {
		return err
	}
	s.set(name, nil)
	return nil
}

// Replace implements cache.ReflectorStore. It tells how a list differs from what was
// known, so that nothing that happened between two watches is missed.
func (s *followed) Replace(list []any, _ string) error {
	objects := make(map[string]*followedObject, len(list))
	for _, obj := range list {
		name, o, err := reduce(obj)
		if err != nil {
			return err
		}
		objects[name] = o
	}
	if s.objects == nil {
		s.objects = objects
		s.tell(event{})
		return nil
	}
	for name := range s.objects {
		if objects[name] == nil {
			s.set(name, nil)
		}
	}
	for name, o := range objects {
		s.set(name, o)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *followed) Resync() error { return nil }

// set takes over an object's new state; nil: it is gone.
func (s *followed) set(name string, o *followedObject) {
	old := s.objects[name]
	switch {
	case old == nil && o == nil, old != nil && o != nil && *old == *o:
		return
	case o == nil:
		delete(s.objects, name)
	default:
		s.objects[name] = o
	}
	s.tell(event{name: name, old: old, new: o})
}

func reduce(obj any) (string, *followedObject, error) {
	o, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return "", nil, fmt.Errorf("cannot follow a %T: want metadata", obj)
	}
	_, managed := o.Labels[managedLabel]
	return o.Name, &followedObject{
		uid: string(o.UID), resourceVersion: o.ResourceVersion, generation: o.Generation, managed: managed,
	}, nil
}
