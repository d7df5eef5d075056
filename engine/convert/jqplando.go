package convert

// nothing is jq's identity.
type nothing struct{}

func (nothing) apply(*planRun, ref) bool { return true }

// abandoned is a term that fails, or has no result: gojq knows what to say.
type abandoned struct{}

func (abandoned) apply(*planRun, ref) bool { return false }

// sequence is first, then then.
type sequence struct{ first, then transform }

func (t *sequence) apply(p *planRun, at ref) bool {
	return t.first.apply(p, at) && t.then.apply(p, at)
}

// replaced puts a value in the place of another.
type replaced struct{ value expr }

func (t *replaced) apply(p *planRun, at ref) bool {
	v, ok := t.value.eval(p, at)
	return ok && p.put(at, v)
}

// hold keeps a value in a slot and changes nothing.
type hold struct {
	slot  int
	value expr
}

func (t *hold) apply(p *planRun, at ref) bool {
	v, ok := t.value.eval(p, at)
	if ok {
		v, ok = p.copyOf(v)
	}
	p.slots[t.slot] = v
	return ok
}

// when is an if. A nil no is to do nothing.
type when struct {
	cond    expr
	yes, no transform
}

func (t *when) apply(p *planRun, at ref) bool {
	v, ok := t.cond.eval(p, at)
	switch {
	case !ok:
		return false
	case p.isTrue(v):
		return t.yes.apply(p, at)
	case t.no != nil:
		return t.no.apply(p, at)
	default:
		return true
	}
}

// there returns the value at keys below r, and 0 when it is absent or jq cannot
// look for it.
func (p *planRun) there(r ref, keys []string) ref {
	for _, key := range keys {
		if r = p.d.find(r, key); r == 0 {
			return 0
		}
	}
	return r
}

// moved is the helper move.
type moved struct {
	from, to []string
	sibling  bool // the two are different members of the same object
}

func (t *moved) apply(p *planRun, at ref) bool {
	d := p.d
	v := p.there(at, t.from)
	if v == 0 {
		return true
	}
	last := t.to[len(t.to)-1]
	if t.sibling {
		if old := d.find(d.nodes[v].parent, last); old != 0 {
			d.unlink(old)
		}
		d.setKey(v, last) // it keeps its position
		return true
	}
	d.unlink(v)
	for _, key := range t.to {
		var ok bool
		if at, ok = p.made(at, key); !ok {
			return false
		}
	}
	parent := d.nodes[at].parent
	d.unlink(at)
	d.attach(parent, v, last)
	return true
}

// mapped is the helper mapvalue.
type mapped struct {
	keys []string
	is   expr
	to   expr
}

func (t *mapped) apply(p *planRun, at ref) bool {
	r := p.there(at, t.keys)
	if r == 0 {
		return true
	}
	is, ok := t.is.eval(p, r)
	if !ok || !p.isTrue(is) {
		return ok
	}
	v, ok := t.to.eval(p, r)
	return ok && p.put(r, v)
}

// ensured is the helper ensure.
type ensured struct {
	keys  []string
	value expr
}

func (t *ensured) apply(p *planRun, at ref) bool {
	for _, key := range t.keys {
		var ok bool
		if at, ok = p.made(at, key); !ok {
			return false
		}
	}
	if !p.d.isNull(at) {
		return true
	}
	v, ok := t.value.eval(p, at)
	return ok && p.put(at, v)
}
