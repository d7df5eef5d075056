package convert

import (
	"strings"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Differences returns where two JSON texts differ: the paths of what only one of
// them has and of what is not the same in both, at most limit of them, objects
// regardless of their order. Lists are compared item by item, or as a whole where
// they are not of one length. The paths show keys and never a value; "." is the
// whole.
//
// The error says that one of the two is no JSON.
func Differences(before, after []byte, limit int) ([]string, error) {
	d, e := newDoc(), newDoc()
	defer d.free()
	defer e.free()
	if err := d.parse(before); err != nil {
		return nil, err
	}
	if err := e.parse(after); err != nil {
		return nil, err
	}
	c := differences{d: d, e: e, limit: limit}
	c.values(root, root, "")
	return c.paths, nil
}

// differences compares one document with another.
type differences struct {
	d, e  *doc
	limit int
	depth int
	paths []string
}

func (c *differences) full() bool { return len(c.paths) >= c.limit }

// differ notes that path is a difference.
func (c *differences) differ(path string) {
	if path == "" {
		path = "."
	}
	if !c.full() {
		c.paths = append(c.paths, path)
	}
}

// values compares r of d with s of e, which are at path. Deeper than the paths of
// rules go, it tells no more than where that is.
func (c *differences) values(r, s ref, path string) {
	c.depth++
	defer func() { c.depth-- }()
	same := c.d.kind(r) == c.e.kind(s)
	switch {
	case c.full():
	case c.depth > MaxPathElements:
		if !c.d.equal(r, c.e, s) {
			c.differ(path)
		}
	case same && c.d.kind(r) == kindObject:
		c.objects(r, s, path)
	case same && c.d.kind(r) == kindArray:
		c.arrays(r, s, path)
	case !same || !c.d.equal(r, c.e, s):
		c.differ(path)
	}
}

func (c *differences) objects(r, s ref, path string) {
	a, b := c.d.members(r), c.e.members(s)
	for _, m := range a.refs {
		key := c.d.key(m)
		if other := b.byName[key]; other != 0 {
			c.values(m, other, pathBelow(path, elem{key: key}, 0))
		} else {
			c.differ(pathBelow(path, elem{key: key}, 0))
		}
		if c.full() {
			return
		}
	}
	for _, m := range b.refs {
		if key := c.e.key(m); a.byName[key] == 0 {
			c.differ(pathBelow(path, elem{key: key}, 0))
		}
	}
}

func (c *differences) arrays(r, s ref, path string) {
	if c.d.length(r) != c.e.length(s) {
		c.differ(path)
		return
	}
	m, n := c.d.first(r), c.e.first(s)
	for i := 0; m != 0 && !c.full(); i++ {
		c.values(m, n, pathBelow(path, elem{each: true}, i))
		m, n = c.d.next(m), c.e.next(n)
	}
}

// length returns how many members r has.
func (d *doc) length(r ref) (n int) {
	for m := d.first(r); m != 0; m = d.next(m) {
		n++
	}
	return n
}

// pathBelow is the path of a member of what is at path.
func pathBelow(path string, e elem, index int) string {
	var b strings.Builder
	b.WriteString(path)
	e.key = source.Cut(e.key)
	appendElem(&b, e, index)
	return b.String()
}
