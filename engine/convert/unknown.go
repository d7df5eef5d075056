package convert

import (
	"slices"
	"strconv"
)

// Without appends to dst the JSON document src without the values at paths, which are as
// kube-apiserver writes them: of fields, or of the items of a list by their index. One
// that leads nowhere is passed over.
//
// It is for fields that the client's version does not have and that the conversion would
// take for others ([Converter.Takes]): a server of the client's version drops all unknown
// fields, the rest of them are for the server to judge, since it may have them and the
// client may have got them from it.
func Without(dst, src []byte, paths []string) []byte {
	if len(paths) == 0 {
		return append(dst, src...)
	}
	d := newDoc()
	defer d.free()
	if d.parse(src) != nil {
		return append(dst, src...)
	}
	var found []ref
	for _, path := range paths { // before any goes, so that indexes stay right
		if r := d.fieldAt(splitFields(path)); r != 0 && r != root {
			found = append(found, r)
		}
	}
	for _, r := range found {
		if d.nodes[r].parent != 0 { // it may be named twice
			d.unlink(r)
		}
	}
	return d.appendTo(dst, root)
}

// RenameTarget reports whether the field at path, as kube-apiserver writes it, stands
// where a rule puts another field, or around it or in it.
func (c *Converter) RenameTarget(path string) bool { return c.hitsTarget(splitFields(path)) }

// UnknownFields is what a [Schema] may know beside types.
type UnknownFields interface {
	// Unknown returns the paths of the fields of object, in JSON, that the kind does not
	// have, as kube-apiserver writes them.
	Unknown(object []byte) []string
}

// Misplaced returns the fields of the client's object src, in JSON, that its version is
// known not to have and that the conversion would take for others.
func (c *Converter) Misplaced(src []byte) []string {
	schema := any(c.client)
	if named, ok := c.client.(Named); ok {
		schema = named.Types
	}
	known, ok := schema.(UnknownFields)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(known.Unknown(src), func(path string) bool { return !c.Takes(path) })
}

// Takes reports whether the conversion does something on the way to the server with a
// field at path, which the client's version does not have: it stands where a rule puts
// another field, or has a name that a program of requests uses.
func (c *Converter) Takes(path string) bool {
	p := splitFields(path)
	if c.hitsTarget(p) {
		return true
	}
	if len(p) == 0 || p[len(p)-1].bracketed {
		return false
	}
	name := p[len(p)-1].name
	return slices.ContainsFunc(c.links, func(l link) bool { return l.of.request != nil && l.of.request.wording.names[name] })
}

func (c *Converter) hitsTarget(p fields) bool {
	if len(p) == 0 {
		return false
	}
	for _, s := range c.steps {
		if !s.renames() {
			continue
		}
		n := min(len(p), len(s.to))
		if head := p[:n]; head.renamed(s.to[:n], nil, 0) {
			return true
		}
	}
	return false
}

// fieldAt returns the value at p, whose brackets are indexes; 0 when there is none.
func (d *doc) fieldAt(p fields) ref {
	r := root
	for _, f := range p {
		if !f.bracketed {
			if r = d.find(r, f.name); r == 0 {
				return 0
			}
			continue
		}
		i, err := strconv.Atoi(f.name)
		if err != nil || d.kind(r) != kindArray {
			return 0
		}
		for r = d.first(r); r != 0 && i > 0; i-- {
			r = d.next(r)
		}
		if r == 0 {
			return 0
		}
	}
	return r
}
