package policies

import (
	"fmt"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// objects are the objects that a Store was given, in the order in which they take
// precedence. An object with a mistake holds back nothing but itself: what was last
// accepted of it stays.
type objects struct {
	list   []*heldObject
	byName map[string]*heldObject
}

// heldObject is what is known of an Object.
type heldObject struct {
	name   string
	newest *version
	last   *version // what was live last; nil: nothing
	next   *version // what shall be live; nil: nothing
}

// set takes what the objects are now. What is not new is not compiled again.
func (o *objects) set(given []Object, limits engine.Limits) {
	list, byName, bytes := make([]*heldObject, 0, len(given)), make(map[string]*heldObject, len(given)), 0
	for i := range given {
		g := &given[i]
		known := o.byName[g.Name]
		if known == nil {
			known = &heldObject{name: g.Name}
		}
		bytes += g.size()
		hash := g.hash()
		switch {
		case i >= maxObjects || bytes > maxObjectsBytes:
			known.newest = tooMany(g.Name)
		case known.newest == nil || known.newest.hash != hash:
			known.newest = newVersion(*g, hash, limits)
		}
		list, byName[g.Name] = append(list, known), known
	}
	o.list, o.byName = list, byName
}

func tooMany(name string) *version {
	return &version{reason: ObjectTooMany, errs: source.Errors{{
		Pos: source.Pos{File: name},
		Msg: fmt.Sprintf("there are more than %d policy objects, or they have more than %d MiB together: the oldest are taken; remove some, or put several into one",
			maxObjects, maxObjectsBytes>>20),
	}}}
}

// join decides what of each object goes together with the policies of files, and with
// the objects before it, and returns all of these.
func (o *objects) join(files []engine.Policy) (all []engine.Policy, statuses []ObjectStatus) {
	all = append(all, files...)
	for _, obj := range o.list {
		status := ObjectStatus{Name: obj.name, Reason: ObjectAccepted}
		obj.next = obj.newest
		if status.Reason, status.Err = obj.newest.fits(all); status.Err != nil {
			obj.next = obj.last
			if obj.last != nil {
				if _, errs := obj.last.fits(all); errs != nil {
					obj.next = nil
				}
			}
		}
		if obj.next != nil {
			all = append(all, obj.next.policies...)
			status.Policies = len(obj.next.policies)
		}
		statuses = append(statuses, status)
	}
	return all, statuses
}

// fits says whether a version can be live together with the policies that are there.
func (v *version) fits(there []engine.Policy) (reason string, errs source.Errors) {
	if v.errs != nil {
		return v.reason, v.errs
	}
	if errs := engine.Conflicts(there, v.policies); len(errs) > 0 {
		return ObjectConflict, errs
	}
	return ObjectAccepted, nil
}

// live notes that what join decided is live.
func (o *objects) live() {
	for _, obj := range o.list {
		if obj.next != nil {
			obj.last = obj.next
		}
	}
}

// hash is of what join decided; "" with no object.
func (o *objects) hash() string {
	var hash string
	for _, obj := range o.list {
		if obj.next != nil {
			hash += " " + obj.next.hash
		}
	}
	return hash
}
