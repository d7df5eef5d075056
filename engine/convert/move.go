package convert

import "fmt"

// move takes the value at from to to.
func (x *run) move(s *step, item ref, from, to []string) error {
	d := x.d
	var way way
	r := item
	for i, key := range from {
		if x.mode == strategic && hasDirective(d, r, i, s) {
			return ErrNeedsObject
		}
		way[i] = r
		if r = d.find(r, key); r == 0 {
			return x.moveNothing(s, item, to)
		}
		if i < len(from)-1 && d.kind(r) != kindObject {
			return x.moveReplaced(s, item, i+1, to)
		}
	}
	if err := x.both(s, item, to); err != nil {
		return err
	}
	if err := x.retype(s, r); err != nil {
		return err
	}
	if x.partial(s) && d.isNull(r) && x.replacesParent(item, to) {
		d.unlink(r) // the patch puts something else where the target was in
		return nil
	}
	if err := x.reachable(s, item, to); err != nil {
		return err
	}
	if d.isNull(r) && x.dir == ToServer && !s.sibling() && !x.hasParent(item, to) {
		// What is not there needs nothing around it.
		if x.partial(s) {
			return ErrNeedsObject // to know whether that is there
		}
		if x.mode == whole {
			d.unlink(r)
			return nil
		}
	}
	if other := x.lookup(item, to); x.dir == ToClient && other != 0 && !d.isNull(other) {
		x.exchange(s, r, other, from, to)
	} else if x.canMake(item, to) {
		x.carry(s, item, r, &way, from, to)
	}
	return nil
}

// exchange puts r, which is at from, at to, and other, which is at to, at from. So
// a server's object that has both names loses neither on the way to the client,
// whose field has the value it should; sent back with both, it is refused.
func (x *run) exchange(s *step, r, other ref, from, to []string) {
	d := x.d
	old, last := from[len(from)-1], to[len(to)-1]
	if s.sibling() {
		d.setKey(r, last)
		d.setKey(other, old)
		return
	}
	oldParent, parent := d.nodes[r].parent, d.nodes[other].parent
	d.unlink(r)
	d.unlink(other)
	d.attach(parent, r, last)
	d.attach(oldParent, other, old)
}

// both refuses what a client says twice: the field, and under the name that it
// has in the server's version. One of the two would be lost.
func (x *run) both(s *step, item ref, to []string) error {
	if x.dir != ToServer {
		return nil
	}
	target := x.lookup(item, to)
	if target == 0 || x.d.isNull(target) && !x.partial(s) {
		return nil
	}
	if x.partial(s) {
		return ErrNeedsObject // one of the two may be what goes
	}
	return x.invalid(s, s.from, fmt.Sprintf("Forbidden: %s becomes %s (policy %s); the object must not have both", s.from, s.to, x.c.spec.Policy))
}

// way is the objects that a path leads through: way[i] is after i keys.
type way [MaxPathElements]ref

// carry takes r from from, where way led, to to. Objects that are empty
// afterwards because of that, between the value and what both paths share, go
// with it: they are made again on the way back, and what was moved out of them
// was all they said.
func (x *run) carry(s *step, item, r ref, way *way, from, to []string) {
	d := x.d
	last := to[len(to)-1]
	if s.sibling() {
		if old := d.find(way[len(from)-1], last); old != 0 {
			d.unlink(old)
		}
		d.setKey(r, last)
		return
	}
	d.unlink(r)
	for i := len(from) - 1; i > s.shared && d.isEmpty(way[i]); i-- {
		d.unlink(way[i])
	}
	parent := x.make(item, to)
	if old := d.find(parent, last); old != 0 {
		d.unlink(old)
	}
	d.attach(parent, r, last)
}

// moveNothing sees, when a patch does not name the moved field, whether it
// touches the target all the same by deleting an object that it is in.
func (x *run) moveNothing(s *step, item ref, to []string) error {
	if !x.partial(s) {
		return nil
	}
	if x.lookup(item, to) != 0 {
		return ErrNeedsObject // the client may have the field that this is on the server
	}
	r := item
	for i, key := range to[:len(to)-1] {
		if r = x.d.find(r, key); r == 0 {
			return nil
		}
		deleted := x.d.isNull(r) || x.mode == strategic && x.d.find(r, directivePatch) != 0
		if deleted && i >= s.shared {
			return ErrNeedsObject
		}
	}
	return nil
}

// moveReplaced carries over, in a patch, that an object the moved field is in is
// deleted, or replaced by something else: what is there after n keys is no object.
func (x *run) moveReplaced(s *step, item ref, n int, to []string) error {
	if !x.partial(s) || n <= s.shared {
		return nil // not a patch, or one that takes the target too
	}
	if x.lookup(item, to) != 0 || x.replacesParent(item, to) {
		return nil // the client says itself what the target shall be
	}
	if err := x.reachable(s, item, to); err != nil {
		return err
	}
	x.d.add(x.make(item, to), to[len(to)-1], []byte("null"))
	return nil
}

// hasParent reports whether there is an object for the last key of to.
func (x *run) hasParent(item ref, to []string) bool {
	r := x.lookup(item, to[:len(to)-1])
	return r != 0 && x.d.kind(r) == kindObject
}

// replacesParent reports whether a patch puts something other than an object, or
// null, where a parent of to is.
func (x *run) replacesParent(item ref, to []string) bool {
	r := item
	for _, key := range to[:len(to)-1] {
		if r = x.d.find(r, key); r == 0 {
			return false
		}
		if x.d.kind(r) != kindObject {
			return true
		}
	}
	return false
}

// reachable returns an error when there is something else where the parents of
// to must be: for a client's object, that is its mistake.
func (x *run) reachable(s *step, item ref, to []string) error {
	r := item
	for i, key := range to[:len(to)-1] {
		if r = x.d.find(r, key); r == 0 {
			return nil
		}
		switch k := x.d.kind(r); {
		case k == kindObject:
		case k == kindNull && !x.partial(s):
			return nil
		case k == kindNull:
			// Deletes the object that the value is to be in, and sets a field of it.
			return ErrNeedsObject
		case x.dir == ToServer:
			return x.invalid(s, append(s.base[:len(s.base):len(s.base)], keyPath(to[:i+1])...),
				fmt.Sprintf("must be an object (policy %s puts %s into it)", x.c.spec.Policy, s.from))
		}
	}
	return nil
}

// canMake reports whether make can make the parents of to.
func (x *run) canMake(item ref, to []string) bool {
	r := item
	for _, key := range to[:len(to)-1] {
		if r = x.d.find(r, key); r == 0 || x.d.isNull(r) {
			return true
		}
		if x.d.kind(r) != kindObject {
			return false
		}
	}
	return x.d.kind(r) == kindObject
}

// make returns the parent of to, making what is absent or null of the way there.
func (x *run) make(item ref, to []string) ref {
	r := item
	for _, key := range to[:len(to)-1] {
		m := x.d.find(r, key)
		switch {
		case m == 0:
			m = x.d.add(r, key, []byte("{}"))
		case x.d.isNull(m):
			x.d.set(m, []byte("{}"))
		}
		r = m
	}
	return r
}
