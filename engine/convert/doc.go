package convert

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
)

// kind is what a JSON value is.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// kindOf tells the kind by a checked value's first byte.
func kindOf(c byte) kind {
	switch c {
	case '{':
		return kindObject
	case '[':
		return kindArray
	case '"':
		return kindString
	case 'n':
		return kindNull
	case 't', 'f':
		return kindBool
	default:
		return kindNumber
	}
}

// span is a part of one of a document's two texts.
type span struct{ start, end int32 }

// ref names a node of a document. The zero ref is no node.
type ref int32

const root ref = 1

// node is one value. Its bytes lie in the text that was parsed or, when written
// since, in the document's own. Until somebody looks into an object or array its
// members do not exist as nodes.
type node struct {
	val span
	key span // with its quotes; of a member only
	pre span // the white space before the key or item

	next, prev, parent ref
	child, last        ref // the first and last member; of an expanded one

	tail int32 // where the white space before the closing bracket starts; of an expanded one
	kind kind

	ownVal, ownKey, ownPre bool // which text the spans are in

	expanded bool
	dirty    bool // this value is not what val says any more: its members are
	touched  bool // key, value or place are not the parsed ones
	escaped  bool // the key has escapes
	spaced   bool // there was white space between colon and value
}

// doc is a JSON text and its edits. It never changes the text it was given, and
// refers to it until reset. One goroutine at a time.
type doc struct {
	src   []byte // the parsed text
	own   []byte // what edits wrote
	nodes []node // nodes[0] is no node
}

var docs = sync.Pool{New: func() any { return new(doc) }}

// maxPooledNodes is how many nodes (60 bytes each) a pooled document may keep,
// so that one vast object does not hold its memory for ever.
const maxPooledNodes = 16 << 10

func newDoc() *doc { return docs.Get().(*doc) }

// free gives d back. Nothing of d may be used afterwards.
func (d *doc) free() {
	if cap(d.nodes) > maxPooledNodes || cap(d.own) > 64*maxPooledNodes {
		return
	}
	d.src = nil
	docs.Put(d)
}

// syntaxError says where a text is not JSON.
type syntaxError struct {
	offset int // counts from 0
	fault  fault
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("%v at byte %d of the JSON text", e.fault, e.offset+1)
}

// parse checks the whole of src and makes it the document. Of its nodes only
// root and root's members exist afterwards.
func (d *doc) parse(src []byte) error {
	end, f := d.parseStart(src, "")
	if f != noFault {
		return &syntaxError{end, f}
	}
	if rest := skipSpace(src, end); rest < len(src) {
		return &syntaxError{rest, badSyntax}
	}
	return nil
}

// parseStart is parse for the value that src starts with, and returns the position
// after it, or that of the fault. If open is a member of it that is an object, the
// members of that get nodes in the same pass.
func (d *doc) parseStart(src []byte, open string) (int, fault) {
	d.src, d.own = src, d.own[:0]
	d.nodes = append(d.nodes[:0], node{}, node{})
	start := skipSpace(src, 0)
	if start >= len(src) {
		return len(src), truncated
	}
	n := &d.nodes[root]
	n.kind = kindOf(src[start])
	n.val.start = int32(start)
	var end int
	var f fault
	if n.kind == kindObject || n.kind == kindArray {
		end, f = d.parseMembers(root, start, 1, open)
	} else {
		end, f = checkValue(src, start, 0)
	}
	d.nodes[root].val.end = int32(end)
	return end, f
}

// parseMembers checks the object or array r at start, whose members lie inside depth
// others, and makes the members nodes.
func (d *doc) parseMembers(r ref, start, depth int, open string) (int, fault) {
	b := d.src
	object := b[start] == '{'
	closing := b[start] + 2 // '}' is '{' + 2, ']' is '[' + 2
	d.nodes[r].expanded = true
	lead := start + 1
	i := skipSpace(b, lead)
	if i < len(b) && b[i] == closing {
		d.nodes[r].tail = int32(lead)
		return i + 1, noFault
	}
	for {
		n := node{parent: r, pre: span{int32(lead), int32(i)}}
		var f fault
		if object {
			keyStart := i
			if i, f = checkKey(b, i); f != noFault {
				return i, f
			}
			n.setKey(b, keyStart, i)
		}
		if i, f = d.parseMember(n, i, depth, open); f != noFault {
			return i, f
		}
		lead = i
		if i = skipSpace(b, i); i >= len(b) {
			return i, truncated
		}
		switch b[i] {
		case ',':
			lead = i + 1
			i = skipSpace(b, lead)
		case closing:
			d.nodes[r].tail = int32(lead)
			return i + 1, noFault
		default:
			return i, badSyntax
		}
	}
}

