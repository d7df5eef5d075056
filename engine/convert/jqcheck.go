package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// jqChecker walks a parsed program in the order of its text, reports what cannot
// be bounded, and puts guards around what can be bounded by one.
type jqChecker struct {
	text  *source.Text
	errs  source.Errors
	words map[string][]int // where each name is used in the text, in order
	seen  map[string]int   // how many uses the walk has met

	scope     []jqFunc
	unbounded bool // what cannot be bounded may be used: see unboundedFuncs
	rebound   bool // the program has a variable $request of its own
}

// jqFunc is a function in scope: of the program, or a parameter of one.
type jqFunc struct {
	name     string // name/arity
	defining bool   // the walk is in its body
}

func newJQChecker(text *source.Text) *jqChecker {
	return &jqChecker{text: text, words: jqWords(text.Code), seen: map[string]int{}}
}

// compile checks query, puts the guards into it and compiles it.
func (c *jqChecker) compile(query *gojq.Query) (*gojq.Code, source.Errors) {
	c.program(query)
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	query.FuncDefs = append(prelude(), query.FuncDefs...)
	code, err := gojq.Compile(query, append(guardOptions(), gojq.WithVariables(programVariables))...)
	if err != nil {
		return nil, source.Errors{c.compileError(err)}
	}
	return code, nil
}

// fail reports a mistake at the use of name that the walk is at.
func (c *jqChecker) fail(name, format string, args ...any) {
	c.errs = append(c.errs, c.text.Error(c.offset(name), format, args...))
}

func (c *jqChecker) offset(name string) int {
	uses := c.words[name]
	if len(uses) == 0 {
		return 0
	}
	return uses[min(max(c.seen[name]-1, 0), len(uses)-1)]
}

func (c *jqChecker) program(q *gojq.Query) {
	if q.Meta != nil || len(q.Imports) > 0 {
		c.errs = append(c.errs, c.text.Error(0, "modules cannot be used here; write the functions into the program"))
		return
	}
	c.query(q)
}

func (c *jqChecker) query(q *gojq.Query) {
	if q == nil {
		return
	}
	level := len(c.scope)
	for _, def := range q.FuncDefs {
		c.funcDef(def)
	}
	if q.Term != nil {
		c.term(q.Term)
	} else {
		c.query(q.Left)
		if q.Op == gojq.OpPipe && len(q.Patterns) == 0 && isRequest(q.Left) {
			c.requestField(pipedField(q.Right))
		}
		c.patterns(q.Patterns)
		c.query(q.Right)
		c.operator(q)
	}
	c.scope = c.scope[:level]
}

// funcDef walks a definition and leaves the function in scope.
func (c *jqChecker) funcDef(def *gojq.FuncDef) {
	level := len(c.scope)
	c.scope = append(c.scope, jqFunc{jqName(def.Name, len(def.Args)), true})
	for _, arg := range def.Args {
		c.rebound = c.rebound || arg == requestVariable
		c.scope = append(c.scope, jqFunc{jqName(strings.TrimPrefix(arg, "$"), 0), false})
	}
	c.query(def.Body)
	c.scope = c.scope[:level+1]
	c.scope[level].defining = false
}

// whyNoLoops: values share their parts, so that doubling one at each step takes no
// time, but comparing or printing what the steps of a long list made takes for
// ever, and no deadline interrupts that.
const whyNoLoops = "cannot be used here: a client's list would decide how large a value grows; use map, add, any, all, min_by or group_by"

func jqName(name string, arity int) string { return fmt.Sprintf("%s/%d", name, arity) }

func (c *jqChecker) term(t *gojq.Term) {
	c.index(t.Index)
	c.format(t.Format)
	c.str(t.Str)
	c.query(t.Query)
	switch {
	case t.Func != nil:
		c.call(t)
	case t.Object != nil:
		for _, kv := range t.Object.KeyVals {
			c.objectMember(kv)
		}
	case t.Array != nil:
		c.query(t.Array.Query)
	case t.Unary != nil:
		c.term(t.Unary.Term)
	case t.If != nil:
		c.conditional(t.If)
	case t.Try != nil:
		c.query(t.Try.Body)
		c.query(t.Try.Catch)
	case t.Reduce != nil:
		c.loop("reduce", t.Reduce.Query, t.Reduce.Patterns, t.Reduce.Start, t.Reduce.Update)
	case t.Foreach != nil:
		c.loop("foreach", t.Foreach.Query, t.Foreach.Patterns, t.Foreach.Start, t.Foreach.Update, t.Foreach.Extract)
	case t.Label != nil:
		c.query(t.Label.Body)
	}
	for _, suffix := range t.SuffixList {
		c.index(suffix.Index)
	}
}

