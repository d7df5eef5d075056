package convert

// The directives of a strategic merge patch are keys that start with "$"; those
// that end in "/" name a field after it.
const (
	directivePatch   = "$patch"
	retainKeys       = "$retainKeys"
	elementOrder     = "$setElementOrder/"
	primitiveRemoval = "$deleteFromPrimitiveList/"
)

var fieldDirectives = []string{elementOrder, primitiveRemoval}

// StrategicMergePatch appends to dst the client's strategic merge patch src for
// the server. It is like [Converter.MergePatch]; directives that name a field
// follow its renaming.
func (c *Converter) StrategicMergePatch(dst, src []byte, vars *Vars) ([]byte, error) {
	return c.patch(dst, src, strategic, vars)
}

// hasDirective reports whether r, which is n keys up the source path of s in a
// strategic merge patch, says more of the moved field than a rename can carry: r
// is replaced as a whole, or all but the listed of its fields are dropped, while
// the target lies outside.
func hasDirective(d *doc, r ref, n int, s *step) bool {
	if s.sibling() {
		return false
	}
	if n > s.shared {
		return d.find(r, directivePatch) != 0 || d.find(r, retainKeys) != 0
	}
	return n == s.shared && d.find(r, retainKeys) != 0
}

// moveDirectives takes along what the patch says of the order and the removed
// elements of a renamed list, and of its name.
func (x *run) moveDirectives(s *step, item ref) error {
	for _, prefix := range fieldDirectives {
		from, to := directive(prefix, s.src), directive(prefix, s.dst)
		var way way
		r := item
		for i, key := range from {
			way[i] = r
			if r = x.d.find(r, key); r == 0 {
				break
			}
		}
		if r == 0 {
			continue
		}
		if err := x.reachable(s, item, to); err != nil {
			return err
		}
		if x.canMake(item, to) {
			x.carry(s, item, r, &way, from, to)
		}
	}
	if s.sibling() {
		x.renameRetained(s, item)
	}
	return nil
}

// directive returns keys with the last one made a directive of that field.
func directive(prefix string, keys []string) []string {
	last := len(keys) - 1
	return append(keys[:last:last], prefix+keys[last])
}

func (x *run) renameRetained(s *step, item ref) {
	last := len(s.src) - 1
	parent := x.lookup(item, s.src[:last])
	if parent == 0 {
		return
	}
	list := x.d.find(parent, retainKeys)
	if list == 0 {
		return
	}
	for m := x.firstItem(list); m != 0; m = x.d.next(m) {
		if x.d.strIs(m, s.src[last]) {
			x.d.set(m, appendQuoted(nil, s.dst[last]))
		}
	}
}

func (x *run) removeDirectives(s *step, item ref) {
	for _, prefix := range fieldDirectives {
		x.remove(item, directive(prefix, s.src))
	}
	last := len(s.src) - 1
	if parent := x.lookup(item, s.src[:last]); parent != 0 {
		if list := x.d.find(parent, retainKeys); list != 0 {
			x.dropString(list, s.src[last])
		}
	}
}

// dropString takes the strings s out of the array list.
func (x *run) dropString(list ref, s string) {
	for m := x.firstItem(list); m != 0; {
		next := x.d.next(m)
		if x.d.strIs(m, s) {
			x.d.unlink(m)
		}
		m = next
	}
}
