package convert

import "github.com/itchyny/gojq"

// planSegment is a part of a path expression: keys, or all items of an array, or
// only what meets a condition.
type planSegment struct {
	keys     []string
	each     bool
	optional bool // of each: what is no array has no items
	cond     expr
}

// path takes a path expression apart.
func (c *planCompiler) path(q *gojq.Query) ([]planSegment, bool) {
	defer c.leave()
	if !c.enter() || len(q.FuncDefs) > 0 {
		return nil, false
	}
	if q.Term != nil {
		return c.termPath(q.Term)
	}
	if q.Op != gojq.OpPipe || q.Patterns != nil {
		return nil, false
	}
	left, ok := c.path(q.Left)
	if !ok {
		return nil, false
	}
	right, ok := c.path(q.Right)
	return appendSegments(left, right...), ok
}

// appendSegments appends more to p, joining keys.
func appendSegments(p []planSegment, more ...planSegment) []planSegment {
	for _, s := range more {
		if last := len(p) - 1; last >= 0 && p[last].keys != nil && s.keys != nil {
			p[last].keys = append(p[last].keys, s.keys...)
		} else {
			p = append(p, s)
		}
	}
	return p
}

func (c *planCompiler) termPath(t *gojq.Term) ([]planSegment, bool) {
	var p []planSegment
	ok := true
	switch t.Type {
	case gojq.TermTypeIdentity:
	case gojq.TermTypeIndex:
		var key string
		key, ok = c.key(t.Index)
		p = appendSegments(p, planSegment{keys: []string{key}})
	case gojq.TermTypeQuery:
		p, ok = c.path(t.Query)
	case gojq.TermTypeFunc:
		var cond expr
		if cond, ok = c.selection(t.Func); ok {
			p = append(p, planSegment{cond: cond})
		}
	default:
		return nil, false
	}
	for i := 0; ok && i < len(t.SuffixList); i++ {
		switch s := t.SuffixList[i]; {
		case s.Index != nil:
			var key string
			key, ok = c.key(s.Index)
			p = appendSegments(p, planSegment{keys: []string{key}})
		case s.Iter:
			p = append(p, planSegment{each: true})
		default: // a "?"
			// It is about all of the term before it. Without one that can fail in a
			// way that a plan goes on after, it makes no difference.
			if last := len(p) - 1; last >= 0 && p[last].each {
				ok = isOnlyEach(p)
				p[last].optional = true
			}
		}
	}
	return p, ok
}

// isOnlyEach reports whether p has one each, at its end: the only one then that a
// "?" can be about.
func isOnlyEach(p []planSegment) bool {
	for _, s := range p[:len(p)-1] {
		if s.each || s.cond != nil {
			return false
		}
	}
	return true
}

// selection is the condition of a select.
func (c *planCompiler) selection(f *gojq.Func) (expr, bool) {
	if f.Name != "select" || len(f.Args) != 1 {
		return nil, false
	}
	return c.expr(f.Args[0])
}

// staticKey is the key that i spells out.
func staticKey(i *gojq.Index) (string, bool) {
	switch {
	case i.Name != "":
		return i.Name, true
	case i.Str != nil:
		return i.Str.Str, i.Str.Queries == nil
	case !i.IsSlice && isStringConstant(i.Start):
		return i.Start.Term.Str.Str, true
	default:
		return "", false
	}
}

// staticPath is a path of keys only.
func (c *planCompiler) staticPath(q *gojq.Query) ([]string, bool) {
	p, ok := c.path(q)
	if !ok || len(p) != 1 || p[0].keys == nil {
		return nil, false
	}
	return p[0].keys, true
}

// leadTo makes do be done at the places that p leads to, which are made where they
// are not.
func leadTo(p []planSegment, do transform) transform {
	for i := len(p) - 1; i >= 0; i-- {
		switch s := p[i]; {
		case s.each:
			do = &eachItem{s.optional, do}
		case s.cond != nil:
			do = &when{s.cond, do, nil}
		case i < len(p)-1:
			// What follows may lead nowhere, and then nothing is made.
			do = &reach{s.keys, p[i+1].optional, do}
		default:
			do = &into{s.keys, do}
		}
	}
	return do
}

// without deletes the places that p leads to.
func without(p []planSegment) transform {
	last := len(p) - 1
	switch {
	case p[last].cond != nil && last > 0 && p[last-1].keys != nil:
		return leadTo(p[:last-1], &dropIf{p[last-1].keys, p[last].cond})
	case p[last].keys == nil:
		return leadTo(p, dropped{})
	}
	keys := p[last].keys
	var do transform = &drop{keys[len(keys)-1]}
	if len(keys) > 1 {
		do = &reach{keys[:len(keys)-1], true, do}
	}
	return leadTo(p[:last], do)
}

// into goes to a field, which is made if it is not there.
type into struct {
	keys []string
	do   transform
}

func (t *into) apply(p *planRun, at ref) bool {
	for _, key := range t.keys {
		var ok bool
		if at, ok = p.made(at, key); !ok {
			return false
		}
	}
	return t.do.apply(p, at)
}

// reach goes to a field. Where there is none, nothing is done if that is optional.
type reach struct {
	keys     []string
	optional bool
	do       transform
}

func (t *reach) apply(p *planRun, at ref) bool {
	for _, key := range t.keys {
		var ok bool
		at, ok = p.field(at, key)
		if !ok || at == 0 {
			return ok && t.optional
		}
	}
	return t.do.apply(p, at)
}

// eachItem goes to all items of an array.
type eachItem struct {
	optional bool
	do       transform
}

func (t *eachItem) apply(p *planRun, at ref) bool {
	switch p.d.kind(at) {
	case kindArray:
	case kindObject:
		return false
	default:
		return t.optional
	}
	for item := p.d.first(at); item != 0; {
		next := p.d.next(item)
		if !t.do.apply(p, item) {
			return false
		}
		item = next
	}
	return true
}

// drop deletes a member.
type drop struct{ key string }

func (t *drop) apply(p *planRun, at ref) bool {
	m, ok := p.field(at, t.key)
	if ok && m != 0 {
		p.d.unlink(m)
	}
	return ok
}

// dropIf deletes a field that meets a condition. One that is not there is null to the
// condition, and stays what it is.
type dropIf struct {
	keys []string
	cond expr
}

func (t *dropIf) apply(p *planRun, at ref) bool {
	for _, key := range t.keys {
		var ok bool
		if at, ok = p.field(at, key); !ok {
			return false
		}
		if at == 0 {
			_, ok = t.cond.eval(p, p.null())
			return ok
		}
	}
	is, ok := t.cond.eval(p, at)
	if ok && p.isTrue(is) {
		p.d.unlink(at)
	}
	return ok
}

// dropped deletes the value itself, an item or member.
type dropped struct{}

func (dropped) apply(p *planRun, at ref) bool {
	if p.d.nodes[at].parent == 0 {
		return false // it is the whole value
	}
	p.d.unlink(at)
	return true
}
