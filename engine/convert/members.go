package convert

// members is an object's members by name, for work that looks up many of them.
// It does not see changes made to the object after it was built.
type members struct {
	refs   []ref // in their order
	byName map[string]ref
}

// members returns the members of the object r. Of those of the same name only
// the last is among them.
func (d *doc) members(r ref) members {
	m := members{byName: make(map[string]ref)}
	for c := d.first(r); c != 0; c = d.next(c) {
		m.refs = append(m.refs, c)
		m.byName[d.key(c)] = c
	}
	if len(m.byName) == len(m.refs) {
		return m
	}
	kept := m.refs[:0]
	for _, c := range m.refs {
		if m.byName[d.key(c)] == c {
			kept = append(kept, c)
		}
	}
	m.refs = kept
	return m
}

// keepOnly drops the members of r that are not in kept, which is in their order.
func (d *doc) keepOnly(r ref, kept []ref) {
	for c := d.first(r); c != 0; {
		next := d.next(c)
		if len(kept) > 0 && kept[0] == c {
			kept = kept[1:]
		} else {
			d.unlink(c)
		}
		c = next
	}
}
