package convert

import "fmt"

// MergePatchApply returns the JSON document obj with the RFC 7386 merge patch
// applied. What the patch does not touch keeps its bytes; what it adds comes
// last. The error says which of the two is not JSON.
func MergePatchApply(obj, patch []byte) ([]byte, error) {
	d, p := newDoc(), newDoc()
	defer d.free()
	defer p.free()
	if err := d.parse(obj); err != nil {
		return nil, fmt.Errorf("cannot patch the object: %w", err)
	}
	if err := p.parse(patch); err != nil {
		return nil, fmt.Errorf("cannot apply the merge patch: %w", err)
	}
	mergeInto(d, root, p, root)
	return d.bytes(root), nil
}

// mergeInto applies the patch at s of p to the value r of d.
func mergeInto(d *doc, r ref, p *doc, s ref) {
	if p.kind(s) != kindObject {
		d.set(r, p.raw(s))
		return
	}
	if d.kind(r) != kindObject {
		d.set(r, []byte("{}"))
	}
	target := d.members(r)
	d.keepOnly(r, target.refs)
	for _, change := range p.members(s).refs {
		key := p.key(change)
		m := target.byName[key]
		switch {
		case !p.isNull(change) && m == 0:
			// Without a value to patch, null members of the patch are left out.
			mergeInto(d, d.add(r, key, []byte("null")), p, change)
		case !p.isNull(change):
			mergeInto(d, m, p, change)
		case m != 0:
			d.unlink(m)
		}
	}
}

// MergePatchDiff returns the RFC 7386 merge patch that makes the JSON object from
// into the object to; "{}" when they are equal. Numbers compare by value. A merge
// patch cannot say that a member is null, so such a member of to is deleted.
func MergePatchDiff(from, to []byte) ([]byte, error) {
	a, b := newDoc(), newDoc()
	defer a.free()
	defer b.free()
	if err := a.parse(from); err != nil {
		return nil, fmt.Errorf("cannot compare the old object: %w", err)
	}
	if err := b.parse(to); err != nil {
		return nil, fmt.Errorf("cannot compare the new object: %w", err)
	}
	if a.kind(root) != kindObject || b.kind(root) != kindObject {
		return nil, fmt.Errorf("cannot make a merge patch of something else than two JSON objects")
	}
	return appendDiff(nil, a, root, b, root), nil
}

// appendDiff appends the patch between two objects.
func appendDiff(dst []byte, a *doc, r ref, b *doc, s ref) []byte {
	before, after := a.members(r), b.members(s)
	dst = append(dst, '{')
	start := len(dst)
	key := func(d *doc, m ref) {
		if len(dst) > start {
			dst = append(dst, ',')
		}
		n := &d.nodes[m]
		dst = append(dst, d.text(n.ownKey)[n.key.start:n.key.end]...)
		dst = append(dst, ':')
	}
	for _, m := range before.refs {
		if after.byName[a.key(m)] == 0 {
			key(a, m)
			dst = append(dst, "null"...)
		}
	}
	for _, m := range after.refs {
		old := before.byName[b.key(m)]
		switch {
		case old == 0 && b.isNull(m), old != 0 && a.equal(old, b, m):
		case old != 0 && a.kind(old) == kindObject && b.kind(m) == kindObject:
			key(b, m)
			dst = appendDiff(dst, a, old, b, m)
		default:
			key(b, m)
			dst = append(dst, b.raw(m)...)
		}
	}
	return append(dst, '}')
}
