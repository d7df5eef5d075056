package convert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// step is a compiled rule. It never changes.
type step struct {
	number int // its place among the steps
	pos    source.Pos
	action Action
	typ    Type // what the rule says, or unknown

	from, to       path // as written; to is from where the action has no target
	fromPos, toPos source.Pos

	base     path     // of from and to, up to and including the last [*]
	src, dst []string // the keys below an item of base
	shared   int      // how many keys src and dst have in common at their start

	// What the rule matches and writes, as JSON; nil where the rule has none.
	match, replace, fallback []byte

	unless []condition

	// The types that the schemas give the field in each version, where known.
	clientType, serverType Type
}

// condition is a path that may have a value: below the item that the step is at,
// or anywhere in the object.
type condition struct {
	item bool
	path path
	pos  source.Pos
}

// renames reports whether s takes a value from one place to another.
func (s *step) renames() bool { return s.action == Rename || s.action == Move }

// sibling reports whether s only changes the name of a field where it stands.
func (s *step) sibling() bool {
	return len(s.src) == len(s.dst) && s.shared == len(s.src)-1
}

// ruleCompiler collects the mistakes of one rule.
type ruleCompiler struct {
	rule *Rule
	errs source.Errors
}

// fail notes a mistake in a field of the rule.
func (rc *ruleCompiler) fail(field, format string, args ...any) {
	rc.errs = append(rc.errs, &source.Error{Pos: rc.at(field), Msg: fmt.Sprintf(format, args...)})
}

// at is where a field of the rule stands, or the rule.
func (rc *ruleCompiler) at(field string) source.Pos {
	if pos, known := rc.rule.FieldPos[field]; known {
		return pos
	}
	return rc.rule.Pos
}

var actions = []string{
	string(Rename), string(Move), string(Modify), string(EnsureFieldExistence), string(Remove),
}

var ruleTypes = []string{
	string(TypeString), string(TypeInteger), string(TypeNumber), string(TypeBoolean), string(TypeIntOrString),
}

// compileRule makes a rule a step, or says everything that is wrong with it.
func compileRule(rule *Rule) (*step, source.Errors) {
	rc := &ruleCompiler{rule: rule}
	if !slices.Contains(actions, string(rule.Action)) {
		rc.fail("action", "unknown action %q%s", rule.Action, source.Suggest(string(rule.Action), actions))
		return nil, rc.errs
	}
	if rule.Type != "" && !slices.Contains(ruleTypes, rule.Type) {
		rc.fail("type", "unknown type %q%s", rule.Type, source.Suggest(rule.Type, ruleTypes))
	}
	s := &step{pos: rule.Pos, action: rule.Action, typ: Type(rule.Type)}
	s.from = rc.path("path", rule.Path)
	s.to = s.from
	s.fromPos, s.toPos = rc.at("path"), rc.at("targetPath")
	rc.wanted(s)
	rc.unwanted()
	if s.from == nil || s.to == nil || len(rc.errs) > 0 {
		return nil, rc.errs
	}
	rc.place(s)
	s.match = rc.literal("matchValue", rule.HasMatch, rule.MatchValue, "")
	s.replace = rc.literal("replaceValue", rule.HasReplace, rule.ReplaceValue, s.typ)
	s.fallback = rc.literal("defaultValue", rule.HasDefault, rule.DefaultValue, s.typ)
	rc.unless(s)
	return s, rc.errs
}

// wanted checks what the action cannot do without.
func (rc *ruleCompiler) wanted(s *step) {
	switch rule := rc.rule; s.action {
	case Rename, Move:
		if rule.TargetPath == "" {
			rc.fail("action", "action %q wants a targetPath", s.action)
			return
		}
		s.to = rc.path("targetPath", rule.TargetPath)
	case Modify:
		switch {
		case rule.HasReplace:
		case rule.HasMatch:
			rc.fail("action", `action "modify" with a matchValue wants a replaceValue`)
		case rule.Type == "":
			rc.fail("action", `action "modify" wants a replaceValue, or a type to convert the value to`)
		}
	case EnsureFieldExistence:
		if !rule.HasDefault {
			rc.fail("action", `action "ensureFieldExistence" wants a defaultValue`)
		}
	}
}