// parseMember checks the value at i and makes it the node n.
func (d *doc) parseMember(n node, i, depth int, open string) (int, fault) {
	n.val.start = int32(i)
	if open != "" && n.key != (span{}) && i < len(d.src) && d.src[i] == '{' && string(d.src[n.key.start+1:n.key.end-1]) == open {
		n.kind = kindObject
		r := d.link(n.parent, n)
		end, f := d.parseMembers(r, i, depth+1, "")
		d.nodes[r].val.end = int32(end)
		return end, f
	}
	end, f := checkValue(d.src, i, depth)
	if f != noFault {
		return end, f
	}
	n.val.end = int32(end)
	n.kind = kindOf(d.src[i])
	d.link(n.parent, n)
	return end, noFault
}

// setKey finds the end of the key at keyStart; the value starts at valStart.
func (n *node) setKey(b []byte, keyStart, valStart int) {
	keyEnd := skipString(b, keyStart)
	n.key = span{int32(keyStart), int32(keyEnd)}
	n.escaped = bytes.IndexByte(b[keyStart:keyEnd], '\\') >= 0
	n.spaced = isSpace(b[valStart-1])
}

// link appends n to the members of parent, and returns where it is.
func (d *doc) link(parent ref, n node) ref {
	r := ref(len(d.nodes))
	n.prev = d.nodes[parent].last
	d.nodes = append(d.nodes, n)
	d.nodes[parent].last = r
	if n.prev == 0 {
		d.nodes[parent].child = r
	} else {
		d.nodes[n.prev].next = r
	}
	return r
}

// expand makes the members of the object or array r nodes.
func (d *doc) expand(r ref) {
	if d.nodes[r].expanded {
		return
	}
	n := &d.nodes[r]
	n.expanded = true
	own, object := n.ownVal, n.kind == kindObject
	b := d.text(own)[:n.val.end]
	lead := int(n.val.start) + 1
	i := skipSpace(b, lead)
	if i == len(b)-1 {
		n.tail = int32(lead)
		return
	}
	for {
		m := node{parent: r, pre: span{int32(lead), int32(i)}, ownVal: own, ownKey: own, ownPre: own}
		if object {
			keyStart := i
			i = skipSpace(b, skipString(b, i))
			i = skipSpace(b, i+1)
			m.setKey(b, keyStart, i)
		}
		m.val.start = int32(i)
		i = skipValue(b, i)
		m.val.end = int32(i)
		m.kind = kindOf(b[m.val.start])
		d.link(r, m)
		lead = i
		i = skipSpace(b, i)
		if i >= len(b)-1 {
			d.nodes[r].tail = int32(lead)
			return
		}
		lead = i + 1
		i = skipSpace(b, lead)
	}
}

func (d *doc) text(own bool) []byte {
	if own {
		return d.own
	}
	return d.src
}

// raw returns the bytes of r as they were before its members were edited.
func (d *doc) raw(r ref) []byte {
	n := &d.nodes[r]
	return d.text(n.ownVal)[n.val.start:n.val.end]
}

// rawKey returns the inside of the key of r.
func (d *doc) rawKey(r ref) []byte {
	n := &d.nodes[r]
	return d.text(n.ownKey)[n.key.start+1 : n.key.end-1]
}

// key returns the name of the member r.
func (d *doc) key(r ref) string {
	raw := d.rawKey(r)
	if d.nodes[r].escaped {
		raw = appendUnquoted(nil, raw)
	}
	return string(raw)
}

