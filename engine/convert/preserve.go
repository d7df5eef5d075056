package convert

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Preserved is a field of the server's version that the client's version cannot
// hold, so that a client that writes what it has read leaves it out.
type Preserved struct {
	Path string     // in the server's version; not through a list
	Pos  source.Pos // of Path in its file
}

// maxPreserved is how many fields one conversion may preserve: each costs one
// look-up per update.
const maxPreserved = 64

// compilePreserve reads the paths of the fields to preserve.
func compilePreserve(spec *Spec) (paths []path, errs source.Errors) {
	fail := func(at source.Pos, msg string) { errs = append(errs, &source.Error{Pos: at, Msg: "preserve: " + msg}) }
	if len(spec.Preserve) > maxPreserved {
		fail(spec.Preserve[maxPreserved].Pos, fmt.Sprintf("more than %d fields; name an object that holds several of them", maxPreserved))
		return nil, errs
	}
	for _, field := range spec.Preserve {
		p, err := parsePath(field.Path)
		switch {
		case err != nil:
			fail(field.Pos, err.Error())
		case slices.ContainsFunc(p, func(e elem) bool { return e.each }):
			fail(field.Pos, field.Path+" goes through a list, whose items cannot be told apart after a client has changed it; preserve a field outside of lists")
		case protected(p) != "":
			fail(field.Pos, field.Path+" always comes through as it is: "+protected(p))
		case slices.ContainsFunc(paths, func(q path) bool { return p.hasPrefix(q) || q.hasPrefix(p) }):
			fail(field.Pos, field.Path+" is preserved twice: keep one of the paths")
		default:
			paths = append(paths, p)
		}
	}
	return paths, errs
}

// Preserves reports whether an update has to go through [Converter.Keep].
func (c *Converter) Preserves() bool { return len(c.preserve) > 0 }

// hiddenPaths are the preserved fields that a client does not get to see: its version does
// not have them, and a client that checks what it writes against its version's schema, as
// kubectl does, could not write an object back with them. One that a rule makes something
// of is not hidden, nor is any from a program, which may make something of all of them.
func (c *Converter) hiddenPaths() []path {
	if c.UsesJQ() {
		return nil
	}
	var hidden []path
	for _, p := range c.preserve {
		concerns := func(s *step) bool {
			if s.action == EnsureFieldExistence || s.action == Remove {
				return false
			}
			to := c.serverPath(s.number, s.to)
			return p.hasPrefix(to) || to.hasPrefix(p)
		}
		if !slices.ContainsFunc(c.steps, concerns) {
			hidden = append(hidden, p)
		}
	}
	return hidden
}

// Hides reports whether the client sees none of what is preserved, so that nothing it
// writes can be about that.
func (c *Converter) Hides() bool { return len(c.hidden) == len(c.preserve) }

// Keep returns body, a client's whole object that was converted for the server,
// with the preserved fields of current, which is what the server has now. A field
// is kept where the client says nothing of it: body has none, or the one that the
// policy writes by itself. It is not kept where the client took away the object
// that holds it, nor where the client has a value of its own.
//
// The update must be made under the condition that current still is what the
// server has. The error is an [*Error].
func (c *Converter) Keep(body, current []byte, vars *Vars) ([]byte, error) {
	now, after := newDoc(), newDoc()
	defer now.free()
	defer after.free()
	if err := c.parseObject(now, current, ToClient); err != nil {
		return nil, err
	}
	if err := c.parseObject(after, body, ToServer); err != nil {
		return nil, err
	}
	k := keeping{after: after, unchanged: newDoc(), bare: newDoc()}
	defer k.unchanged.free()
	defer k.bare.free()
	c.rewrite(k.unchanged, current, vars)
	c.rewrite(k.bare, c.withoutPreserved(current), vars)
	if !c.UsesJQ() {
		k.client = newDoc()
		defer k.client.free()
		if seen, err := c.Object(nil, current, ToClient, vars); err != nil || k.client.parse(seen) != nil {
			_ = k.client.parse([]byte("{}"))
		}
	}
	for _, p := range c.preserve {
		if value := now.valueAt(p); value != 0 {
			k.keep(c, p, now.raw(value))
		}
	}
	return after.bytes(root), nil
}

// rewrite makes d what the server would get from a client that writes object, which
// is the server's, back as it has read it. It is empty where that would be refused.
func (c *Converter) rewrite(d *doc, object []byte, vars *Vars) {
	seen, err := c.Object(nil, object, ToClient, vars)
	if err == nil {
		seen, err = c.Object(nil, seen, ToServer, vars)
	}
	if err == nil {
		err = d.parse(seen)
	}
	if err != nil {
		_ = d.parse([]byte("{}"))
	}
}

