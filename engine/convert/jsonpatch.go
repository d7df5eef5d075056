package convert

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// JSONPatch appends to dst the client's RFC 6902 JSON patch src for the server:
// pointers follow renames, and values that hold renamed, retyped or replaced
// fields are converted.
//
// The error is [ErrNeedsObject] where an operation's meaning depends on what the
// object holds, always so with a jq program, or an [*Error]; dst is then returned
// unchanged. Operations that are not RFC 6902's are left for the server to refuse.
func (c *Converter) JSONPatch(dst, src []byte, vars *Vars) ([]byte, error) {
	if len(src) > c.limits.ObjectBytes {
		return dst, c.badBody(ToServer, "cannot convert a patch of %d bytes: the limit is %d", len(src), c.limits.ObjectBytes)
	}
	d := newDoc()
	defer d.free()
	if err := d.parse(src); err != nil {
		return dst, c.notJSON(ToServer, err)
	}
	if d.kind(root) != kindArray {
		return dst, c.badBody(ToServer, "cannot convert the JSON patch: an array of operations is wanted")
	}
	if c.UsesJQ() {
		return dst, ErrNeedsObject
	}
	x := &run{c: c, d: d, dir: ToServer, mode: applied, acted: vars.acted()}
	count := 0
	for r := d.first(root); r != 0; {
		next := d.next(r)
		if count++; count > MaxJSONPatchOperations {
			return dst, c.badBody(ToServer, "the allowed maximum operations in a JSON patch is %d", MaxJSONPatchOperations)
		}
		if err := x.operation(r); err != nil {
			return dst, err
		}
		r = next
	}
	return d.appendTo(dst, root), nil
}

// operation is one operation of a JSON patch.
type operation struct {
	op         string
	path, from pointer
	value      ref // 0: none

	drop bool // it says nothing to the server
}

// operation converts the operation r in place.
func (x *run) operation(r ref) error {
	d := x.d
	var o operation
	if op := d.find(r, "op"); op != 0 && d.kind(op) == kindString {
		o.op = d.str(op)
	}
	pathAt, fromAt := d.find(r, "path"), d.find(r, "from")
	var ok bool
	if o.path, ok = d.pointer(pathAt); !ok {
		return nil // for the server to refuse
	}
	switch o.op {
	case "move", "copy":
		if o.from, ok = d.pointer(fromAt); !ok {
			return nil
		}
		if len(o.from) == 0 {
			return ErrNeedsObject
		}
	case "add", "replace", "test":
		o.value = d.find(r, "value")
	case "remove":
	default:
		return nil
	}
	if len(o.path) == 0 {
		return ErrNeedsObject // the whole object
	}
	path, from := o.path, o.from
	for _, s := range x.c.steps {
		if err := x.operationStep(s, &o, r); err != nil {
			return err
		}
		if o.drop {
			d.unlink(r)
			return nil
		}
	}
	if o.op != "remove" && o.op != "test" && x.c.overwritesPreserved(o.path) {
		return ErrNeedsObject
	}
	x.versionValue(&o)
	if !slices.Equal(path, o.path) {
		d.set(pathAt, o.path.appendQuoted(nil))
	}
	if !slices.Equal(from, o.from) {
		d.set(fromAt, o.from.appendQuoted(nil))
	}
	return nil
}

// rewrite does s on one operation.
func (x *run) rewrite(s *step, o *operation) error {
	if s.action == EnsureFieldExistence {
		return nil
	}
	if o.from != nil {
		if err := s.relocate(&o.from, false); err != nil {
			return err
		}
		return s.relocate(&o.path, true)
	}
	at := o.path.relation(s.from)
	switch s.action {
	case Modify:
		return x.rewriteModified(s, o, at)
	case Remove:
		return x.rewriteRemoved(s, o, at)
	default:
		return x.rewriteRenamed(s, o, at)
	}
}

func (x *run) rewriteRenamed(s *step, o *operation, at relation) error {
	switch at {
	case same:
		if !s.sibling() && (o.op == "add" || o.op == "remove") {
			return ErrNeedsObject // the target's parent comes and goes with it
		}
		if o.value != 0 {
			x.enter(s, o.path)
			if err := x.retype(s, o.value); err != nil {
				return err
			}
		}
		o.path = s.retarget(o.path)
	case below:
		o.path = s.retarget(o.path)
	case above:
		if o.path.relation(s.to) != above {
			return ErrNeedsObject // takes the field but not its target
		}
		return x.within(s, o)
	default:
		if s.touches(o.path, o.op == "add") {
			return ErrNeedsObject
		}
	}
	return nil
}

func (x *run) rewriteModified(s *step, o *operation, at relation) error {
	switch {
	case at == below:
		return ErrNeedsObject // a part of a value that counts as a whole
	case at == same && o.op == "test" && x.hides(s, o.value):
		return ErrNeedsObject
	case at == same && o.value != 0:
		x.enter(s, o.path)
		return x.modify(s, o.value)
	case at == above:
		return x.within(s, o)
	}
	return nil
}

// hides reports whether a client does not see the value r, which a test compares with, where
// the server has it: s makes another one of it on the way to the client, or of every value
// this one on the way to the server.
func (x *run) hides(s *step, r ref) bool {
	if s.replace == nil || r == 0 {
		return false
	}
	return s.match == nil || x.d.equalText(r, s.replace) && !bytes.Equal(s.match, s.replace)
}