// unwanted refuses what the action would silently ignore.
func (rc *ruleCompiler) unwanted() {
	rule := rc.rule
	refuse := func(given bool, field string, users ...Action) {
		if given && !slices.Contains(users, rule.Action) {
			rc.fail(field, "action %q does not use %s; leave it out", rule.Action, field)
		}
	}
	refuse(rule.TargetPath != "", "targetPath", Rename, Move)
	refuse(rule.HasMatch, "matchValue", Modify)
	refuse(rule.HasReplace, "replaceValue", Modify)
	refuse(rule.HasDefault, "defaultValue", EnsureFieldExistence)
	refuse(len(rule.Unless) > 0, "unless", EnsureFieldExistence)
	refuse(rule.Type != "", "type", Rename, Move, Modify, EnsureFieldExistence)
}

// path parses a path that a rule may change.
func (rc *ruleCompiler) path(field, text string) path {
	if text == "" {
		if _, given := rc.rule.FieldPos[field]; !given {
			field = "action"
		}
		rc.fail(field, "action %q wants a path", rc.rule.Action)
		return nil
	}
	p, err := parsePath(text)
	if err != nil {
		rc.fail(field, "%s: %v", field, err)
		return nil
	}
	if why := protected(p); why != "" {
		rc.fail(field, "%s: a rule cannot change %s: %s", field, text, why)
		return nil
	}
	return p
}

// protected says why p is not a rule's to change, or "".
func protected(p path) string {
	switch p[0].key {
	case "apiVersion", "kind":
		return "the conversion itself sets it"
	case "metadata":
		if len(p) == 1 {
			return "it identifies the object; metadata.labels and metadata.annotations may be changed"
		}
		if key := p[1].key; key != "labels" && key != "annotations" {
			return "it is the object's identity; of metadata, only labels and annotations may be changed"
		}
		if len(p) > 3 {
			return fmt.Sprintf(`all %[1]s are texts; a name with a dot stands in brackets, as in metadata.%[1]s["example.com/name"]`, p[1].key)
		}
	}
	return ""
}

// place divides the paths of s and checks that they fit together.
func (rc *ruleCompiler) place(s *step) {
	var base path
	s.base, s.src = s.from.split()
	base, s.dst = s.to.split()
	if !s.base.equal(base) {
		rc.fail("targetPath", "a value cannot leave its list: %s and %s must be the same up to the last [*]", s.from, s.to)
		return
	}
	if len(s.src) == 0 && s.action != Modify {
		rc.fail("path", "action %q wants a field's name after the last [*] of %s", s.action, s.from)
	}
	if !s.renames() {
		return
	}
	for s.shared < min(len(s.src), len(s.dst)) && s.src[s.shared] == s.dst[s.shared] {
		s.shared++
	}
	if s.shared == len(s.src) || s.shared == len(s.dst) {
		rc.fail("targetPath", "path and targetPath cannot lie in each other: %s, %s", s.from, s.to)
	}
}

// literal makes a value of the rule JSON, of type t where that is known.
func (rc *ruleCompiler) literal(field string, given bool, value any, t Type) []byte {
	if !given {
		return nil
	}
	e := encoder{limit: MaxObjectBytes}
	if err := e.value(value, 0); err != nil {
		rc.fail(field, "%s: %v", field, err)
		return nil
	}
	if t == TypeUnknown {
		return e.dst
	}
	out, ok := appendCoerced(nil, e.dst, t)
	if !ok {
		rc.fail(field, "%s: %s is not %s", field, source.Cut(string(e.dst)), t.article())
	}
	return out
}

func (rc *ruleCompiler) unless(s *step) {
	for i, text := range rc.rule.Unless {
		p, err := parsePath(text)
		if err != nil {
			rc.fail(fmt.Sprintf("unless[%d]", i), "unless: %v", err)
			continue
		}
		c := condition{path: p, pos: rc.at(fmt.Sprintf("unless[%d]", i))}
		if len(s.base) > 0 && p.hasPrefix(s.base) {
			c.item, c.path = true, p[len(s.base):]
		}
		s.unless = append(s.unless, c)
	}
}

// article returns the type's name for a sentence.
func (t Type) article() string {
	if strings.ContainsRune("aeiou", rune(t[0])) {
		return "an " + string(t)
	}
	return "a " + string(t)
}

// typed returns a copy of s that knows the types of its field.
func (s *step) typed(client, server Type) *step {
	t := *s
	if client == server && s.typ == TypeUnknown && s.renames() {
		return &t // a value of another type is for the server to refuse
	}
	t.clientType, t.serverType = client, server
	if t.typ == TypeUnknown {
		t.replace = writtenAs(t.replace, server)
		t.fallback = writtenAs(t.fallback, server)
	}
	return &t
}