// withoutPreserved returns the checked object of the server's without what is
// preserved of it.
func (c *Converter) withoutPreserved(object []byte) []byte {
	d := newDoc()
	defer d.free()
	_ = d.parse(object)
	for _, p := range c.preserve {
		d.prune(root, p)
	}
	return d.bytes(root)
}

// ResourceVersion returns metadata.resourceVersion of a JSON object, "" when there
// is none. Keys are told apart by case, as kube-apiserver does.
func ResourceVersion(object []byte) (string, error) {
	d := newDoc()
	defer d.free()
	if err := d.parse(object); err != nil {
		return "", err
	}
	at := d.valueAt(path{{key: "metadata"}, {key: "resourceVersion"}})
	switch {
	case at == 0 || d.isNull(at):
		return "", nil
	case d.kind(at) != kindString:
		return "", errors.New("metadata.resourceVersion is no string")
	}
	return d.str(at), nil
}

// valueAt finds the value at p, which goes through objects only; 0: there is none.
func (d *doc) valueAt(p path) ref { return d.below(root, p) }

// below is valueAt for a path that begins at r.
func (d *doc) below(r ref, p path) ref {
	for _, e := range p {
		if d.kind(r) != kindObject {
			return 0
		}
		if r = d.find(r, e.key); r == 0 {
			return 0
		}
	}
	return r
}

// prune removes the field at p of the object at, and the objects around it that held
// nothing else.
func (d *doc) prune(at ref, p path) {
	for r := d.below(at, p); r != 0 && r != at; {
		parent := d.nodes[r].parent
		d.unlink(r)
		if !d.isEmpty(parent) {
			return
		}
		r = parent
	}
}

// keeping is the work of [Converter.Keep] on one object.
type keeping struct {
	after *doc // the client's, for the server

	// What the server gets from clients that change nothing: one that writes back what
	// it has read, and one whose version has none of the preserved fields.
	unchanged, bare *doc

	// What the client sees, where it is known what becomes of a path there; else nil.
	client *doc
}

// hadObject reports whether the client could take away the object at p. One that rules
// make around what they move is none of the client's.
func (k *keeping) hadObject(c *Converter, p path) bool {
	if k.client != nil {
		return k.client.valueAt(c.clientPath(len(c.steps), p)) != 0
	}
	return k.bare.valueAt(p) != 0
}

// keep writes value at p of the client's object, unless the client's own write is to
// stand.
func (k *keeping) keep(c *Converter, p path, value []byte) {
	if own := k.after.valueAt(p); own != 0 {
		if k.isUnchanged(p, own) {
			k.after.set(own, value)
		}
		return
	}
	r := root
	for i, e := range p[:len(p)-1] {
		next := k.after.find(r, e.key)
		switch {
		case next != 0 && k.after.kind(next) == kindObject:
		case k.hadObject(c, p[:i+1]) || next != 0 && !k.after.isNull(next):
			return // the client took the object away, or put something else there
		case next != 0:
			k.after.set(next, []byte("{}"))
		default:
			next = k.after.add(r, e.key, []byte("{}"))
		}
		r = next
	}
	k.after.add(r, p[len(p)-1].key, value)
}

// isUnchanged reports whether the value own at p is one that comes of a client that
// changes nothing.
func (k *keeping) isUnchanged(p path, own ref) bool {
	for _, before := range [...]*doc{k.unchanged, k.bare} {
		if was := before.valueAt(p); was != 0 && before.equal(was, k.after, own) {
			return true
		}
	}
	return false
}

// overwritesPreserved reports whether a value written at target, a place in the
// server's version, replaces an object that holds a preserved field.
func (c *Converter) overwritesPreserved(target pointer) bool {
	return slices.ContainsFunc(c.preserve, func(p path) bool {
		if len(target) >= len(p) {
			return false
		}
		for i, token := range target {
			if p[i].key != token {
				return false
			}
		}
		return true
	})
}

// replacesObjects reports whether a strategic merge patch has a directive that
// drops what it does not name, so that preserved fields may be among that.
func (c *Converter) replacesObjects(patch []byte) bool {
	return c.Preserves() && (bytes.Contains(patch, []byte(directivePatch)) || bytes.Contains(patch, []byte(retainKeys)))
}
