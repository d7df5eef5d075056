package convert

import (
	"slices"

	"github.com/itchyny/gojq"
)

// planCompiler makes plans. Each of its methods reports false when a term's shape
// is not one that it knows; then there is no plan.
type planCompiler struct {
	scope   []string       // the variables, by slot
	spelled map[int]string // the strings that variables always are, by slot
	slots   int
	depth   int // of terms in terms
	touches touched
}

// maxPlanDepth is how deep the terms of a plan may nest. Nobody writes such
// programs; the time to look at one grows with the square of it.
const maxPlanDepth = 500

// enter reports whether terms may nest one deeper. The caller leaves again.
func (c *planCompiler) enter() bool {
	c.depth++
	return c.depth <= maxPlanDepth
}

func (c *planCompiler) leave() { c.depth-- }

// bind gives the variable name a slot. It is in scope until scope is cut back;
// the slot is its own.
func (c *planCompiler) bind(name string) int {
	for len(c.scope) < c.slots {
		c.scope = append(c.scope, "") // the slot of a variable that is out of scope
	}
	c.scope = append(c.scope, name)
	c.slots++
	return c.slots - 1
}

func (c *planCompiler) variable(name string) (int, bool) {
	for slot := len(c.scope) - 1; slot >= 0; slot-- {
		if c.scope[slot] == name {
			return slot, true
		}
	}
	return 0, false
}

// transform compiles q as a change of its input, which is the object itself when
// top is set. There, it has to stay the same object.
func (c *planCompiler) transform(q *gojq.Query, top bool) (transform, bool) {
	defer c.leave()
	if !c.enter() || len(q.FuncDefs) > 0 {
		return nil, false
	}
	if q.Term != nil {
		return c.termTransform(q.Term, top)
	}
	switch q.Op {
	case gojq.OpPipe:
		return c.pipe(q, top)
	case gojq.OpAssign, gojq.OpModify, gojq.OpUpdateAlt:
		return c.update(q, top)
	default:
		return c.replacement(q, top)
	}
}

func (c *planCompiler) termTransform(t *gojq.Term, top bool) (transform, bool) {
	if len(t.SuffixList) == 0 {
		switch t.Type {
		case gojq.TermTypeIdentity:
			return nothing{}, true
		case gojq.TermTypeQuery:
			return c.transform(t.Query, top)
		case gojq.TermTypeIf:
			return c.conditional(t.If, top)
		case gojq.TermTypeFunc:
			if do, known, ok := c.call(t.Func, top); known {
				return do, ok
			}
		}
	}
	return c.replacement(&gojq.Query{Term: t}, top)
}

// replacement puts the value of q in the place of its input.
func (c *planCompiler) replacement(q *gojq.Query, top bool) (transform, bool) {
	if top {
		return nil, false
	}
	value, ok := c.expr(q)
	return &replaced{value}, ok
}

// pipe is l | r, or l as $x | r.
func (c *planCompiler) pipe(q *gojq.Query, top bool) (transform, bool) {
	if q.Patterns == nil {
		left, ok := c.transform(q.Left, top)
		if !ok {
			return nil, false
		}
		right, ok := c.transform(q.Right, top)
		return &sequence{left, right}, ok
	}
	slot, value, ok := c.binding(q)
	if !ok {
		return nil, false
	}
	defer c.unbind(slot)
	right, ok := c.transform(q.Right, top)
	return &sequence{&hold{slot, value}, right}, ok
}

// binding compiles the left side of l as $x | r.
func (c *planCompiler) binding(q *gojq.Query) (int, expr, bool) {
	if len(q.Patterns) != 1 || q.Patterns[0].Name == "" {
		return 0, nil, false
	}
	value, ok := c.expr(q.Left)
	slot := c.bind(q.Patterns[0].Name)
	if isStringConstant(q.Left) {
		c.spelled[slot] = q.Left.Term.Str.Str
	}
	return slot, value, ok
}

// key is the key that i is, whatever the object is.
func (c *planCompiler) key(i *gojq.Index) (string, bool) {
	if i.Name == "" && i.Str == nil && !i.IsSlice {
		return c.keyText(i.Start)
	}
	return staticKey(i)
}

// keyText is the string that q is: spelled out, or a variable that was.
func (c *planCompiler) keyText(q *gojq.Query) (string, bool) {
	if isStringConstant(q) {
		return q.Term.Str.Str, true
	}
	if q.Term == nil || q.Term.Type != gojq.TermTypeFunc || len(q.Term.SuffixList) > 0 || len(q.FuncDefs) > 0 {
		return "", false
	}
	slot, ok := c.variable(q.Term.Func.Name)
	if !ok {
		return "", false
	}
	text, ok := c.spelled[slot]
	return text, ok
}

func (c *planCompiler) unbind(slot int) { c.scope = c.scope[:slot] }

// update is p = v, p |= f or p //= v.
func (c *planCompiler) update(q *gojq.Query, top bool) (transform, bool) {
	p, ok := c.path(q.Left)
	if !ok || len(p) == 0 {
		return nil, false
	}
	c.touch(p, top)
	if q.Op == gojq.OpModify {
		do, ok := c.transform(q.Right, false)
		return leadTo(p, do), ok
	}
	value, ok := c.expr(q.Right)
	if !ok {
		return nil, false
	}
	slot := c.bind("")
	var do transform = &replaced{held(slot)}
	if q.Op == gojq.OpUpdateAlt {
		do = &when{dot{}, nothing{}, do}
	}
	return &sequence{&hold{slot, value}, leadTo(p, do)}, true
}

