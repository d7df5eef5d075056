package convert

import (
	"bytes"
	"math/big"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"
)

// expr compiles q as a value.
func (c *planCompiler) expr(q *gojq.Query) (expr, bool) {
	defer c.leave()
	if !c.enter() || len(q.FuncDefs) > 0 {
		return nil, false
	}
	if value, ok := c.constant(q); ok {
		return value, true
	}
	if q.Term != nil {
		return c.termExpr(q.Term)
	}
	switch q.Op {
	case gojq.OpAssign, gojq.OpModify, gojq.OpUpdateAlt:
		do, ok := c.update(q, false)
		return &changed{do}, ok
	case gojq.OpPipe:
		return c.chain(q)
	}
	left, ok := c.expr(q.Left)
	if !ok {
		return nil, false
	}
	right, ok := c.expr(q.Right)
	switch q.Op {
	case gojq.OpAlt:
		return &alternative{left, right}, ok
	case gojq.OpEq, gojq.OpNe:
		return &comparison{left, right, q.Op == gojq.OpNe}, ok
	case gojq.OpAnd:
		return &choice{left, &truth{right, false}, boolean(false)}, ok
	case gojq.OpOr:
		return &choice{left, boolean(true), &truth{right, false}}, ok
	default:
		return nil, false
	}
}

// chain is l | r, or l as $x | r.
func (c *planCompiler) chain(q *gojq.Query) (expr, bool) {
	if q.Patterns == nil {
		left, ok := c.expr(q.Left)
		if !ok {
			return nil, false
		}
		right, ok := c.expr(q.Right)
		return &chained{left, right}, ok
	}
	slot, value, ok := c.binding(q)
	if !ok {
		return nil, false
	}
	defer c.unbind(slot)
	right, ok := c.expr(q.Right)
	return &bound{hold{slot, value}, right}, ok
}

func (c *planCompiler) termExpr(t *gojq.Term) (expr, bool) {
	suffixes := t.SuffixList
	var value expr
	var ok bool
	if t.Type == gojq.TermTypeObject && len(suffixes) > 0 {
		value, ok = c.table(t)
		suffixes = suffixes[1:]
	} else {
		value, ok = c.headExpr(t)
	}
	for i := 0; ok && i < len(suffixes); i++ {
		switch s := suffixes[i]; {
		case s.Iter:
			return nil, false
		case s.Index != nil:
			var step expr
			step, ok = c.indexExpr(s.Index)
			value = &chained{value, step}
		}
		// A "?" makes no difference where nothing fails.
	}
	return value, ok
}

func (c *planCompiler) headExpr(t *gojq.Term) (expr, bool) {
	switch t.Type {
	case gojq.TermTypeIdentity:
		return dot{}, true
	case gojq.TermTypeIndex:
		return c.indexExpr(t.Index)
	case gojq.TermTypeQuery:
		return c.expr(t.Query)
	case gojq.TermTypeIf:
		return c.choice(t.If)
	case gojq.TermTypeFunc:
		return c.callExpr(t.Func)
	case gojq.TermTypeArray:
		return c.array(t.Array.Query)
	case gojq.TermTypeObject:
		return c.object(t.Object)
	default:
		return nil, false
	}
}

// indexExpr is a key, or the number of an item, that is spelled out.
func (c *planCompiler) indexExpr(i *gojq.Index) (expr, bool) {
	if key, ok := c.key(i); ok {
		return member(key), true
	}
	if i.IsSlice || i.Start == nil || i.Start.Term == nil || len(i.Start.Term.SuffixList) > 0 {
		return nil, false
	}
	n, err := strconv.ParseUint(i.Start.Term.Number, 10, 16)
	return item(n), err == nil && i.Start.Term.Type == gojq.TermTypeNumber
}

func (c *planCompiler) choice(q *gojq.If) (expr, bool) {
	cond, ok := c.expr(q.Cond)
	if !ok {
		return nil, false
	}
	yes, ok := c.expr(q.Then)
	if !ok {
		return nil, false
	}
	var no expr = dot{}
	switch rest := otherwise(q); {
	case rest != nil:
		no, ok = c.choice(rest)
	case q.Else != nil:
		no, ok = c.expr(q.Else)
	}
	return &choice{cond, yes, no}, ok
}

func (c *planCompiler) callExpr(f *gojq.Func) (expr, bool) {
	if strings.HasPrefix(f.Name, "$") {
		slot, ok := c.variable(f.Name)
		return held(slot), ok
	}
	switch jqName(f.Name, len(f.Args)) {
	case "not/0":
		return &truth{dot{}, true}, true
	case "has/1":
		key, ok := c.keyText(f.Args[0])
		return has(key), ok
	case "any/1", "all/1":
		cond, ok := c.expr(f.Args[0])
		return &quantified{dot{}, false, cond, f.Name == "all"}, ok
	case "any/2", "all/2":
		return c.quantified(f)
	case "tostring/0", "tonumber/0", "tointeger/0", "type/0":
		return conversion(f.Name), true
	}
	do, known, ok := c.call(f, false)
	return &changed{do}, known && ok
}

