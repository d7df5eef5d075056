package convert

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// RuleInfo is what is to be shown of a rule.
type RuleInfo struct {
	Pos    source.Pos // of the rule in its file
	Action Action

	// Path and TargetPath are where its value is in the client's version and in the
	// server's.
	Path, TargetPath string

	// Type is what the rule makes of the value, ClientType what the schema of the client's
	// version says that it is; TypeUnknown where they do not say.
	Type, ClientType Type

	// Match, Replace and Default are the values that it looks for and writes, in JSON;
	// nil for none.
	Match, Replace, Default json.RawMessage
}

// Rules returns the rules, in the order of their way to the server.
func (c *Converter) Rules() []RuleInfo {
	rules := make([]RuleInfo, len(c.steps))
	for i, s := range c.steps {
		rules[i] = RuleInfo{
			Pos: s.pos, Action: s.action,
			Path: c.clientPath(i, s.from).String(), TargetPath: c.serverPath(i, s.to).String(),
			Type: s.typ, ClientType: s.clientType,
			Match: slices.Clone(s.match), Replace: slices.Clone(s.replace), Default: slices.Clone(s.fallback),
		}
	}
	return rules
}

// Program is a jq program of a conversion.
type Program struct {
	Text      *source.Text
	Direction Direction
}

// Programs returns the jq programs, those of the way to the server first, each in the
// order in which they run there.
func (c *Converter) Programs() []Program {
	var to, back []Program
	for _, l := range c.links {
		if p := l.of.request; p != nil {
			to = append(to, Program{l.of.spec.Request, ToServer})
		}
		if p := l.of.response; p != nil {
			back = append(back, Program{l.of.spec.Response, ToClient})
		}
	}
	slices.Reverse(back)
	return append(to, back...)
}

// Acted is told of what takes part in converting a body: of a rule that changes it, and
// of a program that runs. pos is the rule's, or where the program begins.
type Acted func(pos source.Pos, dir Direction)

// acted is whom to tell; nil for nobody.
func (v *Vars) acted() Acted {
	if v == nil {
		return nil
	}
	return v.Acted
}

// step does s, and tells of it if the object changes. To find that out costs two copies
// of the object, which only tests of policies pay.
func (x *run) step(s *step) error {
	if x.acted == nil {
		return x.each(s, x.at, 0)
	}
	before := x.d.bytes(x.at)
	if err := x.each(s, x.at, 0); err != nil {
		return err
	}
	if !bytes.Equal(before, x.d.bytes(x.at)) {
		x.acted(s.pos, x.dir)
	}
	return nil
}

// operationStep does s on one operation of a JSON patch, which is at r, and tells of it
// if the operation changes.
func (x *run) operationStep(s *step, o *operation, r ref) error {
	if x.acted == nil {
		return x.rewrite(s, o)
	}
	path, from, before := o.path, o.from, x.d.bytes(r)
	if err := x.rewrite(s, o); err != nil {
		return err
	}
	if o.drop || !slices.Equal(path, o.path) || !slices.Equal(from, o.from) || !bytes.Equal(before, x.d.bytes(r)) {
		x.acted(s.pos, x.dir)
	}
	return nil
}