// touch notes what a change at p touches, where p starts at the object.
func (c *planCompiler) touch(p []planSegment, top bool) {
	if !top {
		return
	}
	if len(p) == 0 || p[0].keys == nil {
		c.touches = touched{names: true, identity: true}
		return
	}
	switch keys := p[0].keys; keys[0] {
	case "apiVersion", "kind":
		c.touches.names = true
	case "metadata":
		if len(keys) == 1 || keys[1] != "labels" && keys[1] != "annotations" {
			c.touches.identity = true
		}
	}
}

func (c *planCompiler) conditional(q *gojq.If, top bool) (transform, bool) {
	cond, ok := c.expr(q.Cond)
	if !ok {
		return nil, false
	}
	yes, ok := c.transform(q.Then, top)
	if !ok {
		return nil, false
	}
	var no transform = nothing{}
	switch rest := otherwise(q); {
	case rest != nil:
		no, ok = c.conditional(rest, top)
	case q.Else != nil:
		no, ok = c.transform(q.Else, top)
	}
	return &when{cond, yes, no}, ok
}

// otherwise is the elif of q as an if, or nil.
func otherwise(q *gojq.If) *gojq.If {
	if len(q.Elif) == 0 {
		return nil
	}
	return &gojq.If{Cond: q.Elif[0].Cond, Then: q.Elif[0].Then, Elif: q.Elif[1:], Else: q.Else}
}

// call is a function that changes its input. It reports whether it is one.
func (c *planCompiler) call(f *gojq.Func, top bool) (do transform, known, ok bool) {
	switch jqName(f.Name, len(f.Args)) {
	case "del/1":
		do, ok = c.deletion(f.Args[0], top)
	case "move/2", "rename/2":
		do, ok = c.movement(f, top)
	case "mapvalue/3":
		do, ok = c.mapping(f, top)
	case "ensure/2":
		do, ok = c.assurance(f, top)
	case "map/1", "map_values/1":
		if top {
			return nil, true, false
		}
		if do, ok = c.filter(f); !ok {
			do, ok = c.transform(f.Args[0], false)
			do = &eachItem{false, do}
		}
	case "error/0", "error/1", "empty/0":
		do, ok = abandoned{}, true
	default:
		return nil, false, false
	}
	return do, true, ok
}

// filter is map(select(…)).
func (c *planCompiler) filter(f *gojq.Func) (transform, bool) {
	t := f.Args[0].Term
	if f.Name != "map" || t == nil || t.Func == nil || len(t.SuffixList) > 0 || len(f.Args[0].FuncDefs) > 0 {
		return nil, false
	}
	cond, ok := c.selection(t.Func)
	return &eachItem{false, &when{cond, nothing{}, dropped{}}}, ok
}

// deletion is del(p, …).
func (c *planCompiler) deletion(q *gojq.Query, top bool) (transform, bool) {
	var paths [][]planSegment
	for ; len(q.FuncDefs) == 0 && q.Term == nil && q.Op == gojq.OpComma; q = q.Left {
		p, ok := c.path(q.Right)
		if !ok {
			return nil, false
		}
		paths = append(paths, p)
	}
	p, ok := c.path(q)
	if !ok {
		return nil, false
	}
	paths = append(paths, p)
	var do transform = nothing{}
	for i, p := range paths {
		if len(p) == 0 || len(paths) > 1 && !isApart(paths, i) {
			return nil, false
		}
		c.touch(p, top)
		do = &sequence{without(p), do}
	}
	return do, true
}

// isApart reports whether the path of number i is one of keys only, and none of
// the others lies in it: then it does not matter which goes first.
func isApart(paths [][]planSegment, i int) bool {
	if len(paths[i]) != 1 || paths[i][0].keys == nil {
		return false
	}
	keys := paths[i][0].keys
	for j, other := range paths {
		if j == i {
			continue
		}
		if len(other) != 1 {
			return false
		}
		if n := len(keys); len(other[0].keys) >= n && slices.Equal(other[0].keys[:n], keys) {
			return false
		}
	}
	return true
}

// movement is move(p; q) or rename(p; q).
func (c *planCompiler) movement(f *gojq.Func, top bool) (transform, bool) {
	from, ok := c.staticPath(f.Args[0])
	if !ok {
		return nil, false
	}
	to, ok := c.staticPath(f.Args[1])
	if !ok {
		return nil, false
	}
	c.touch([]planSegment{{keys: from}}, top)
	c.touch([]planSegment{{keys: to}}, top)
	if slices.Equal(from, to) {
		return nothing{}, true // but for the order
	}
	n := len(from) - 1
	return &moved{from, to, len(to) == n+1 && slices.Equal(from[:n], to[:n])}, true
}

// mapping is mapvalue(p; from; to).
func (c *planCompiler) mapping(f *gojq.Func, top bool) (transform, bool) {
	p, ok := c.staticPath(f.Args[0])
	if !ok {
		return nil, false
	}
	from, ok := c.constant(f.Args[1])
	if !ok {
		return nil, false
	}
	to, ok := c.constant(f.Args[2])
	c.touch([]planSegment{{keys: p}}, top)
	return &mapped{p, &comparison{dot{}, from, false}, to}, ok
}

// assurance is ensure(p; v).
func (c *planCompiler) assurance(f *gojq.Func, top bool) (transform, bool) {
	p, ok := c.staticPath(f.Args[0])
	if !ok {
		return nil, false
	}
	value, ok := c.constant(f.Args[1])
	c.touch([]planSegment{{keys: p}}, top)
	return &ensured{p, value}, ok
}
