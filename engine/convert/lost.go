package convert

import (
	"strings"

	"github.com/itchyny/gojq"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// maxLost bounds how many fields of one object are named as lost.
const maxLost = 1000

// Lost is a field of a client's that the conversion drops on its way to the server.
type Lost struct {
	Path string // as kube-apiserver writes it: spec.containers[0].image
	Null bool   // it has no value
}

// Lost returns the fields of the client's object or patch src, in JSON, that a rule
// removes, or a stage of the program that does nothing else than to delete them. Of what
// else a program drops nothing is known.
func (c *Converter) Lost(src []byte) []Lost {
	paths := c.lostPaths()
	if len(paths) == 0 {
		return nil
	}
	d := newDoc()
	defer d.free()
	if d.parse(src) != nil {
		return nil
	}
	var found []Lost
	for _, p := range paths {
		found = d.appendLost(found, root, p, "")
	}
	return found
}

// lostPaths are the paths, in the client's version, of what is dropped.
func (c *Converter) lostPaths() []path {
	var paths []path
	for i, s := range c.steps {
		if s.action == Remove && !c.leavesBehind(i) {
			paths = append(paths, c.clientPath(i, s.from))
		}
	}
	for _, l := range c.links {
		if l.of.request == nil {
			continue
		}
		for _, p := range l.of.request.deletes {
			paths = append(paths, c.clientPath(l.end, p))
		}
	}
	return paths
}

// leavesBehind reports whether the rule i removes what is left of an object after earlier
// rules have taken its fields elsewhere. What else a client has there its own version's
// schema tells.
func (c *Converter) leavesBehind(i int) bool {
	gone := c.clientPath(i, c.steps[i].from)
	for j, s := range c.steps[:i] {
		if s.action == Rename || s.action == Move {
			if taken := c.clientPath(j, s.from); len(taken) > len(gone) && taken.hasPrefix(gone) {
				return true
			}
		}
	}
	return false
}

// appendLost appends the fields at p below r, whose own path is at.
func (d *doc) appendLost(found []Lost, r ref, p path, at string) []Lost {
	for i, e := range p {
		if e.each {
			index := 0
			for m := d.firstItem(r); m != 0 && len(found) < maxLost; m = d.next(m) {
				var b strings.Builder
				b.WriteString(at)
				appendElem(&b, e, index)
				found = d.appendLost(found, m, p[i+1:], b.String())
				index++
			}
			return found
		}
		if d.kind(r) != kindObject {
			return found
		}
		if r = d.find(r, e.key); r == 0 {
			return found
		}
		var b strings.Builder
		b.WriteString(at)
		appendElem(&b, e, -1)
		at = b.String()
	}
	return append(found, Lost{Path: at, Null: d.isNull(r)})
}

// deletesOf returns the paths that stages of the program text, which has been compiled
// before, delete, while no other stage has to do with them: what a program takes away
// after it has looked at it may be elsewhere.
func deletesOf(text *source.Text) []path {
	stages := pipeStages(plainQuery(text.Code))
	needs := make([]*need, len(stages))
	for i, stage := range stages {
		needs[i], _ = needsOf(stage)
	}
	var paths []path
	for i, stage := range stages {
		deleted := deletedBy(stage)
		if len(deleted) == 0 {
			continue
		}
		alone := true
		for k, other := range needs {
			alone = alone && (k == i || !needs[i].overlaps(other))
		}
		if alone {
			paths = append(paths, deleted...)
		}
	}
	return paths
}

// deletedBy returns the paths that the stage deletes, if that is all it does.
func deletedBy(stage *gojq.Query) []path {
	if stage.Term == nil || len(stage.FuncDefs) > 0 || stage.Term.Type != gojq.TermTypeFunc || len(stage.Term.SuffixList) > 0 {
		return nil
	}
	call := stage.Term.Func
	if call.Name != "del" || len(call.Args) != 1 {
		return nil
	}
	var paths []path
	for _, q := range alternatives(call.Args[0]) {
		c := &planCompiler{spelled: map[int]string{}}
		segments, ok := c.path(q)
		if !ok {
			return nil
		}
		p := pathOf(segments)
		if len(p) == 0 || p[len(p)-1].each || protected(p) != "" {
			return nil
		}
		paths = append(paths, p)
	}
	return paths
}

// alternatives returns what q puts a comma between.
func alternatives(q *gojq.Query) []*gojq.Query {
	if len(q.FuncDefs) > 0 || q.Term != nil || q.Op != gojq.OpComma {
		return []*gojq.Query{q}
	}
	return append(alternatives(q.Left), alternatives(q.Right)...)
}

// pathOf is a plan's path as a rule's; nil when it leads to some items of a list only.
func pathOf(segments []planSegment) path {
	var p path
	for _, s := range segments {
		switch {
		case s.cond != nil:
			return nil
		case s.each:
			p = append(p, elem{each: true})
		}
		for _, key := range s.keys {
			p = append(p, elem{key: key})
		}
	}
	return p
}
