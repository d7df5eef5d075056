package convert

import "slices"

// Compose returns the converter that does first what a does and then what b does,
// which converts from the version that a converts to: one from a's client version
// to b's server version. It is nil where that cannot be told from the two: a has a
// jq program, which would have to run before the rules of b.
func Compose(a, b *Converter) *Converter {
	if a.UsesJQ() && (b.UsesJQ() || len(b.steps) > 0) {
		return nil
	}
	c := *a
	c.spec.To = b.spec.To
	switch {
	case a.spec.From.Kind == "": // a changes no kind
		c.spec.From.Kind = b.spec.From.Kind
	case b.spec.To.Kind == "": // b changes none
		c.spec.To.Kind = a.spec.To.Kind
	}
	c.words = knownWords(&c.spec)
	if !a.UsesJQ() {
		c.request, c.response = b.request, b.response
	}
	c.steps = slices.Clone(a.steps)
	for _, s := range b.steps {
		moved := *s
		moved.number = len(c.steps)
		c.steps = append(c.steps, &moved)
	}
	c.preserve = slices.Clone(b.preserve)
	for _, p := range a.preserve {
		p = b.serverPath(-1, p)
		if !slices.ContainsFunc(c.preserve, func(q path) bool { return p.hasPrefix(q) || q.hasPrefix(p) }) {
			c.preserve = append(c.preserve, p)
		}
	}
	return &c
}
