package convert

import (
	"strings"

	"github.com/itchyny/gojq"
)

// term is the place of what t makes of the value at in.
func (n *jqNeeds) term(t *gojq.Term, in place) place {
	out := n.head(t, in)
	for _, suffix := range t.SuffixList {
		switch {
		case suffix.Index != nil:
			out = n.index(suffix.Index, out, in)
		case suffix.Iter:
			n.grows = true
			out = n.see(out)
		}
	}
	return out
}

// head is term without the suffixes.
func (n *jqNeeds) head(t *gojq.Term, in place) place {
	switch t.Type {
	case gojq.TermTypeIdentity:
		return in
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber:
		return place{kind: elsewhere}
	case gojq.TermTypeIndex:
		return n.index(t.Index, in, in)
	case gojq.TermTypeFunc:
		return n.call(t.Func, in)
	case gojq.TermTypeObject:
		n.grows = true
		for _, kv := range t.Object.KeyVals {
			n.objectMember(kv, in)
		}
		return place{kind: elsewhere}
	case gojq.TermTypeArray:
		n.grows = true
		n.all(t.Array.Query, in)
		return place{kind: elsewhere}
	case gojq.TermTypeUnary:
		n.see(n.term(t.Unary.Term, in))
		return place{kind: elsewhere}
	case gojq.TermTypeString:
		n.str(t.Str, in)
		if t.Str.Queries == nil {
			return place{kind: spelled, text: t.Str.Str}
		}
		return place{kind: elsewhere}
	case gojq.TermTypeIf:
		return n.conditional(t.If, in)
	case gojq.TermTypeTry:
		out := n.query(t.Try.Body, in)
		if t.Try.Catch != nil {
			out = n.join(out, n.query(t.Try.Catch, place{kind: elsewhere}))
		}
		return out
	case gojq.TermTypeQuery:
		return n.query(t.Query, in)
	default:
		return n.unknown(in)
	}
}

// unknown is a term that is not followed into.
func (n *jqNeeds) unknown(in place) place {
	n.grows = true
	n.root.all = true
	return n.see(in)
}

// index is an index into the value at p, in a term whose input is at in.
func (n *jqNeeds) index(i *gojq.Index, p, in place) place {
	switch {
	case i.Name != "":
		return n.key(p, i.Name)
	case i.Str != nil && i.Str.Queries == nil:
		return n.key(p, i.Str.Str)
	case i.Str == nil && !i.IsSlice:
		start := n.query(i.Start, in)
		if start.kind == spelled {
			return n.key(p, start.text)
		}
		n.see(start)
		return n.see(p)
	}
	n.str(i.Str, in)
	n.all(i.Start, in)
	n.all(i.End, in)
	return n.see(p)
}

func (n *jqNeeds) str(s *gojq.String, in place) {
	if s == nil {
		return
	}
	n.grows = n.grows || s.Queries != nil
	for _, q := range s.Queries {
		n.all(q, in)
	}
}

func (n *jqNeeds) objectMember(kv *gojq.ObjectKeyVal, in place) {
	n.str(kv.KeyString, in)
	n.all(kv.KeyQuery, in)
	switch {
	case kv.Val != nil:
		n.all(kv.Val, in)
	case strings.HasPrefix(kv.Key, "$"):
		n.see(n.variable(kv.Key))
	case kv.Key != "":
		n.see(n.key(in, kv.Key))
	default:
		n.see(in) // {"a"}: the key is not looked into
	}
}

// conditional is an if. Of an object that is a condition it counts only that it
// is one.
func (n *jqNeeds) conditional(c *gojq.If, in place) place {
	n.query(c.Cond, in)
	out := n.query(c.Then, in)
	for _, elif := range c.Elif {
		n.query(elif.Cond, in)
		out = n.join(out, n.query(elif.Then, in))
	}
	if c.Else == nil {
		return n.join(out, in)
	}
	return n.join(out, n.query(c.Else, in))
}