// loop checks a reduce or foreach over what over makes.
func (c *jqChecker) loop(name string, over *gojq.Query, patterns []*gojq.Pattern, parts ...*gojq.Query) {
	c.seen[name]++
	if !c.unbounded {
		c.fail(name, "%s %s", name, whyNoLoops)
		return
	}
	c.query(over)
	c.patterns(patterns)
	for _, part := range parts {
		c.query(part)
	}
}

func (c *jqChecker) conditional(e *gojq.If) {
	c.query(e.Cond)
	c.query(e.Then)
	for _, elif := range e.Elif {
		c.query(elif.Cond)
		c.query(elif.Then)
	}
	c.query(e.Else)
}

func (c *jqChecker) objectMember(kv *gojq.ObjectKeyVal) {
	if strings.HasPrefix(kv.Key, "$") {
		c.variable(kv.Key)
	}
	c.str(kv.KeyString)
	c.query(kv.KeyQuery)
	c.query(kv.Val)
}

func (c *jqChecker) str(s *gojq.String) {
	if s == nil {
		return
	}
	for _, q := range s.Queries {
		c.query(q)
	}
}

// format checks the name of a string format, which gojq does only when it runs.
func (c *jqChecker) format(name string) {
	if name == "" {
		return
	}
	c.seen[name]++
	if !slices.Contains(jqFormats, name) {
		c.fail(name, "format not defined: %s%s", name, source.Suggest(name, jqFormats))
	}
}

func (c *jqChecker) patterns(patterns []*gojq.Pattern) {
	for _, p := range patterns {
		c.rebound = c.rebound || p.Name == requestVariable
		c.patterns(p.Array)
		for _, o := range p.Object {
			c.rebound = c.rebound || o.Key == requestVariable
			c.str(o.KeyString)
			c.query(o.KeyQuery)
			if o.Val != nil {
				c.patterns([]*gojq.Pattern{o.Val})
			}
		}
	}
}

// index bounds an array index that is not spelled out.
func (c *jqChecker) index(i *gojq.Index) {
	if i == nil {
		return
	}
	c.str(i.Str)
	c.query(i.Start)
	c.query(i.End)
	if i.Start == nil || i.IsSlice || isStringConstant(i.Start) {
		return
	}
	i.Start = jqPipe(i.Start, jqCall(guardIndex))
}

func isStringConstant(q *gojq.Query) bool {
	t := q.Term
	return t != nil && t.Type == gojq.TermTypeString && t.Str.Queries == nil && len(t.SuffixList) == 0
}

func (c *jqChecker) variable(name string) {
	c.seen[name]++
	if name == "$ENV" {
		c.fail(name, "%s cannot be used here: %s", name, refusedFuncs[name])
	}
}

// call checks a function call and guards what it is given.
func (c *jqChecker) call(t *gojq.Term) {
	f := t.Func
	if strings.HasPrefix(f.Name, "$") {
		c.variable(f.Name)
		if f.Name == requestVariable && len(t.SuffixList) > 0 {
			c.requestField(t.SuffixList[0].Index)
		}
		return
	}
	c.seen[f.Name]++
	name := jqName(f.Name, len(f.Args))
	own := c.resolve(name)
	switch {
	case own != nil && own.defining && !c.unbounded:
		c.fail(f.Name, "%s calls itself and may not end; use map or walk", name)
	case own == nil && !allowedFuncs[name] && !(c.unbounded && unboundedFuncs[name]):
		c.unknown(f.Name, len(f.Args))
	}
	for _, arg := range f.Args {
		c.query(arg)
	}
	if own != nil {
		return
	}
	if guard := guardedArguments[name]; guard != "" {
		f.Args[0] = jqPipe(f.Args[0], jqCall(guard))
	}
	if guard := guardedInputs[name]; guard != "" {
		t.Type, t.Func = gojq.TermTypeQuery, nil
		t.Query = jqPipe(jqCall(guard), &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: f}})
	}
}

