package convert

import (
	"fmt"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Object appends to dst the object src of the converter's kind, in JSON,
// converted in direction dir. An object that does not say its apiVersion or kind
// is converted too and does not say it afterwards either. Objects of other kinds,
// and on the way to the client of other versions, are appended as they are.
//
// The error is an [*Error]; dst is then returned unchanged.
func (c *Converter) Object(dst, src []byte, dir Direction, vars *Vars) ([]byte, error) {
	return c.object(dst, src, dir, whole, vars)
}

func (c *Converter) object(dst, src []byte, dir Direction, m mode, vars *Vars) ([]byte, error) {
	d := newDoc()
	defer d.free()
	if err := c.parseObject(d, src, dir); err != nil {
		return dst, err
	}
	n := c.names(d, root)
	if is, err := c.concerns(n, dir); err != nil || !is {
		if err != nil {
			return dst, err
		}
		return append(dst, src...), nil
	}
	x := &run{c: c, d: d, at: root, dir: dir, mode: m}
	if err := x.convert(n, vars); err != nil {
		return dst, err
	}
	return d.appendTo(dst, root), nil
}

// parseObject makes src the document d; it must be one JSON object.
func (c *Converter) parseObject(d *doc, src []byte, dir Direction) error {
	limit := c.limits.ObjectBytes
	if dir == ToClient {
		limit = MaxAnswerObjectBytes
	}
	if len(src) > limit {
		return c.badBody(dir, "cannot convert an object of %d bytes: the limit is %d", len(src), limit)
	}
	if err := d.parse(src); err != nil {
		return c.notJSON(dir, err)
	}
	if d.kind(root) != kindObject {
		return c.badBody(dir, "cannot convert the body: a JSON object is wanted")
	}
	return nil
}

// concerns reports whether an object with names n is one to convert. A client's
// object in another version is an error, in the words of the apiserver.
func (c *Converter) concerns(n names, dir Direction) (bool, error) {
	v := c.source(dir)
	if n.kindAt != 0 && !v.isKind(n.kind) {
		return false, nil
	}
	if n.apiVersionAt == 0 || n.apiVersion == c.apiVersion(dir) {
		return true, nil
	}
	if dir == ToClient {
		return false, nil
	}
	return false, c.badBody(dir, "the API version in the data (%s) does not match the expected API version (%s)",
		n.apiVersion, c.apiVersion(dir))
}

// convert converts the object at x.at, whose names n are, in place.
func (x *run) convert(n names, vars *Vars) error {
	if x.dir == ToServer {
		if err := x.rules(); err != nil {
			return err
		}
		if x.c.request != nil {
			if err := x.program(x.c.request, &n, vars); err != nil {
				return err
			}
		}
	} else {
		if x.c.response != nil {
			if err := x.program(x.c.response, &n, vars); err != nil {
				return err
			}
		}
		if err := x.rules(); err != nil {
			return err
		}
	}
	x.setVersion(x.at, n)
	return nil
}

// identity is the metadata that a conversion never changes, as for conversion
// webhooks: all of it but labels and annotations.
var identity = []string{
	"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation",
	"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers",
	"ownerReferences", "managedFields",
}

// program runs a jq program on the object and puts the result in its place, with
// the identity, version and kind that the object had.
func (x *run) program(p *program, n *names, vars *Vars) error {
	d := x.d
	metadata := d.find(x.at, "metadata")
	var kept []ref
	for _, key := range identity {
		var r ref
		if metadata != 0 {
			r = d.find(metadata, key)
		}
		kept = append(kept, r)
	}
	out, err := p.run(d.bytes(x.at), x.variables(vars), x.c.limits)
	if err != nil {
		return &Error{Policy: x.c.spec.Policy, Pos: p.pos, Msg: err.Error(), Err: err}
	}
	d.set(x.at, out)
	if err := x.restoreIdentity(p, metadata, kept); err != nil {
		return err
	}
	x.restore(x.at, "apiVersion", n.apiVersionAt)
	x.restore(x.at, "kind", n.kindAt)
	*n = x.c.names(d, x.at)
	return nil
}

// restoreIdentity puts the identity fields, which were at kept below metadata,
// into the metadata that the program left.
func (x *run) restoreIdentity(p *program, metadata ref, kept []ref) error {
	d := x.d
	r := d.find(x.at, "metadata")
	if r != 0 && d.kind(r) != kindObject {
		if metadata != 0 && d.kind(metadata) == d.kind(r) {
			return nil // it was no object before
		}
		return &Error{
			Policy: x.c.spec.Policy, Pos: p.pos,
			Msg: fmt.Sprintf("the program made metadata %s, wanted an object", source.Cut(string(d.raw(r)))),
		}
	}
	if r == 0 {
		if metadata == 0 {
			return nil
		}
		r = d.add(x.at, "metadata", []byte("{}"))
	}
	for i, key := range identity {
		x.restore(r, key, kept[i])
	}
	return nil
}

// restore gives the member key of r the value that the node old had; none when
// old is 0.
func (x *run) restore(r ref, key string, old ref) {
	d := x.d
	m := d.find(r, key)
	switch {
	case old == 0 && m != 0:
		d.unlink(m)
	case old == 0:
	case m == 0:
		m = d.add(r, key, []byte("null"))
		fallthrough
	default:
		d.setSpan(m, d.nodes[old].val, d.nodes[old].ownVal)
	}
}

// variables are the values of a program's variables, in the order of
// programVariables.
func (x *run) variables(vars *Vars) []any {
	request := map[string]any{}
	if vars != nil {
		for key, v := range vars.Request {
			request[key] = jqValue(v)
		}
	}
	return []any{request, x.c.apiVersion(x.dir), x.c.apiVersion(x.dir.reverse())}
}
