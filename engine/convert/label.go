package convert

import (
	"errors"
	"fmt"
	"slices"
)

// Label says where a label that the client selects by is found on the server's objects.
//
// A rename puts the value at Key towards the client, and what the server's object itself
// has under the client's name under the other one, or, without a value at Key, leaves it.
// So one label of the client's depends on two of the server's.
type Label struct {
	Key string // the server's label that it is the value of

	// With must be there, too, for the client to see the label; "" for none.
	With string

	// Instead is the label that the client sees where Key is not there; "" for none.
	Instead string

	key, instead []exchangeOf // what becomes of their values, on the way to the client
}

// exchangeOf is a value that becomes another on the way to the client.
type exchangeOf struct{ from, to string }

// Changed reports whether selecting by l is something else than selecting by key.
func (l *Label) Changed(key string) bool { return l.Key != key || len(l.key) > 0 }

// Maps reports whether values of l are changed, so that their order means nothing.
func (l *Label) Maps() bool { return len(l.key) > 0 }

// Values returns the values of Key that the client sees as one of values.
func (l *Label) Values(values []string) []string { return seenAs(l.key, values) }

// InsteadValues is Values for Instead.
func (l *Label) InsteadValues(values []string) []string { return seenAs(l.instead, values) }

// seenAs returns what the client sees as one of values, sorted. What no exchange names
// is seen as it is.
func seenAs(exchanges []exchangeOf, values []string) []string {
	candidates := slices.Clone(values)
	for _, e := range exchanges {
		candidates = append(candidates, e.from)
	}
	slices.Sort(candidates)
	return slices.DeleteFunc(slices.Compact(candidates), func(v string) bool {
		for _, e := range exchanges {
			if v == e.from {
				v = e.to
			}
		}
		return !slices.Contains(values, v)
	})
}

// Label returns where the client's label key is found. Its error, which begins with a
// verb, says what the policy does with the label so that nobody can select by it. Of a
// program only the stages count that are about labels and annotations alone.
func (c *Converter) Label(key string) (Label, error) {
	for _, l := range c.links {
		if p := l.of.response; p != nil && p.metadata != nil && p.metadata.whole.needs.coversLabel(key) {
			return Label{}, errors.New("changes it by a jq program")
		}
	}
	rename, err := c.labelRename(key)
	if err != nil {
		return Label{}, err
	}
	l := Label{Key: key}
	if rename == nil {
		l.key, err = c.labelValues(key, 0, len(c.steps), nil)
		return l, err
	}
	from, to := rename.from[2].key, rename.to[2].key
	if l.Key = to; key == to {
		l.Key, l.With = from, to
	} else {
		l.Instead = from
		if l.instead, err = c.labelValues(from, 0, len(c.steps), nil); err != nil {
			return Label{}, err
		}
	}
	// Towards the client: what the steps behind the rename make of the value on the
	// server's name, then what those before it make of it on the client's.
	behind, err := c.labelValues(l.Key, rename.number+1, len(c.steps), nil)
	if err == nil {
		l.key, err = c.labelValues(key, 0, rename.number, behind)
	}
	return l, err
}

// labelRename returns the step that renames key, or another label to it; nil for none.
func (c *Converter) labelRename(key string) (*step, error) {
	labels := keyPath([]string{"metadata", "labels"})
	var found *step
	for _, s := range c.steps {
		if !s.concernsLabel(key) {
			continue
		}
		switch {
		case labels.equal(s.from) || labels.equal(s.to):
			return nil, fmt.Errorf("changes all labels (%s)", s.action)
		case !s.renames():
			continue
		case !isLabel(s.from) || !isLabel(s.to):
			return nil, fmt.Errorf("makes %s of %s", s.to, s.from)
		case found != nil:
			return nil, fmt.Errorf("renames it more than once")
		case s.typ != TypeUnknown && s.typ != TypeString:
			return nil, fmt.Errorf("makes it %s", s.typ.article())
		}
		found = s
	}
	if found == nil {
		return nil, nil
	}
	for _, s := range c.steps { // the other name must be of this rename only, too
		if s != found && s.renames() && (s.concernsLabel(found.from[2].key) || s.concernsLabel(found.to[2].key)) {
			return nil, fmt.Errorf("renames it more than once")
		}
	}
	return found, nil
}

// labelValues appends to exchanges what the steps from first to before last make of
// the label's value on the way to the client: the last step is the first to act.
func (c *Converter) labelValues(key string, first, last int, exchanges []exchangeOf) ([]exchangeOf, error) {
	for i := last - 1; i >= first; i-- {
		s := c.steps[i]
		if s.action != Modify || !s.concernsLabel(key) {
			continue
		}
		if s.typ != TypeUnknown && s.typ != TypeString {
			return nil, fmt.Errorf("makes it %s", s.typ.article())
		}
		if s.match == nil || s.replace == nil {
			continue // the client sees what the server has
		}
		if kindOf(s.match[0]) != kindString || kindOf(s.replace[0]) != kindString {
			return nil, fmt.Errorf("makes it something that is no string")
		}
		exchanges = append(exchanges, exchangeOf{from: unquoted(s.replace), to: unquoted(s.match)})
	}
	return exchanges, nil
}

func unquoted(literal []byte) string {
	return string(appendUnquoted(nil, literal[1:len(literal)-1]))
}

// coversLabel reports whether n covers the label or a part of it.
func (n *need) coversLabel(key string) bool {
	for _, member := range []string{"metadata", "labels", key} {
		if n == nil || n.all {
			break
		}
		n = n.members[member]
	}
	return n != nil
}

// isLabel reports whether p is one label.
func isLabel(p path) bool {
	return len(p) == 3 && p[0].key == "metadata" && p[1].key == "labels" && !p[2].each
}

// concernsLabel reports whether s reads or writes the label, or all labels, or some
// of what stands there.
func (s *step) concernsLabel(key string) bool {
	label := keyPath([]string{"metadata", "labels", key})
	for _, p := range []path{s.from, s.to} {
		if label.hasPrefix(p) || p.hasPrefix(label) {
			return true
		}
	}
	return false
}
