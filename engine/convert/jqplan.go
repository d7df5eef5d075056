package convert

import (
	"sync"

	"github.com/itchyny/gojq"
)

// A plan is a jq program as edits of a document: what it does not name keeps its
// bytes, and nothing is decoded. It exists for programs made of a few shapes only
// (jqplancompile.go), and follows them only as long as all goes well: on whatever
// would be an error in jq, or is not certain to be the same there, it gives up,
// the document is put back, and gojq runs the program from its start.
type plan struct {
	do      transform
	touches touched
	slots   int // how many values it holds on to
}

// transform changes the value at a node. It reports false to give up; the
// document is then half changed.
type transform interface {
	apply(p *planRun, at ref) bool
}

// expr makes a value of the one at a node, without changing it. The result is a
// node of the document, or one that is not linked into it; it is good until the
// next change. It reports false to give up.
type expr interface {
	eval(p *planRun, at ref) (ref, bool)
}

// planRun is one run of a plan.
type planRun struct {
	c      *Converter
	dir    Direction
	d      *doc
	slots  []ref  // nodes that are never changed; 0 until they are made
	words  [3]ref // null, false and true; 0 until they are made
	saved  []node // of the document, before the run
	own    int    // how much text of its own the document had then
	budget int    // how many bytes may still be written or repeated
}

var planRuns = sync.Pool{New: func() any { return new(planRun) }}

// versionVariables have the first slots: what holds the version that the object
// has, and the one that it gets. $request is for gojq.
var versionVariables = programVariables[1:]

// nodeCost is what a node that a plan makes takes off its budget, in bytes.
const nodeCost = 64

// planOf returns the plan of q, which has been checked and has no guards yet; nil
// when its shape is not known.
func planOf(q *gojq.Query) *plan {
	c := &planCompiler{spelled: map[int]string{}}
	for _, name := range versionVariables {
		c.bind(name)
	}
	do, ok := c.transform(q, true)
	if !ok {
		return nil
	}
	return &plan{do: do, touches: c.touches, slots: c.slots}
}

// beginPlan starts a run on the object of x. It has to end.
func beginPlan(x *run) *planRun {
	p := planRuns.Get().(*planRun)
	p.c, p.dir, p.d = x.of, x.dir, x.d
	p.saved, p.own = append(p.saved[:0], x.d.nodes...), len(x.d.own)
	return p
}

// undo puts the document back as it was at the start.
func (p *planRun) undo() {
	p.d.nodes = append(p.d.nodes[:0], p.saved...)
	p.d.own = p.d.own[:p.own]
}

func (p *planRun) end() {
	p.c, p.d = nil, nil
	if cap(p.saved) <= maxPooledNodes {
		planRuns.Put(p)
	}
}

// follow runs the plan on the object at. It reports false, with the document half
// changed, when gojq has to run the program.
func (p *planRun) follow(pl *plan, at ref) bool {
	p.budget = p.c.limits.JQOutputBytes - p.d.size(at)
	p.words = [3]ref{}
	p.slots = p.slots[:0]
	for range pl.slots {
		p.slots = append(p.slots, 0)
	}
	return pl.do.apply(p, at)
}

// text makes s, one checked JSON value, a node.
func (p *planRun) text(s string) ref {
	start := len(p.d.own)
	p.d.own = append(p.d.own, s...)
	return p.detached(span{int32(start), int32(len(p.d.own))}, true)
}

// detached makes a checked value in one of the two texts a node.
func (p *planRun) detached(val span, own bool) ref {
	p.budget -= nodeCost
	return p.d.detached(val, own)
}

// word returns the node of null, false or true.
func (p *planRun) word(i int) ref {
	if p.words[i] == 0 {
		p.words[i] = p.text([...]string{"null", "false", "true"}[i])
	}
	return p.words[i]
}

func (p *planRun) null() ref { return p.word(0) }

func (p *planRun) boolean(b bool) (ref, bool) {
	if b {
		return p.word(2), true
	}
	return p.word(1), true
}

// spend takes n bytes off the budget, and reports false when that is used up:
// gojq will say so, or find that it is not.
func (p *planRun) spend(n int) bool {
	p.budget -= n
	return p.budget >= 0
}

// copyOf returns a node that has the value of r and stays as it is.
func (p *planRun) copyOf(r ref) (ref, bool) {
	d := p.d
	if d.nodes[r].dirty {
		start := len(d.own)
		d.own = d.appendTo(d.own, r)
		val := span{int32(start), int32(len(d.own))}
		return p.detached(val, true), p.spend(len(d.own) - start)
	}
	return p.detached(d.nodes[r].val, d.nodes[r].ownVal), p.budget >= 0
}

// put makes the value of the node v that of the node at.
func (p *planRun) put(at, v ref) bool {
	if p.d.nodes[v].dirty {
		var ok bool
		if v, ok = p.copyOf(v); !ok {
			return false
		}
	}
	n := &p.d.nodes[v]
	if !p.spend(int(n.val.end - n.val.start)) {
		return false
	}
	p.d.setSpan(at, n.val, n.ownVal)
	return true
}

// field returns the member key of r: 0 where there is none. It gives up where jq
// cannot look for one.
func (p *planRun) field(r ref, key string) (ref, bool) {
	switch p.d.kind(r) {
	case kindObject:
		return p.d.find(r, key), true
	case kindNull:
		return 0, true
	default:
		return 0, false
	}
}

// made returns the member key of r, making an object of a null, and a null of what
// is absent.
func (p *planRun) made(r ref, key string) (ref, bool) {
	m, ok := p.field(r, key)
	if !ok || m != 0 {
		return m, ok
	}
	if p.d.kind(r) == kindNull {
		p.d.set(r, []byte("{}"))
	}
	return p.d.addSpan(r, key, p.d.write([]byte("null"))), p.spend(nodeCost + len(key) + len(`"":null,{}`))
}

// isTrue reports whether jq takes the value r for true.
func (p *planRun) isTrue(r ref) bool {
	switch p.d.kind(r) {
	case kindNull:
		return false
	case kindBool:
		return p.d.raw(r)[0] == 't'
	default:
		return true
	}
}
