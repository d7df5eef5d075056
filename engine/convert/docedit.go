package convert

// The edits of a document. Each marks what it changed, so that appendTo copies
// the rest as it was.

// soil marks r and everything around it as changed.
func (d *doc) soil(r ref) {
	for r != 0 && !d.nodes[r].dirty {
		d.nodes[r].dirty = true
		r = d.nodes[r].parent
	}
}

// write puts text into the document's own text.
func (d *doc) write(text []byte) span {
	start := len(d.own)
	d.own = append(d.own, text...)
	return span{int32(start), int32(len(d.own))}
}

// set makes text, one checked JSON value without white space around it, the
// value of r.
func (d *doc) set(r ref, text []byte) {
	val := d.write(text)
	d.setSpan(r, val, true)
}

// setString makes the string s the value of r.
func (d *doc) setString(r ref, s string) {
	start := len(d.own)
	d.own = appendQuoted(d.own, s)
	d.setSpan(r, span{int32(start), int32(len(d.own))}, true)
}

// setSpan makes a checked value in one of the two texts the value of r.
func (d *doc) setSpan(r ref, val span, own bool) {
	n := &d.nodes[r]
	n.val, n.ownVal = val, own
	n.kind = kindOf(d.text(own)[val.start])
	n.child, n.last, n.expanded, n.dirty, n.touched = 0, 0, false, false, true
	d.soil(n.parent)
}

// setKey renames the member r where it stands.
func (d *doc) setKey(r ref, key string) {
	start := len(d.own)
	d.own = appendQuoted(d.own, key)
	n := &d.nodes[r]
	n.key, n.ownKey = span{int32(start), int32(len(d.own))}, true
	n.escaped = len(d.own)-start != len(key)+2
	n.touched = true
	d.soil(n.parent)
}

// unlink takes r out of its parent. It can be put elsewhere with attach.
func (d *doc) unlink(r ref) {
	n := &d.nodes[r]
	parent := n.parent
	if n.prev == 0 {
		d.nodes[parent].child = n.next
	} else {
		d.nodes[n.prev].next = n.next
	}
	if n.next == 0 {
		d.nodes[parent].last = n.prev
	} else {
		d.nodes[n.next].prev = n.prev
	}
	n.next, n.prev, n.parent = 0, 0, 0
	d.soil(parent)
}

// attach makes the unlinked r the last member of the object parent, under key.
func (d *doc) attach(parent, r ref, key string) {
	d.attachItem(parent, r)
	d.setKey(r, key)
}

// attachItem makes the unlinked r the last item of the array parent.
func (d *doc) attachItem(parent, r ref) {
	d.expand(parent)
	n, p := &d.nodes[r], &d.nodes[parent]
	n.parent, n.prev, n.next = parent, p.last, 0
	n.pre, n.spaced = span{}, false
	if p.last == 0 {
		p.child = r
	} else {
		l := &d.nodes[p.last]
		l.next = r
		n.pre, n.ownPre, n.spaced = l.pre, l.ownPre, l.spaced
	}
	p.last = r
	n.touched = true
	d.soil(parent)
}

// add makes text, one checked JSON value, the last member of the object parent,
// under key.
func (d *doc) add(parent ref, key string, text []byte) ref {
	return d.addSpan(parent, key, d.write(text))
}

// addSpan is add for a value that is in the document's own text.
func (d *doc) addSpan(parent ref, key string, val span) ref {
	r := d.detached(val, true)
	d.attach(parent, r, key)
	return r
}

// detached makes a checked value in one of the two texts a node without a parent.
func (d *doc) detached(val span, own bool) ref {
	r := ref(len(d.nodes))
	d.nodes = append(d.nodes, node{val: val, ownVal: own, kind: kindOf(d.text(own)[val.start])})
	return r
}

// isEmpty reports whether the object or array r has no members.
func (d *doc) isEmpty(r ref) bool { return d.first(r) == 0 }