func (c *jqChecker) resolve(name string) *jqFunc {
	for i := len(c.scope) - 1; i >= 0; i-- {
		if c.scope[i].name == name {
			return &c.scope[i]
		}
	}
	return nil
}

// unknown reports a function that there is not, or that is refused.
func (c *jqChecker) unknown(name string, arity int) {
	if reason := refusedFuncs[name]; reason != "" {
		c.fail(name, "%s cannot be used here: %s", jqName(name, arity), reason)
		return
	}
	var known, arities []string
	add := func(f string) {
		n, a, _ := strings.Cut(f, "/")
		known = append(known, n)
		if n == name {
			arities = append(arities, a)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(allowedFuncs)) {
		add(f)
	}
	for _, f := range c.scope {
		add(f.name)
	}
	if len(arities) > 0 {
		noun := "arguments"
		if slices.Equal(arities, []string{"1"}) {
			noun = "argument"
		}
		c.fail(name, "function not defined: %s; %s takes %s %s", jqName(name, arity), name, strings.Join(arities, " or "), noun)
		return
	}
	if arity == 0 && insideName(c.text.Code, c.offset(name)) {
		c.fail(name, `function not defined: %s/0; a field whose name has a "-" or "/" stands in brackets, as in .labels["app/name"]`, name)
		return
	}
	c.fail(name, "function not defined: %s%s", jqName(name, arity), source.Suggest(name, slices.Compact(known)))
}

// insideName reports whether what stands at offset goes on a name with a "-" or "/",
// which jq takes for an operator.
func insideName(code string, offset int) bool {
	return offset >= 2 && (code[offset-1] == '-' || code[offset-1] == '/') && isWordByte(code[offset-2])
}

// operator guards the operands of q where its cost is not that of their size.
func (c *jqChecker) operator(q *gojq.Query) {
	switch q.Op {
	case gojq.OpMul:
		q.Left = jqPipe(q.Left, jqCall(guardFactor))
		q.Right = jqPipe(q.Right, jqCall(guardFactor))
	case gojq.OpSub:
		q.Left = jqPipe(q.Left, jqCall(guardSmall))
		q.Right = jqPipe(q.Right, jqCall(guardSmall))
	case gojq.OpUpdateMul:
		guardUpdate(q, gojq.OpMul, guardFactor)
	case gojq.OpUpdateSub:
		guardUpdate(q, gojq.OpSub, guardSmall)
	}
}

// guardUpdate writes l op= r as what it stands for, r as $x | l |= . op $x, with
// both operands guarded.
func guardUpdate(q *gojq.Query, op gojq.Operator, guard string) {
	const operand = "$_operand"
	update := &gojq.Query{
		Left:  jqCall(guard), // of .
		Op:    op,
		Right: jqCall(operand),
	}
	modify := &gojq.Query{Left: q.Left, Op: gojq.OpModify, Right: update}
	q.Left, q.Op, q.Right = jqPipe(q.Right, jqCall(guard)), gojq.OpPipe, modify
	q.Patterns = []*gojq.Pattern{{Name: operand}}
}

func jqPipe(left, right *gojq.Query) *gojq.Query {
	return &gojq.Query{Left: left, Op: gojq.OpPipe, Right: right}
}

func jqCall(name string) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name}}}
}

// compileError gives the place to an error of gojq's compiler, which says only
// the name of what is wrong.
func (c *jqChecker) compileError(err error) *source.Error {
	msg := err.Error()
	if strings.HasPrefix(msg, "missing query") {
		return c.text.Error(len(c.text.Code), "the program does nothing: write . for an object that stays as it is")
	}
	name := msg[strings.LastIndexByte(msg, ' ')+1:]
	offset := 0
	if uses := c.words[name]; len(uses) > 0 {
		offset = uses[0]
	}
	hint := ""
	if strings.HasPrefix(msg, "variable") {
		hint = source.Suggest(name, programVariables)
	}
	return c.text.Error(offset, "%s%s", msg, hint)
}
