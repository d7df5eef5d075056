package convert

import (
	"errors"
	"maps"
	"reflect"
	"slices"
)

// errUncovered says that a program has to run on all of the object: it failed, and
// its error may show what was left out; or, in spite of its needs, it changed more
// than it was given.
var errUncovered = errors.New("the program needs all of the object")

// covers reports whether n covers all that out, which a program made of the part
// of an object that n covers, consists of.
func (n *need) covers(out map[string]any) bool {
	if n.all {
		return true
	}
	for key, v := range out {
		m := n.members[key]
		if m == nil {
			return false
		}
		if inner, ok := v.(map[string]any); ok && !m.covers(inner) {
			return false
		}
	}
	return true
}

// splicer puts what a program made of an object back into the document. What the
// program left alone keeps its bytes: gojq never changes a value that it is given,
// so that one that is still the same map or slice has the same members.
type splicer struct {
	d *doc
	e encoder
}

// put makes r, whose value was in for the program, what out says.
func (s *splicer) put(r ref, n *need, in, out any, depth int) error {
	if depth > MaxDepth {
		return errTooDeep
	}
	switch out := out.(type) {
	case map[string]any:
		in, ok := in.(map[string]any)
		switch {
		case !ok:
		case sameMap(in, out):
			return nil
		case n.all:
			if done, err := s.members(r, in, out, depth); done || err != nil {
				return err
			}
		default:
			return s.some(r, n, in, out, depth)
		}
	case []any:
		in, ok := in.([]any)
		switch {
		case !ok:
		case sameSlice(in, out):
			return nil
		case len(in) == len(out):
			return s.items(r, in, out, depth)
		}
	default:
		if in == out {
			return nil
		}
	}
	val, err := s.encode(out, depth)
	if err == nil {
		s.d.setSpan(r, val, true)
	}
	return err
}

func sameMap(a, b map[string]any) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

func sameSlice(a, b []any) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// some puts the members of out that n names.
func (s *splicer) some(r ref, n *need, in, out map[string]any, depth int) error {
	for _, key := range n.keys() {
		v, has := out[key]
		old, had := in[key]
		var err error
		switch {
		case had && has:
			err = s.put(s.d.find(r, key), n.members[key], old, v, depth+1)
		case had:
			s.d.unlink(s.d.find(r, key))
		case has:
			err = s.add(r, key, v, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// members puts the members of out, of which r had all. It reports false, with
// nothing changed, when r has names twice or such that gojq sees them otherwise.
func (s *splicer) members(r ref, in, out map[string]any, depth int) (bool, error) {
	d := s.d
	count := 0
	for m := d.first(r); m != 0; m = d.next(m) {
		if _, known := in[d.key(m)]; !known {
			return false, nil
		}
		count++
	}
	if count != len(in) {
		return false, nil
	}
	kept := 0
	for m := d.first(r); m != 0; {
		next, key := d.next(m), d.key(m)
		if v, has := out[key]; has {
			kept++
			if err := s.put(m, &wholeNeed, in[key], v, depth+1); err != nil {
				return true, err
			}
		} else {
			d.unlink(m)
		}
		m = next
	}
	if kept == len(out) {
		return true, nil
	}
	for _, key := range slices.Sorted(maps.Keys(out)) {
		if _, had := in[key]; had {
			continue
		}
		if err := s.add(r, key, out[key], depth+1); err != nil {
			return true, err
		}
	}
	return true, nil
}

// items puts the items of out, which are as many as those of r.
func (s *splicer) items(r ref, in, out []any, depth int) error {
	i := 0
	for m := s.d.first(r); m != 0; m = s.d.next(m) {
		if err := s.put(m, &wholeNeed, in[i], out[i], depth+1); err != nil {
			return err
		}
		i++
	}
	return nil
}

func (s *splicer) add(r ref, key string, v any, depth int) error {
	val, err := s.encode(v, depth)
	if err == nil {
		s.d.addSpan(r, key, val)
	}
	return err
}

// encode writes v to the document's own text.
func (s *splicer) encode(v any, depth int) (span, error) {
	start := len(s.d.own)
	s.e.dst = s.d.own
	err := s.e.value(v, depth)
	s.d.own = s.e.dst
	return span{int32(start), int32(len(s.d.own))}, err
}
