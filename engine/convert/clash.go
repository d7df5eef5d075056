package convert

import (
	"fmt"
	"slices"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Warnings returns what is likely not meant in the rules, in the order of their places: a
// rule that can never act, and one that cannot be undone although it looks as if it could.
// It is no mistake of form, and keeps nothing from being used.
func (c *Converter) Warnings() source.Errors { return c.warnings }

// clashes finds what the rules of a conversion do to each other.
type clashes struct {
	c        *Converter
	idle     []bool // which rules never act on what a client sends
	errs     source.Errors
	warnings source.Errors
}

// findClashes looks at all rules, which are compiled.
func findClashes(c *Converter) *clashes {
	f := &clashes{c: c, idle: make([]bool, len(c.steps))}
	for i := range c.steps {
		f.sameTarget(i)
		f.gone(i)
	}
	f.values()
	f.warnings.Sort()
	return f
}

func (f *clashes) fail(pos source.Pos, format string, args ...any) {
	f.errs = append(f.errs, &source.Error{Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

func (f *clashes) warn(pos source.Pos, format string, args ...any) {
	f.warnings = append(f.warnings, &source.Error{Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

// where names the place of another rule of the same file.
func where(pos source.Pos) string {
	if pos.Line == 0 {
		return pos.File
	}
	return fmt.Sprintf("line %d", pos.Line)
}

// sameTarget finds an earlier rule that puts something where rule i puts its value: what
// has both is refused, and of what has one, the way back cannot tell which.
func (f *clashes) sameTarget(i int) {
	s := f.c.steps[i]
	if !s.renames() {
		return
	}
	for j, other := range f.c.steps[:i] {
		if !other.puts() {
			continue
		}
		if at, there := f.left(j, i); !there || !at.equal(s.to) {
			continue
		}
		switch {
		case other.action == EnsureFieldExistence && len(other.unless) > 0:
			continue // it may leave out what has the field of this rule
		case other.action == EnsureFieldExistence:
			f.fail(s.toPos, "the rule in %s has put a default at %s before, so every object with %s would be refused: put that rule behind this one", where(other.pos), s.to, s.from)
		default:
			f.fail(s.toPos, "the rule in %s puts %s there, too: an object with both is refused, and on the way back each becomes %s; a program (action jq) can tell them apart", where(other.pos), f.c.clientPath(j, other.from), f.c.clientPath(i, s.from))
		}
		return
	}
}

// puts reports whether s makes a field that was not there.
func (s *step) puts() bool { return s.renames() || s.action == EnsureFieldExistence }

// left returns where rule i finds what rule j has put somewhere; there is false when a
// rule between them removes it.
func (f *clashes) left(j, i int) (at path, there bool) {
	at = f.c.steps[j].to
	for _, s := range f.c.steps[j+1 : i] {
		switch {
		case s.action == Remove && at.hasPrefix(s.from):
			return nil, false
		case s.renames() && at.hasPrefix(s.from):
			at = append(s.to[:len(s.to):len(s.to)], at[len(s.from):]...)
		}
	}
	return at, true
}

// gone finds that what rule i looks at has been taken away by an earlier rule, or, for a
// default, been given by one.
func (f *clashes) gone(i int) {
	s := f.c.steps[i]
	for j := i - 1; j >= 0; j-- {
		other := f.c.steps[j]
		if s.action == EnsureFieldExistence {
			if other.action == EnsureFieldExistence && other.from.equal(s.from) && len(other.unless) == 0 {
				f.warn(s.pos, "the rule never acts: the one in %s has given %s a value before", where(other.pos), s.from)
				return
			}
			continue
		}
		if other.puts() && (other.to.hasPrefix(s.from) || s.from.hasPrefix(other.to)) {
			return // what is there may be what that rule has put there
		}
		switch {
		case !s.from.hasPrefix(other.from):
		case other.action == Remove:
			f.idle[i] = true
			f.warn(s.fromPos, "the rule never acts on what a client sends: the one in %s has removed %s before", where(other.pos), other.from)
			return
		case other.renames():
			f.idle[i] = true
			f.warn(s.fromPos, "the rule never acts on what a client sends: the one in %s has taken %s to %s before; name it there, or put this rule first", where(other.pos), other.from, other.to)
			return
		}
	}
}

// values looks at the modify rules of each field.
func (f *clashes) values() {
	done := map[string]bool{}
	for i, s := range f.c.steps {
		if s.action != Modify || s.match == nil || s.replace == nil || f.idle[i] {
			continue
		}
		at := f.c.clientPath(i, s.from)
		if done[at.String()] {
			continue
		}
		done[at.String()] = true
		if m := f.modifiesAt(at); m != nil {
			f.mapping(m)
		}
	}
}

// modifiesAt returns the modify rules of a field, by its path in the client's version;
// nil when one of them replaces whatever is there, which is said to be for good.
func (f *clashes) modifiesAt(at path) mapping {
	var m mapping
	for i, s := range f.c.steps {
		if s.action != Modify || s.replace == nil || f.idle[i] || !f.c.clientPath(i, s.from).equal(at) {
			continue
		}
		if s.match == nil {
			return nil
		}
		m = append(m, s)
	}
	return m
}

// mapping is the rules that replace single values of one field.
type mapping []*step

// to is what a value becomes on the way to the server, before rule i of m.
func (m mapping) to(value string, i int) string {
	for _, s := range m[:i] {
		if value == string(s.match) {
			value = string(s.replace)
		}
	}
	return value
}

// back is what a server's value becomes on the way to the client.
func (m mapping) back(value string) string {
	for _, s := range slices.Backward(m) {
		if value == string(s.replace) {
			value = string(s.match)
		}
	}
	return value
}

// mapping finds rules of m that never act, such that make one value of two, and such that
// others undo.
func (f *clashes) mapping(m mapping) {
	client, server := map[string]*step{}, map[string]*step{} // what becomes this, first
	spare := m.spare()
	var lost, lostBack func()
	for i, s := range m {
		if string(s.match) == string(s.replace) {
			f.warn(s.pos, "the rule changes nothing: matchValue and replaceValue are the same")
			continue
		}
		if !m.comes(i) {
			f.warn(s.pos, "the rule never acts on what a client sends: %s has been replaced before, in %s", source.Cut(string(s.match)), where(m.first(s.match).pos))
		}
		up, down := m.to(string(s.match), len(m)), m.back(string(s.replace))
		if up == string(s.match) && m.to(up, i) == up {
			undone := m.first(s.replace)
			f.fail(s.pos, "the rule in %s makes %s again of what this one makes of it: it never changes, and %s cannot be read back; to swap values, take one aside first (%[2]s to a spare value, %[3]s to %[2]s, the spare value to %[3]s)",
				where(undone.pos), source.Cut(up), source.Cut(string(s.replace)))
			return
		}
		if spare[string(s.match)] {
			// It comes from an earlier rule alone.
		} else if other := client[up]; other != nil && string(other.match) != string(s.match) && lost == nil {
			lost = func() {
				f.warn(s.pos, "%s and %s, in %s, both become %s on the way to the server: a client that writes %[2]s reads %[1]s", source.Cut(string(s.match)), source.Cut(string(other.match)), where(other.pos), source.Cut(up))
			}
		} else if other == nil {
			client[up] = s
		}
		if spare[string(s.replace)] {
			// A later rule makes something else of it.
		} else if other := server[down]; other != nil && string(other.replace) != string(s.replace) && lostBack == nil {
			lostBack = func() {
				f.warn(s.pos, "%s and %s, in %s, both become %s on the way to the client: one that a client reads and writes back may become the other", source.Cut(string(s.replace)), source.Cut(string(other.replace)), where(other.pos), source.Cut(down))
			}
		} else if other == nil {
			server[down] = s
		}
	}
	if lost != nil {
		lost()
	}
	if lostBack != nil {
		lostBack()
	}
}

// spare are the values that rules use to exchange others: one rule makes them, a later one
// takes them away. There are none unless rules exchange values: where some value only
// becomes another one in two steps, a client may know the one between them, too.
func (m mapping) spare() map[string]bool {
	made, between := map[string]bool{}, map[string]bool{}
	for _, s := range m {
		if made[string(s.match)] {
			between[string(s.match)] = true
		}
		made[string(s.replace)] = true
	}
	for _, s := range m {
		final := m.to(string(s.match), len(m))
		isMatch := func(other *step) bool { return string(other.match) == final }
		if !between[string(s.match)] && !between[final] && slices.ContainsFunc(m, isMatch) {
			return between
		}
	}
	return nil
}

// comes reports whether rule i of m may meet its value.
func (m mapping) comes(i int) bool {
	want := string(m[i].match)
	for _, s := range m[:i+1] {
		if m.to(string(s.match), i) == want {
			return true
		}
	}
	return false
}

// first is the first rule that replaces value.
func (m mapping) first(value []byte) *step {
	i := slices.IndexFunc(m, func(s *step) bool { return string(s.match) == string(value) })
	return m[i]
}
