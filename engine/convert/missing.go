package convert

import (
	"fmt"
	"slices"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// FieldNames is what a [Schema] may know beside types.
type FieldNames interface {
	// FieldsAt returns the names of the fields that an object at path may have. ok is
	// false where it may have any, where no object is, or where that is not known.
	FieldsAt(path []string) (names []string, ok bool)
}

// MissingFields returns a mistake for each path of a rule, and each preserved one, that
// cannot mean any field: the version that it is about is known, from or to, and does not
// have it. A nil schema, or one that does not know field names, misses none. It is no
// mistake of the policy's form: a schema may be older than the policy, so it is for
// people to judge.
//
// A path is told at the version that it is read from or written to, under the name that
// it has there. What a program of the conversion may make or need in between is not known:
// then only what is read from the client's object is looked at.
func (c *Converter) MissingFields(from, to Schema) source.Errors {
	m := missing{client: side{from, c.spec.From}, server: side{to, c.spec.To}}
	for i, s := range c.steps {
		client, server := c.clientPath(i, s.from), c.serverPath(i, s.to)
		switch s.action {
		case Rename, Move:
			m.tell("path", s.fromPos, m.client.lacks(client))
			if !c.UsesJQ() {
				m.tell("targetPath", s.toPos, m.server.lacks(server))
			}
		case Remove:
			m.tell("path", s.fromPos, m.client.lacks(client))
		case EnsureFieldExistence:
			if !c.UsesJQ() {
				m.tell("path", s.fromPos, m.server.lacks(server))
				for _, unless := range s.unless {
					at := unless.path
					if unless.item {
						at = append(s.base[:len(s.base):len(s.base)], at...)
					}
					m.tell("unless", unless.pos, m.eitherLacks(c.clientPath(i, at), c.serverPath(i, at)))
				}
			}
		case Modify:
			m.tell("path", s.fromPos, m.eitherLacks(client, server))
		}
	}
	for i, p := range c.preserve {
		m.tell("preserve", c.spec.Preserve[i].Pos, m.server.lacks(p))
	}
	return m.errs
}

// missing collects the mistakes about fields that there are not.
type missing struct {
	client, server side
	errs           source.Errors
}

// tell notes what is wrong with a field of a rule, if anything is.
func (m *missing) tell(field string, pos source.Pos, what string) {
	if what != "" {
		m.errs = append(m.errs, &source.Error{Pos: pos, Msg: field + ": " + what})
	}
}

// eitherLacks is lacks for a field that only one of the versions may have, and be about
// that one.
func (m *missing) eitherLacks(client, server path) string {
	there := m.server.lacks(server)
	if m.client.schema != nil && m.client.lacks(client) == "" {
		return ""
	}
	return there
}

// side is one of the two versions.
type side struct {
	schema  Schema
	version Version
}

// lacks says that the version has no field at p, and which one is near; "" where it has
// one, or may have. What every object has under metadata is not looked at.
func (v *side) lacks(p path) string {
	names, ok := v.schema.(FieldNames)
	if !ok || p[0].key == "metadata" {
		return ""
	}
	for i, e := range p {
		if e.each {
			continue
		}
		known, closed := names.FieldsAt(p[:i].schemaPath())
		if closed && !slices.Contains(known, e.key) {
			what := v.version.Kind
			if what == "" {
				what = v.version.Resource
			}
			return fmt.Sprintf("%s %s has no field %s%s", v.version.APIVersion(), what, p[:i+1], nearField(p[:i], e.key, known))
		}
	}
	return ""
}

// nearField ends a message about a field that there is not: with the path of the one that
// was likely meant.
func nearField(parent path, key string, known []string) string {
	best := source.Closest(key, known)
	if best == "" {
		return source.Suggest(key, known)
	}
	return fmt.Sprintf("; did you mean %s?", append(parent[:len(parent):len(parent)], elem{key: best}))
}
