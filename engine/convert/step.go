package convert

import "bytes"

// mode is what a rule's object is.
type mode uint8

const (
	whole     mode = iota // an object
	applied               // some fields of an object: an apply configuration, a value in a JSON patch
	merge                 // an RFC 7386 patch
	strategic             // a strategic merge patch
)

// run is the conversion of one object, or of what stands for one.
type run struct {
	c    *Converter
	of   *Converter // the link of c that is at work, for its program
	d    *doc
	at   ref // the object
	dir  Direction
	mode mode

	acted Acted // nil: nobody wants to know

	index []int // the items that the step at hand is in, outermost first
}

// rules runs the rules: towards the server in order, towards the client the
// reverse of each in reverse order.
func (x *run) rules() error { return x.runSteps(x.c.steps, nil) }

// runSteps is rules for the steps of which concerns says so; nil: for all of them.
func (x *run) runSteps(steps []*step, concerns func(*step) bool) error {
	for i := range steps {
		s := steps[i]
		if x.dir == ToClient {
			s = steps[len(steps)-1-i]
		}
		if concerns != nil && !concerns(s) {
			continue
		}
		x.index = x.index[:0]
		if err := x.step(s); err != nil {
			return err
		}
	}
	return nil
}

// each does s in every item that the rest of its base, from element i, leads to
// from r.
func (x *run) each(s *step, r ref, i int) error {
	for ; i < len(s.base); i++ {
		e := s.base[i]
		if e.each {
			return x.items(s, r, i+1)
		}
		if x.mode == strategic && s.base[i+1].each {
			// The elements of the order list are items with nothing but their key.
			if order := x.d.find(r, elementOrder+e.key); order != 0 {
				if err := x.items(s, order, i+2); err != nil {
					return err
				}
			}
		}
		if r = x.d.find(r, e.key); r == 0 {
			return nil
		}
	}
	return x.do(s, r)
}

func (x *run) items(s *step, r ref, i int) error {
	if x.d.kind(r) != kindArray {
		return nil
	}
	level := len(x.index)
	x.index = append(x.index, 0)
	for m := x.d.first(r); m != 0; m = x.d.next(m) {
		if err := x.each(s, m, i); err != nil {
			return err
		}
		x.index[level]++
	}
	x.index = x.index[:level]
	return nil
}

// do does s at one item.
func (x *run) do(s *step, item ref) error {
	switch s.action {
	case Rename, Move:
		from, to := s.src, s.dst
		if x.dir == ToClient {
			from, to = to, from
		}
		if err := x.move(s, item, from, to); err != nil {
			return err
		}
		if x.mode == strategic {
			return x.moveDirectives(s, item)
		}
	case Modify:
		if r := x.lookup(item, s.src); r != 0 {
			return x.modify(s, r)
		}
	case EnsureFieldExistence:
		if x.dir == ToServer && x.mode == whole {
			x.ensure(s, item)
		}
	case Remove:
		if x.dir == ToServer {
			x.remove(item, s.src)
			if x.mode == strategic {
				x.removeDirectives(s, item)
			}
		}
	}
	return nil
}

// lookup returns the value at keys below r, or 0.
func (x *run) lookup(r ref, keys []string) ref {
	for _, key := range keys {
		if r = x.d.find(r, key); r == 0 {
			return 0
		}
	}
	return r
}

// partial reports whether an object in which s is done may lack fields that the
// real one has. The items of a list in a merge patch are real ones: RFC 7386
// replaces lists.
func (x *run) partial(s *step) bool {
	return x.mode == strategic || x.mode == merge && len(s.base) == 0
}

func (x *run) remove(item ref, keys []string) {
	if r := x.lookup(item, keys); r != 0 {
		x.d.unlink(r)
	}
}

// modify replaces the value r where it is the one that s wants replaced, and
// otherwise sees to its type.
func (x *run) modify(s *step, r ref) error {
	match, replace := s.match, s.replace
	if x.dir == ToClient {
		match, replace = replace, match
		if match != nil && replace == nil {
			return nil // any value became this one; there is no way back
		}
	}
	switch {
	case replace == nil:
		return x.retype(s, r)
	case match == nil && x.d.isNull(r):
		return nil // null is no value; in a patch it deletes
	case match == nil || x.d.equalText(r, match):
		x.d.set(r, replace)
		return nil
	default:
		return x.retype(s, r)
	}
}

// ensure writes the default of s where there is no value.
func (x *run) ensure(s *step, item ref) {
	d := x.d
	if r := x.lookup(item, s.src); r != 0 && !d.isNull(r) {
		return
	}
	for _, c := range s.unless {
		from := x.at
		if c.item {
			from = item
		}
		if x.has(from, c.path) {
			return
		}
	}
	if d.kind(item) != kindObject || !x.canMake(item, s.src) {
		return // something else is where an object must be: the server will say so
	}
	parent, last := x.make(item, s.src), s.src[len(s.src)-1]
	if r := d.find(parent, last); r != 0 {
		d.set(r, s.fallback)
		return
	}
	d.add(parent, last, s.fallback)
}

// has reports whether some field at p below r has a value other than null.
func (x *run) has(r ref, p path) bool {
	for i, e := range p {
		if e.each {
			for m := x.firstItem(r); m != 0; m = x.d.next(m) {
				if x.has(m, p[i+1:]) {
					return true
				}
			}
			return false
		}
		if r = x.d.find(r, e.key); r == 0 {
			return false
		}
	}
	return !x.d.isNull(r)
}

func (x *run) firstItem(r ref) ref { return x.d.firstItem(r) }

// firstItem returns the first item of r, or 0 when it has none or is no array.
func (d *doc) firstItem(r ref) ref {
	if d.kind(r) != kindArray {
		return 0
	}
	return d.first(r)
}

// retype gives the value r the type that the version it goes to has. Only what a
// rule says is an order that can fail; a schema's type is taken where the value
// has an equal of that type.
func (x *run) retype(s *step, r ref) error {
	t := s.clientType
	if x.dir == ToServer {
		if t = s.serverType; s.typ != TypeUnknown {
			t = s.typ
		}
	}
	d := x.d
	if t == TypeUnknown || d.isNull(r) || hasType(d.raw(r), t) {
		return nil
	}
	start := len(d.own)
	own, ok := appendCoerced(d.own, d.raw(r), t)
	if !ok {
		if x.dir == ToServer && s.typ != TypeUnknown {
			return x.wrongType(s, r)
		}
		return nil
	}
	d.own = own
	d.setSpan(r, span{int32(start), int32(len(own))}, true)
	return nil
}

// equalText reports whether r is the value text, one checked JSON value.
func (d *doc) equalText(r ref, text []byte) bool {
	raw := d.raw(r)
	k := kindOf(text[0])
	if d.kind(r) != k {
		return false
	}
	switch k {
	case kindNumber:
		return numbersEqual(raw, text)
	case kindString:
		return bytes.Equal(raw, text) || bytes.IndexByte(raw, '\\') >= 0 && d.equalParsed(r, text)
	case kindArray, kindObject:
		return d.equalParsed(r, text)
	default:
		return bytes.Equal(raw, text)
	}
}

func (d *doc) equalParsed(r ref, text []byte) bool {
	e := newDoc()
	defer e.free()
	if err := e.parse(text); err != nil {
		return false // cannot be: text is checked
	}
	return d.equal(r, e, root)
}
