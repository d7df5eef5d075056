package convert

import (
	"context"
	"errors"
	"fmt"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// identity is the metadata that a conversion never changes, as for conversion
// webhooks: all of it but labels and annotations.
var identity = [...]string{
	"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation",
	"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers",
	"ownerReferences", "managedFields",
}

// program runs a jq program on the object and puts the result in its place, with
// the identity, version and kind that the object had, its names n.
func (x *run) program(p *program, n *names, vars *Vars) error {
	if p.parts != nil {
		var before kept
		if p.parts.touches != (touched{}) {
			before = x.keep(n)
		}
		done, err := x.inParts(p.parts, vars)
		if err != nil {
			return x.programError(p, err, vars)
		}
		if done {
			return x.restoreKept(p, &before, p.parts.touches, n)
		}
	}
	before := x.keep(n)
	err := x.interpret(p.whole, vars)
	if errors.Is(err, errUncovered) {
		err = x.interpret(&jqCode{code: p.whole.code, needs: &wholeNeed}, vars)
	}
	if err != nil {
		return x.programError(p, err, vars)
	}
	return x.restoreKept(p, &before, touched{names: true, identity: true}, n)
}

// interpret runs a program in gojq, on what it needs of the object.
func (x *run) interpret(c *jqCode, vars *Vars) error {
	d := x.d
	in := d.jqValue(x.at, c.needs)
	out, err := c.run(in, x.variables(vars), x.of.limits)
	if !c.needs.all && (err == nil && !c.needs.covers(out) || err != nil && !errors.Is(err, context.DeadlineExceeded)) {
		return errUncovered
	}
	if err != nil {
		return err
	}
	s := splicer{d: d, e: encoder{limit: len(d.own) + x.of.limits.JQOutputBytes}}
	err = s.put(x.at, c.needs, in, out, 0)
	if err == nil && d.size(x.at) > x.of.limits.JQOutputBytes {
		err = errTooLarge
	}
	if err != nil {
		return fmt.Errorf("cannot encode what the program returned: %w", err)
	}
	return nil
}

// programError says where and why the program failed on the object, which is as it
// was.
func (x *run) programError(p *program, err error, vars *Vars) *Error {
	pos := p.stages.text.Start
	if errors.Is(err, errProgram) && !errors.Is(err, errPanicked) && !errors.Is(err, context.DeadlineExceeded) {
		pos = p.stages.failed(x.d.jqWhole(x.at), x.variables(vars), x.of.limits)
	}
	return &Error{Policy: x.of.spec.Policy, Pos: pos, Msg: err.Error(), Err: err}
}

// touched says which of the fields that a program cannot change it might.
type touched struct {
	names    bool // apiVersion or kind
	identity bool
}

func (t touched) or(u touched) touched {
	return touched{names: t.names || u.names, identity: t.identity || u.identity}
}

// touchedBy returns what a program with needs n might write.
func touchedBy(n *need) touched {
	if n.all {
		return touched{true, true}
	}
	w := touched{names: n.members["apiVersion"] != nil || n.members["kind"] != nil}
	if metadata := n.members["metadata"]; metadata != nil {
		w.identity = metadata.all
		for key := range metadata.members {
			w.identity = w.identity || key != "labels" && key != "annotations"
		}
	}
	return w
}

// piece is a value in one of a document's two texts. The zero piece is none.
type piece struct {
	val span
	own bool
}

// kept are the values of the fields that a program cannot change.
type kept struct {
	apiVersion, kind piece
	metadata         piece
	identity         [len(identity)]piece
}

// keep notes the values that the object, whose names n are, has before a program
// runs. They stay in the document's texts whatever becomes of the nodes.
func (x *run) keep(n *names) kept {
	k := kept{apiVersion: x.d.textOf(n.apiVersionAt), kind: x.d.textOf(n.kindAt)}
	metadata := x.d.find(x.at, "metadata")
	if metadata == 0 {
		return k
	}
	k.metadata = x.d.textOf(metadata)
	for i, key := range identity {
		k.identity[i] = x.d.textOf(x.d.find(metadata, key))
	}
	return k
}

// textOf returns the value of r before its members were edited; none for 0.
func (d *doc) textOf(r ref) piece {
	if r == 0 {
		return piece{}
	}
	return piece{d.nodes[r].val, d.nodes[r].ownVal}
}

// restoreKept puts back what a program cannot change and might have.
func (x *run) restoreKept(p *program, k *kept, touches touched, n *names) error {
	if touches.identity {
		if err := x.restoreIdentity(p, k); err != nil {
			return err
		}
	}
	if touches.names {
		x.restore(x.at, "apiVersion", k.apiVersion)
		x.restore(x.at, "kind", k.kind)
		*n = x.c.names(x.d, x.at)
	}
	return nil
}

// restoreIdentity puts the identity fields back into the metadata that the
// program left.
func (x *run) restoreIdentity(p *program, k *kept) error {
	d := x.d
	had := k.metadata != piece{}
	r := d.find(x.at, "metadata")
	if r != 0 && d.kind(r) != kindObject {
		if had && kindOf(d.text(k.metadata.own)[k.metadata.val.start]) == d.kind(r) {
			return nil // it was no object before
		}
		return &Error{
			Policy: x.of.spec.Policy, Pos: p.stages.text.Start,
			Msg: fmt.Sprintf("the program made metadata %s, wanted an object", source.Cut(string(d.bytes(r)))),
		}
	}
	if r == 0 {
		if !had {
			return nil
		}
		r = d.add(x.at, "metadata", []byte("{}"))
	}
	for i, key := range identity {
		x.restore(r, key, k.identity[i])
	}
	return nil
}

// restore gives the member key of r the value old, or takes it away.
func (x *run) restore(r ref, key string, old piece) {
	d := x.d
	m := d.find(r, key)
	switch {
	case old == piece{} && m == 0:
	case old == piece{}:
		d.unlink(m)
	case m == 0:
		d.setSpan(d.add(r, key, []byte("null")), old.val, old.own)
	case d.textOf(m) != old || d.nodes[m].dirty:
		d.setSpan(m, old.val, old.own)
	}
}

// variables are the values of a program's variables, in the order of
// programVariables.
func (x *run) variables(vars *Vars) []any {
	request := map[string]any{}
	if vars != nil {
		for key, v := range vars.Request {
			request[key] = jqValue(v)
		}
	}
	return []any{request, x.of.apiVersion(x.dir), x.of.apiVersion(x.dir.reverse())}
}