// quantified is any(list[]; cond) or all(list[]; cond).
func (c *planCompiler) quantified(f *gojq.Func) (expr, bool) {
	items := f.Args[0].Term
	if items == nil || len(f.Args[0].FuncDefs) > 0 {
		return nil, false
	}
	suffixes, optional := items.SuffixList, false
	if last := len(suffixes) - 1; last >= 0 && suffixes[last].Optional {
		suffixes, optional = suffixes[:last], true
	}
	last := len(suffixes) - 1
	if last < 0 || !suffixes[last].Iter {
		return nil, false
	}
	list := *items
	list.SuffixList = suffixes[:last]
	from, ok := c.termExpr(&list)
	if !ok {
		return nil, false
	}
	cond, ok := c.expr(f.Args[1])
	return &quantified{from, optional, cond, f.Name == "all"}, ok
}

// array is [a, b, …].
func (c *planCompiler) array(q *gojq.Query) (expr, bool) {
	a := &composed{}
	for ; q != nil; q = q.Left {
		item := q
		comma := len(q.FuncDefs) == 0 && q.Term == nil && q.Op == gojq.OpComma
		if comma {
			item = q.Right
		}
		value, ok := c.expr(item)
		if !ok {
			return nil, false
		}
		a.values = append([]expr{value}, a.values...)
		if !comma {
			break
		}
	}
	return a, true
}

// object is {a: v, b, "c": v, $d}.
func (c *planCompiler) object(o *gojq.Object) (expr, bool) {
	built := &composed{keys: []string{}}
	names := map[string]bool{}
	for _, kv := range o.KeyVals {
		name, ok := kv.Key, kv.KeyQuery == nil
		if kv.KeyString != nil {
			name, ok = kv.KeyString.Str, kv.KeyString.Queries == nil
		}
		var value expr = member(name)
		switch {
		case !ok:
			return nil, false
		case strings.HasPrefix(name, "$") && kv.Key != "":
			var slot int
			slot, ok = c.variable(name)
			name, value = name[1:], held(slot)
		case kv.Val != nil:
			value, ok = c.expr(kv.Val)
		}
		if !ok || names[name] {
			return nil, false
		}
		names[name] = true
		built.keys = append(built.keys, name)
		built.values = append(built.values, value)
	}
	return built, true
}

// table is {"from": "to", …}[v], a map of values.
func (c *planCompiler) table(t *gojq.Term) (expr, bool) {
	object, ok := c.constant(&gojq.Query{Term: &gojq.Term{Type: t.Type, Object: t.Object}})
	index := t.SuffixList[0].Index
	if !ok || index == nil || index.IsSlice || index.Start == nil {
		return nil, false
	}
	key, ok := c.expr(index.Start)
	return &table{object, key}, ok
}

// constant is a value that is spelled out.
func (c *planCompiler) constant(q *gojq.Query) (expr, bool) {
	text, ok := constantText(q)
	if !ok {
		return nil, false
	}
	return &constant{text, c.bind("")}, true
}

// constantText returns the JSON of what q always is. It has been made by gojq, as
// only gojq knows which number a number is.
func constantText(q *gojq.Query) (string, bool) {
	if q.Term == nil || !isConstant(q) {
		return "", false
	}
	code, err := gojq.Compile(q)
	if err != nil {
		return "", false
	}
	v, ok := code.Run(nil).Next()
	if _, failed := v.(error); failed || !ok || !hasOneText(v) {
		return "", false
	}
	e := encoder{limit: MaxJQProgramBytes}
	if err := e.value(v, 0); err != nil {
		return "", false
	}
	return string(e.dst), true
}

// isConstant reports whether q is a value that is spelled out, or several with
// commas between them.
func isConstant(q *gojq.Query) bool {
	if len(q.FuncDefs) > 0 {
		return false
	}
	if q.Term == nil {
		return q.Op == gojq.OpComma && isConstant(q.Left) && isConstant(q.Right)
	}
	t := q.Term
	if len(t.SuffixList) > 0 {
		return false
	}
	switch t.Type {
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber:
		return true
	case gojq.TermTypeString:
		return t.Str.Queries == nil
	case gojq.TermTypeUnary:
		return t.Unary.Term.Type == gojq.TermTypeNumber && len(t.Unary.Term.SuffixList) == 0
	case gojq.TermTypeArray:
		return t.Array.Query == nil || isConstant(t.Array.Query)
	case gojq.TermTypeObject:
		return isConstantObject(t.Object)
	default:
		return false
	}
}

func isConstantObject(o *gojq.Object) bool {
	for _, kv := range o.KeyVals {
		if kv.Val == nil || kv.Val.Term == nil || kv.KeyQuery != nil || kv.KeyString != nil && kv.KeyString.Queries != nil ||
			strings.HasPrefix(kv.Key, "$") || !isConstant(kv.Val) {
			return false
		}
	}
	return true
}

// hasOneText reports whether the numbers in v are written alike by gojq, when it
// makes strings of them, and by the encoder.
func hasOneText(v any) bool {
	switch v := v.(type) {
	case float64, *big.Int:
		theirs, err := gojq.Marshal(v)
		e := encoder{limit: MaxJQProgramBytes}
		return err == nil && e.value(v, 0) == nil && bytes.Equal(theirs, e.dst)
	case []any:
		for _, item := range v {
			if !hasOneText(item) {
				return false
			}
		}
	case map[string]any:
		for _, item := range v {
			if !hasOneText(item) {
				return false
			}
		}
	}
	return true
}