func (d *doc) keyIs(r ref, key string) bool {
	raw := d.rawKey(r)
	if !d.nodes[r].escaped {
		return string(raw) == key
	}
	return string(appendUnquoted(nil, raw)) == key
}

// str returns what the string r says.
func (d *doc) str(r ref) string {
	raw := d.raw(r)
	return string(appendUnquoted(nil, raw[1:len(raw)-1]))
}

// strIs reports whether r is the string s.
func (d *doc) strIs(r ref, s string) bool {
	if d.nodes[r].kind != kindString {
		return false
	}
	raw := d.raw(r)
	raw = raw[1 : len(raw)-1]
	if string(raw) == s {
		return bytes.IndexByte(raw, '\\') < 0
	}
	return bytes.IndexByte(raw, '\\') >= 0 && string(appendUnquoted(nil, raw)) == s
}

func (d *doc) kind(r ref) kind { return d.nodes[r].kind }

func (d *doc) isNull(r ref) bool { return d.nodes[r].kind == kindNull }

func (d *doc) next(r ref) ref { return d.nodes[r].next }

// first returns the first member of r, or 0 when it has none or is no object or
// array.
func (d *doc) first(r ref) ref {
	if k := d.nodes[r].kind; k != kindObject && k != kindArray {
		return 0
	}
	d.expand(r)
	return d.nodes[r].child
}

// find returns the member of r called key, or 0. Of members of the same name the
// last counts, as in the apiserver, and the others are dropped.
func (d *doc) find(r ref, key string) ref {
	if d.nodes[r].kind != kindObject {
		return 0
	}
	var found ref
	for m := d.first(r); m != 0; m = d.nodes[m].next {
		if d.keyIs(m, key) {
			if found != 0 {
				d.unlink(found)
			}
			found = m
		}
	}
	return found
}

// appendTo appends the text of r with its edits.
func (d *doc) appendTo(dst []byte, r ref) []byte {
	if !d.nodes[r].dirty {
		return append(dst, d.raw(r)...)
	}
	n := &d.nodes[r]
	b := d.text(n.ownVal)
	dst = append(dst, b[n.val.start])
	for m := n.child; m != 0; m = d.nodes[m].next {
		if m != n.child {
			dst = append(dst, ',')
		}
		dst = d.appendMember(dst, m)
	}
	dst = append(dst, b[n.tail:n.val.end-1]...)
	return append(dst, b[n.val.end-1])
}

func (d *doc) appendMember(dst []byte, r ref) []byte {
	n := &d.nodes[r]
	if !n.touched && !n.dirty {
		// Nothing of it changed: white space, key, colon and value in one piece.
		return append(dst, d.text(n.ownVal)[n.pre.start:n.val.end]...)
	}
	dst = append(dst, d.text(n.ownPre)[n.pre.start:n.pre.end]...)
	if n.key != (span{}) {
		dst = append(dst, d.text(n.ownKey)[n.key.start:n.key.end]...)
		dst = append(dst, ':')
		if n.spaced {
			dst = append(dst, ' ')
		}
	}
	return d.appendTo(dst, r)
}

// size returns how long the text of r with its edits is.
func (d *doc) size(r ref) int {
	n := &d.nodes[r]
	if !n.dirty {
		return int(n.val.end - n.val.start)
	}
	size := 1 + int(n.val.end-n.tail) // the brackets
	for m := n.child; m != 0; m = d.nodes[m].next {
		if m != n.child {
			size++
		}
		size += d.memberSize(m)
	}
	return size
}

func (d *doc) memberSize(r ref) int {
	n := &d.nodes[r]
	if !n.touched && !n.dirty {
		return int(n.val.end - n.pre.start)
	}
	size := int(n.pre.end-n.pre.start) + d.size(r)
	if n.key != (span{}) {
		size += int(n.key.end-n.key.start) + 1
		if n.spaced {
			size++
		}
	}
	return size
}

// bytes returns the text of r with its edits, as a slice of its own.
func (d *doc) bytes(r ref) []byte {
	return d.appendTo(slices.Grow([]byte(nil), len(d.raw(r))+64), r)
}
