package convert

import (
	"slices"
	"strings"
)

// FieldPath returns what the client's field path, as in a field selector
// ("spec.a.b"), is called in the server's version. A path that no rule renames,
// or that is no path, is returned as it is.
func (c *Converter) FieldPath(text string) string {
	p := splitFields(text)
	changed := false
	for _, s := range c.steps {
		if s.renames() && p.renamed(s.from, s.dst, len(s.base)) {
			changed = true
		}
	}
	if !changed {
		return text
	}
	return p.String()
}

// FieldValues returns the values, as text, of the server's field that the client sees at
// path as value: those that rules exchange for it first. It reports whether rules exchange
// values there at all.
func (c *Converter) FieldValues(path, value string) (values []string, exchanged bool) {
	var exchanges []exchangeOf // in the order of the way to the client
	p := splitFields(path)
	for _, s := range c.steps {
		at := s.from
		switch {
		case s.renames():
			p.renamed(s.from, s.dst, len(s.base))
		case s.action != Modify || s.match == nil || s.replace == nil || len(p) != len(at):
		default:
			if same := p; same.renamed(at, nil, 0) {
				exchanges = append(exchanges, exchangeOf{from: literalText(s.replace), to: literalText(s.match)})
			}
		}
	}
	if len(exchanges) == 0 {
		return nil, false
	}
	slices.Reverse(exchanges)
	values = seenAs(exchanges, []string{value})
	slices.SortStableFunc(values, func(a, b string) int {
		switch {
		case a == value:
			return 1
		case b == value:
			return -1
		}
		return 0
	})
	return values, true
}

// literalText is a JSON literal as a field selector has it.
func literalText(literal []byte) string {
	if kindOf(literal[0]) == kindString {
		return unquoted(literal)
	}
	return string(literal)
}

// ClientFieldPath returns what the server's field path, as in the causes of a
// Status ("spec.containers[0].image"), is called in the client's version.
func (c *Converter) ClientFieldPath(text string) string {
	p := splitFields(text)
	changed := c.beforePrograms(p)
	for i := len(c.steps) - 1; i >= 0; i-- {
		if s := c.steps[i]; s.renames() && p.renamed(s.to, s.src, len(s.base)) {
			changed = true
		}
	}
	if !changed {
		return text
	}
	return p.String()
}

// beforePrograms puts the name in place of the last of p that a rule gives the field, where
// a program gives it another one afterwards. It reports whether there is one.
func (c *Converter) beforePrograms(p fields) bool {
	if len(p) == 0 {
		return false
	}
	last := &p[len(p)-1]
	for _, l := range slices.Backward(c.links) {
		if l.of.request == nil || last.bracketed {
			continue
		}
		for _, r := range l.of.request.wording.renames {
			if last.name != r.to {
				continue
			}
			if last.name = r.from; c.isTarget(p) {
				return true
			}
			last.name = r.to
		}
	}
	return false
}

// isTarget reports whether p is where a rule puts a field.
func (c *Converter) isTarget(p fields) bool {
	return slices.ContainsFunc(c.steps, func(s *step) bool {
		at := p
		return s.renames() && len(p) == len(s.to) && at.renamed(s.to, nil, 0)
	})
}

// fields is a field path as the apiserver writes it. Keys of maps stand in
// brackets, without quotes.
type fields []field

type field struct {
	name      string
	bracketed bool
}

func (p fields) String() string {
	var b strings.Builder
	for _, f := range p {
		switch {
		case f.bracketed:
			b.WriteString("[" + f.name + "]")
		case b.Len() > 0:
			b.WriteString("." + f.name)
		default:
			b.WriteString(f.name)
		}
	}
	return b.String()
}

// splitFields reads a field path; nil when it is none.
func splitFields(text string) fields {
	var p fields
	for rest := text; rest != ""; {
		if rest[0] == '[' {
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return nil
			}
			p = append(p, field{rest[1:end], true})
			rest = rest[end+1:]
			continue
		}
		if len(p) > 0 {
			if rest[0] != '.' {
				return nil
			}
			rest = rest[1:]
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			return nil
		}
		p = append(p, field{rest[:end], false})
		rest = rest[end:]
	}
	return p
}

// isItem reports whether what stands in brackets names an item of a list: by its index,
// or, as server-side apply does, by its keys or its value (name="x", ="x").
func isItem(name string) bool {
	return name == "*" || isIndex(name) || strings.Contains(name, "=")
}

// renamed replaces what of p is from, after its first kept elements, by keys. It
// reports false when p does not start with from.
func (p *fields) renamed(from path, keys []string, kept int) bool {
	if len(*p) < len(from) {
		return false
	}
	for i, e := range from {
		f := (*p)[i]
		if e.each && !(f.bracketed && isItem(f.name)) {
			return false
		}
		if !e.each && strings.Trim(f.name, `"'`) != e.key {
			return false
		}
	}
	out := append(fields(nil), (*p)[:kept]...)
	for _, key := range keys {
		out = append(out, field{key, !isPlainKey(key)})
	}
	*p = append(out, (*p)[len(from):]...)
	return true
}