func (x *run) rewriteRemoved(s *step, o *operation, at relation) error {
	switch {
	case at == same && o.op == "add":
		o.drop = true
	case at == same || at == below:
		return ErrNeedsObject
	case at == above:
		return x.within(s, o)
	}
	return nil
}

// within does s in the value of an operation on something that the field of s is
// in.
func (x *run) within(s *step, o *operation) error {
	if o.value == 0 {
		return nil
	}
	x.enter(s, o.path)
	n := len(o.path)
	inner := *s
	inner.base = s.base[min(n, len(s.base)):]
	if n -= len(s.base); n > 0 {
		inner.src = s.src[n:]
		inner.dst = s.dst[n:]
		inner.shared = max(s.shared-n, 0)
	}
	return x.each(&inner, o.value, 0)
}

// enter notes, for messages, the items that p leads into.
func (x *run) enter(s *step, p pointer) {
	x.index = x.index[:0]
	for i, e := range s.base {
		if !e.each || i >= len(p) {
			continue
		}
		index, err := strconv.Atoi(p[i])
		if err != nil {
			index = -1
		}
		x.index = append(x.index, index)
	}
}

// relocate does s on one pointer of a move or copy, whose value is not at hand.
// adds says that the value is put there.
func (s *step) relocate(p *pointer, adds bool) error {
	at := p.relation(s.from)
	switch s.action {
	case Remove:
		if at == same || at == below {
			return ErrNeedsObject
		}
		return nil
	case Modify:
		if at != apart {
			return ErrNeedsObject
		}
		return nil
	}
	retypes := s.typ != TypeUnknown || s.serverType != TypeUnknown
	switch {
	case at == above, at == same && (retypes || !s.sibling()), at == apart && s.touches(*p, adds):
		return ErrNeedsObject
	case at == same || at == below:
		*p = s.retarget(*p)
	}
	return nil
}

// touches reports whether p, which has nothing to do with the source of s, has to
// do with its target or, for something to be added, goes through objects that
// come and go with the move.
func (s *step) touches(p pointer, adds bool) bool {
	if p.relation(s.to) != apart {
		return true
	}
	if s.sibling() || !adds {
		return false
	}
	fork := len(s.base) + s.shared + 1
	return p.relation(s.from[:fork]) == below || p.relation(s.to[:fork]) == below
}

// retarget returns p, which leads to or through the source of s, with the target
// instead.
func (s *step) retarget(p pointer) pointer {
	out := slices.Clone(p[:len(s.base)])
	out = append(out, s.dst...)
	return append(out, p[len(s.from):]...)
}

// versionValue converts what an operation says the version or kind to be.
func (x *run) versionValue(o *operation) {
	d, spec := x.d, &x.c.spec
	if len(o.path) != 1 || o.value == 0 || d.kind(o.value) != kindString {
		return
	}
	switch value := d.str(o.value); o.path[0] {
	case "apiVersion":
		if value == x.c.apiVersion(ToServer) {
			d.set(o.value, appendQuoted(nil, x.c.apiVersion(ToClient)))
		}
	case "kind":
		if kind := rekind(value, &spec.From, &spec.To); kind != value {
			d.set(o.value, appendQuoted(nil, kind))
		}
	}
}

// pointer is an RFC 6901 JSON pointer: its tokens, unescaped. The empty pointer,
// which is not nil, is the whole document.
type pointer []string

var (
	pointerUnescape = strings.NewReplacer("~1", "/", "~0", "~")
	pointerEscape   = strings.NewReplacer("~", "~0", "/", "~1")
)

// pointer reads the pointer that the string r is.
func (d *doc) pointer(r ref) (pointer, bool) {
	if r == 0 || d.kind(r) != kindString {
		return nil, false
	}
	text := d.str(r)
	if text == "" {
		return pointer{}, true
	}
	if text[0] != '/' {
		return nil, false
	}
	tokens := strings.Split(text[1:], "/")
	for i, token := range tokens {
		tokens[i] = pointerUnescape.Replace(token)
	}
	return tokens, true
}

func (p pointer) appendQuoted(dst []byte) []byte {
	var b strings.Builder
	for _, token := range p {
		b.WriteByte('/')
		b.WriteString(pointerEscape.Replace(token))
	}
	return appendQuoted(dst, b.String())
}

// relation is how a pointer's place relates to a path's.
type relation int

const (
	apart relation = iota
	above          // the path leads through the pointer's place
	same
	below // the pointer leads through the path's place
)

func (p pointer) relation(q path) relation {
	for i := range min(len(p), len(q)) {
		if q[i].each {
			if !isIndex(p[i]) {
				return apart
			}
		} else if p[i] != q[i].key {
			return apart
		}
	}
	switch {
	case len(p) < len(q):
		return above
	case len(p) == len(q):
		return same
	default:
		return below
	}
}

// isIndex reports whether token is an array index: a number, or "-" for the place
// after the last item.
func isIndex(token string) bool {
	digits := strings.TrimPrefix(token, "-")
	if digits == "" {
		return token == "-"
	}
	for i := range len(digits) {
		if !isDigit(digits[i]) {
			return false
		}
	}
	return true
}
