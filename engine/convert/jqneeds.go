package convert

import (
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// A program of gojq's costs by what it is given. jqNeeds finds out, before it
// ever runs, which part of an object a program can see or change, so that the
// rest need not be decoded. It follows where in the object the input and output
// of each term lie. Whatever it does not know for certain sees all of its input.

// place is where a value comes from.
type place struct {
	kind placeKind
	at   *need  // of a value in the object; may have been changed, within its need
	text string // what a string that is spelled out says
}

type placeKind uint8

const (
	nowhere  placeKind = iota // there is no value: it fails, or is empty
	inObject                  // at a place in the object
	elsewhere
	spelled // a string that is in the program
)

// jqNeeds walks a program.
type jqNeeds struct {
	root  need
	scope []jqBinding
	grows bool // what some term makes, or how often one runs, is not bounded by the program's length
}

type jqBinding struct {
	name string
	at   place
}

// needsOf returns what q, which has been checked and has no guards yet, needs of
// its input, and whether it is bounded: each of its terms runs at most once, and
// makes nothing larger than what it is given.
func needsOf(q *gojq.Query) (n *need, bounded bool) {
	w := &jqNeeds{}
	for _, name := range programVariables {
		w.bind(name, place{kind: elsewhere})
	}
	out := w.query(q, place{kind: inObject, at: &w.root})
	if out.kind == inObject && out.at == &w.root && !w.root.all {
		return &w.root, !w.grows
	}
	return &wholeNeed, !w.grows
}

func (n *jqNeeds) bind(name string, at place) { n.scope = append(n.scope, jqBinding{name, at}) }

func (n *jqNeeds) variable(name string) place {
	for i := len(n.scope) - 1; i >= 0; i-- {
		if n.scope[i].name == name {
			return n.scope[i].at
		}
	}
	n.root.all = true
	return place{kind: elsewhere}
}

// see notes that all of the value at p counts.
func (n *jqNeeds) see(p place) place {
	if p.kind == inObject {
		p.at.all = true
	}
	return place{kind: elsewhere}
}

// all evaluates q and sees its whole result.
func (n *jqNeeds) all(q *gojq.Query, in place) {
	if q != nil {
		n.see(n.query(q, in))
	}
}

// join is the place of a value that is at a or at b.
func (n *jqNeeds) join(a, b place) place {
	switch {
	case a == b, b.kind == nowhere:
		return a
	case a.kind == nowhere:
		return b
	}
	n.see(a)
	n.see(b)
	return place{kind: elsewhere}
}

func (n *jqNeeds) query(q *gojq.Query, in place) place {
	level := len(n.scope)
	defer func() { n.scope = n.scope[:level] }()
	if len(q.FuncDefs) > 0 {
		return n.unknown(in)
	}
	if q.Term != nil {
		return n.term(q.Term, in)
	}
	n.grows = n.grows || !slices.Contains(boundedOperators, q.Op)
	switch q.Op {
	case gojq.OpPipe:
		left := n.query(q.Left, in)
		if q.Patterns == nil {
			return n.query(q.Right, left)
		}
		n.patterns(q.Patterns, left)
		return n.query(q.Right, in)
	case gojq.OpComma:
		return n.join(n.query(q.Left, in), n.query(q.Right, in))
	case gojq.OpAlt:
		return n.join(n.query(q.Left, in), n.query(q.Right, in))
	case gojq.OpAnd, gojq.OpOr:
		// Of an object it counts only that it is one.
		n.query(q.Left, in)
		n.query(q.Right, in)
		return place{kind: elsewhere}
	case gojq.OpEq, gojq.OpNe:
		n.comparison(q, in)
		return place{kind: elsewhere}
	case gojq.OpModify:
		return n.modify(q, in)
	case gojq.OpAssign, gojq.OpUpdateAdd, gojq.OpUpdateSub, gojq.OpUpdateMul, gojq.OpUpdateDiv, gojq.OpUpdateMod, gojq.OpUpdateAlt:
		n.all(q.Left, in)
		n.all(q.Right, in)
		return in
	default:
		n.all(q.Left, in)
		n.all(q.Right, in)
		return place{kind: elsewhere}
	}
}

// modify is l |= r: what r keeps to of l, nobody else sees.
func (n *jqNeeds) modify(q *gojq.Query, in place) place {
	left := n.query(q.Left, in)
	if out := n.query(q.Right, left); out != left {
		n.see(left)
		n.see(out)
	}
	return in
}

// comparison is == or !=. Whether an object is a certain scalar does not depend
// on its members.
func (n *jqNeeds) comparison(q *gojq.Query, in place) {
	left, right := n.query(q.Left, in), n.query(q.Right, in)
	if !isScalarConstant(q.Right) {
		n.see(left)
	}
	if !isScalarConstant(q.Left) {
		n.see(right)
	}
}

func isScalarConstant(q *gojq.Query) bool {
	if q.Term == nil || len(q.Term.SuffixList) > 0 {
		return false
	}
	switch q.Term.Type {
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber:
		return true
	default:
		return isStringConstant(q)
	}
}

// patterns binds the variables of "as" patterns to the value at p.
func (n *jqNeeds) patterns(patterns []*gojq.Pattern, p place) {
	if len(patterns) == 1 && patterns[0].Name != "" {
		n.bind(patterns[0].Name, p)
		return
	}
	n.see(p)
	for _, pattern := range patterns {
		n.pattern(pattern)
	}
}

func (n *jqNeeds) pattern(p *gojq.Pattern) {
	if p.Name != "" {
		n.bind(p.Name, place{kind: elsewhere})
	}
	for _, item := range p.Array {
		n.pattern(item)
	}
	for _, member := range p.Object {
		if member.KeyQuery != nil || member.KeyString != nil {
			n.root.all = true
		}
		if strings.HasPrefix(member.Key, "$") {
			n.bind(member.Key, place{kind: elsewhere})
		}
		if member.Val != nil {
			n.pattern(member.Val)
		}
	}
}

// boundedOperators and boundedFuncs run each operand once, and make nothing
// larger than what they are given.
var (
	boundedOperators = []gojq.Operator{
		gojq.OpPipe, gojq.OpAlt, gojq.OpAnd, gojq.OpOr, gojq.OpEq, gojq.OpNe, gojq.OpModify, gojq.OpAssign, gojq.OpUpdateAlt,
	}
	boundedFuncs = []string{
		"move/2", "rename/2", "mapvalue/3", "ensure/2", "del/1", "has/1", "select/1", "not/0", "empty/0", "error/1", "tointeger/0",
	}
)

// call is a function. in is its input.
func (n *jqNeeds) call(f *gojq.Func, in place) place {
	name := jqName(f.Name, len(f.Args))
	if strings.HasPrefix(f.Name, "$") {
		return n.variable(f.Name)
	}
	n.grows = n.grows || !slices.Contains(boundedFuncs, name)
	switch name {
	case "empty/0":
		return place{}
	case "error/1":
		n.all(f.Args[0], in)
		return place{}
	case "not/0":
		return place{kind: elsewhere}
	case "select/1":
		n.query(f.Args[0], in)
		return in
	case "has/1":
		return n.has(f.Args[0], in)
	case "move/2", "rename/2", "mapvalue/3", "ensure/2", "del/1":
		for _, arg := range f.Args {
			n.all(arg, in)
		}
		return in
	case "any/2", "all/2":
		n.all(f.Args[0], in)
		n.all(f.Args[1], place{kind: elsewhere})
		return place{kind: elsewhere}
	case "stash/2", "unstash/2":
		for _, arg := range f.Args {
			n.all(arg, in)
		}
		n.see(n.key(n.key(in, "metadata"), "annotations"))
		return in
	}
	// The arguments may be evaluated anywhere, but only below what the input has.
	n.see(in)
	for _, arg := range f.Args {
		n.all(arg, place{kind: elsewhere})
	}
	return place{kind: elsewhere}
}

func (n *jqNeeds) has(key *gojq.Query, in place) place {
	if p := n.query(key, in); p.kind == spelled {
		n.see(n.key(in, p.text))
	} else {
		n.see(p)
		n.see(in)
	}
	return place{kind: elsewhere}
}

// key is the member key of the value at p.
func (n *jqNeeds) key(p place, key string) place {
	if p.kind != inObject {
		return n.see(p)
	}
	return place{kind: inObject, at: p.at.member(key)}
}
