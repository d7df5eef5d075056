package convert

import "slices"

// Compose returns the converter that does first what a does and then what b does,
// which converts from the version that a converts to: one from a's client version
// to b's server version. A body is read and written once, however many there are.
func Compose(a, b *Converter) *Converter {
	c := *a
	c.spec.To = b.spec.To
	switch {
	case a.spec.From.Kind == "": // a changes no kind
		c.spec.From.Kind = b.spec.From.Kind
	case b.spec.To.Kind == "": // b changes none
		c.spec.To.Kind = a.spec.To.Kind
	}
	c.words = knownWords(&c.spec)
	c.request, c.response = nil, nil
	c.steps = slices.Clone(a.steps)
	for _, s := range b.steps {
		moved := *s
		moved.number = len(c.steps)
		c.steps = append(c.steps, &moved)
	}
	c.links = []link{{len(c.steps), &c}}
	if a.UsesJQ() || b.UsesJQ() { // each program between the rules that it was between
		c.links = slices.Clone(a.links)
		for _, l := range b.links {
			c.links = append(c.links, link{len(a.steps) + l.end, l.of})
		}
	}
	c.preserve = slices.Clone(b.preserve)
	for _, p := range a.preserve {
		p = b.serverPath(-1, p)
		if !slices.ContainsFunc(c.preserve, func(q path) bool { return p.hasPrefix(q) || q.hasPrefix(p) }) {
			c.preserve = append(c.preserve, p)
		}
	}
	c.hidden = c.hiddenPaths()
	return &c
}
