package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// The properties are checked on random rules, objects and patches made of very
// few names, so that they meet each other all the time.

// tries is how many random cases a plain test run looks at.
const tries = 3000

type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 1))} }

func pick[T any](r dice, from ...T) T { return from[r.IntN(len(from))] }

// fieldPath makes a path below spec; list says whether it goes through spec.list.
func (r dice) fieldPath(list bool) string {
	p := "spec"
	if list {
		p = "spec.list[*]"
	}
	for range 1 + r.IntN(2) {
		p += "." + pick(r, "a", "b", "c")
	}
	return p
}

// spec makes a spec of one to three rules that compiles.
func (r dice) spec() Spec {
	for {
		spec := articleSpec()
		spec.Rules = nil
		for range 1 + r.IntN(3) {
			list := r.IntN(4) == 0
			rule := Rule{Action: pick(r, Rename, Move, Modify), Path: r.fieldPath(list)}
			if rule.Action == Modify {
				rule.HasMatch, rule.MatchValue = true, "old"
				rule.HasReplace, rule.ReplaceValue = true, "new"
			} else {
				rule.TargetPath = r.fieldPath(list)
			}
			spec.Rules = append(spec.Rules, rule)
		}
		if _, errs := Compile(spec); errs == nil {
			return spec
		}
	}
}

// value makes a JSON value that is depth deep at most; nulls says whether it may
// have null members.
func (r dice) value(depth int, nulls bool) any {
	n := r.IntN(8)
	switch {
	case n < 4 && depth > 0:
		m := map[string]any{}
		for _, key := range []string{"a", "b", "c"} {
			if r.IntN(2) == 0 {
				m[key] = r.value(depth-1, nulls)
			}
		}
		return m
	case n == 4 && nulls:
		return nil
	default:
		return pick[any](r, "old", "x", json.Number("1"), true)
	}
}

// object makes the spec of an object, or of a patch with nulls.
func (r dice) object(nulls bool) map[string]any {
	spec := map[string]any{}
	for _, key := range []string{"a", "b", "c"} {
		if r.IntN(2) == 0 {
			spec[key] = r.value(2, nulls)
		}
	}
	if r.IntN(2) == 0 {
		list := []any{}
		for range r.IntN(3) {
			list = append(list, r.value(2, false))
		}
		spec["list"] = list
	}
	if nulls && r.IntN(6) == 0 {
		return map[string]any{"spec": nil}
	}
	return map[string]any{"spec": spec}
}

func text(t testing.TB, v any) []byte {
	t.Helper()
	e := encoder{limit: 1 << 20}
	if err := e.value(v, 0); err != nil {
		t.Fatal(err)
	}
	return e.dst
}

func parsed(t testing.TB, b []byte) any {
	t.Helper()
	d := newDoc()
	defer d.free()
	if err := d.parse(b); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return decode(d, root)
}

func decode(d *doc, r ref) any {
	switch d.kind(r) {
	case kindObject:
		m := map[string]any{}
		for c := d.first(r); c != 0; c = d.next(c) {
			m[d.key(c)] = decode(d, c)
		}
		return m
	case kindArray:
		list := []any{}
		for c := d.first(r); c != 0; c = d.next(c) {
			list = append(list, decode(d, c))
		}
		return list
	case kindNull:
		return nil
	case kindBool:
		return d.raw(r)[0] == 't'
	case kindString:
		return d.str(r)
	default:
		return json.Number(d.raw(r))
	}
}

// withoutEmpty drops the members that are empty objects: whether one is left
// when its last member goes is the one thing that conversions do not promise.
func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			member = withoutEmpty(member)
			if m, ok := member.(map[string]any); ok && len(m) == 0 {
				delete(v, key)
			} else {
				v[key] = member
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
	}
	return v
}

func sameButEmpty(t testing.TB, a, b []byte) bool {
	t.Helper()
	x := text(t, withoutEmpty(parsed(t, a)))
	y := text(t, withoutEmpty(parsed(t, b)))
	return string(x) == string(y)
}

// isFaithful reports whether x survives the way to the server and back, and
// returns what the server has. Objects that hold the target of a rename already,
// or things where its parents must be, do not; no promise is made for them.
func isFaithful(t testing.TB, c *Converter, x []byte) ([]byte, bool) {
	t.Helper()
	up, err := c.Object(nil, x, ToServer, nil)
	if err != nil {
		return nil, false
	}
	down, err := c.Object(nil, up, ToClient, nil)
	if err != nil {
		t.Fatalf("%s came back as an error: %v", x, err)
	}
	return up, sameButEmpty(t, down, x)
}

// isOdd reports whether x has something where a rename puts its value, or
// something else than an object around it, or the renames of c meet each other's
// targets: the versions are not such that x is an object of the older one.
func isOdd(c *Converter, x []byte) bool {
	d := newDoc()
	defer d.free()
	if d.parse(x) != nil {
		return true
	}
	for _, s := range c.steps {
		if !s.renames() {
			continue
		}
		if isTaken(d, root, s.to, true) || isTaken(d, root, s.from, false) {
			return true
		}
		for _, other := range c.steps {
			if other != s && other.renames() && (other.to.hasPrefix(s.to) || s.to.hasPrefix(other.to)) {
				return true
			}
		}
	}
	return false
}

// isTaken reports whether there is no room for a value at p below r or, for a
// target, a value already.
func isTaken(d *doc, r ref, p path, target bool) bool {
	for i, e := range p {
		if e.each {
			if d.kind(r) != kindArray {
				return false
			}
			for m := d.first(r); m != 0; m = d.next(m) {
				if isTaken(d, m, p[i+1:], target) {
					return true
				}
			}
			return false
		}
		if k := d.kind(r); k != kindObject {
			return k != kindNull && i > 1
		}
		if r = d.find(r, e.key); r == 0 {
			return false
		}
	}
	return target
}

func TestRoundTrip(t *testing.T) {
	kept := 0
	for seed := range uint64(tries) {
		r := newDice(seed)
		spec := r.spec()
		spec.Rules = spec.Rules[:1]
		c := mustCompile(t, spec)
		x := text(t, r.object(false))
		if isOdd(c, x) {
			continue
		}
		up, err := c.Object(nil, x, ToServer, nil)
		if err != nil {
			continue // something else is where an object must be
		}
		kept++
		down, err := c.Object(nil, up, ToClient, nil)
		if err != nil || !sameButEmpty(t, down, x) {
			t.Fatalf("seed %d: rules %v\nclient %s\nserver %s\nback   %s %v", seed, spec.Rules, x, up, down, err)
		}
	}
	if kept < tries/4 {
		t.Errorf("only %d of %d cases counted", kept, tries)
	}
}

// checkMergePatch checks that patching the server's object with the converted
// patch is the same as patching the client's and converting.
func checkMergePatch(t *testing.T, seed uint64) (counted bool) {
	t.Helper()
	r := newDice(seed)
	spec := r.spec()
	c := mustCompile(t, spec)
	x, patch := text(t, r.object(false)), text(t, r.object(true))
	serverX, ok := isFaithful(t, c, x)
	if !ok || isOdd(c, x) || isOdd(c, patch) {
		return false
	}
	patched, err := MergePatchApply(x, patch)
	if err != nil {
		t.Fatal(err)
	}
	want, ok := isFaithful(t, c, patched)
	if !ok {
		return false
	}
	serverPatch, err := c.MergePatch(nil, patch, nil)
	if errors.Is(err, ErrNeedsObject) {
		return false
	}
	var got []byte
	if err == nil {
		got, err = MergePatchApply(serverX, serverPatch)
	}
	if err != nil || !sameButEmpty(t, got, want) {
		t.Fatalf("seed %d: rules %v\nobject %s\npatch  %s\nserver's %s\nserver's %s\n got %s %v\nwant %s",
			seed, describe(spec), x, patch, serverX, serverPatch, got, err, want)
	}
	return true
}

func describe(spec Spec) string {
	s := ""
	for _, rule := range spec.Rules {
		s += fmt.Sprintf("\n  %s %s %s", rule.Action, rule.Path, rule.TargetPath)
	}
	return s
}

func TestMergePatchProperty(t *testing.T) {
	counted := 0
	for seed := range uint64(tries) {
		if checkMergePatch(t, seed) {
			counted++
		}
	}
	if counted < tries/20 {
		t.Errorf("only %d of %d cases counted", counted, tries)
	}
}

func FuzzMergePatch(f *testing.F) {
	f.Fuzz(func(t *testing.T, seed uint64) { checkMergePatch(t, seed) })
}

// checkJSONPatch is checkMergePatch for an RFC 6902 patch.
func checkJSONPatch(t *testing.T, seed uint64) (counted bool) {
	t.Helper()
	r := newDice(seed)
	spec := r.spec()
	c := mustCompile(t, spec)
	x := text(t, r.object(false))
	serverX, ok := isFaithful(t, c, x)
	if !ok || isOdd(c, x) {
		return false
	}
	// One operation at a time, so that every state on the way is a faithful one.
	for range 3 {
		op := r.operation()
		patched, applied := applyOperation(parsed(t, x), op)
		if !applied {
			continue
		}
		y := text(t, patched)
		want, ok := isFaithful(t, c, y)
		if !ok || isOdd(c, y) {
			continue
		}
		patch, err := c.JSONPatch(nil, text(t, []any{op}), nil)
		if errors.Is(err, ErrNeedsObject) {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, text(t, op), err)
		}
		got := parsed(t, serverX)
		for _, converted := range parsed(t, patch).([]any) {
			if got, ok = applyOperation(got, converted.(map[string]any)); !ok {
				t.Fatalf("seed %d: rules %v\nobject %s\nop %s\nserver's %s\nserver's %s cannot be applied",
					seed, describe(spec), x, text(t, op), serverX, patch)
			}
		}
		if !sameButEmpty(t, text(t, got), want) {
			t.Fatalf("seed %d: rules %v\nobject %s\nop %s\nserver's %s\nserver's %s\n got %s\nwant %s",
				seed, describe(spec), x, text(t, op), serverX, patch, text(t, got), want)
		}
		counted = true
		x, serverX = y, want
	}
	return counted
}

func TestJSONPatchProperty(t *testing.T) {
	counted := 0
	for seed := range uint64(tries) {
		if checkJSONPatch(t, seed) {
			counted++
		}
	}
	if counted < tries/20 {
		t.Errorf("only %d of %d cases counted", counted, tries)
	}
}

func FuzzJSONPatch(f *testing.F) {
	f.Fuzz(func(t *testing.T, seed uint64) { checkJSONPatch(t, seed) })
}

// operation makes one operation of a JSON patch.
func (r dice) operation() map[string]any {
	place := func() string {
		p := "/spec"
		if r.IntN(4) == 0 {
			p += "/list"
			if r.IntN(3) > 0 {
				p += "/" + pick(r, "0", "1", "-")
			}
		}
		for range r.IntN(3) {
			p += "/" + pick(r, "a", "b", "c")
		}
		return p
	}
	op := map[string]any{"op": pick(r, "add", "remove", "replace", "move", "copy", "test"), "path": place()}
	switch op["op"] {
	case "add", "replace", "test":
		op["value"] = r.value(2, false)
	case "move", "copy":
		op["from"] = place()
	}
	return op
}

// applyOperation applies one operation of RFC 6902, and reports whether it could.
func applyOperation(v any, op map[string]any) (any, bool) {
	path, from := pointerOf(op["path"]), pointerOf(op["from"])
	get := func(p pointer) (any, bool) {
		at := v
		for _, token := range p {
			switch w := at.(type) {
			case map[string]any:
				member, ok := w[token]
				if !ok {
					return nil, false
				}
				at = member
			case []any:
				i, err := strconv.Atoi(token)
				if err != nil || i < 0 || i >= len(w) {
					return nil, false
				}
				at = w[i]
			default:
				return nil, false
			}
		}
		return at, true
	}
	switch op["op"] {
	case "add":
		return change(v, path, "add", op["value"])
	case "remove":
		return change(v, path, "remove", nil)
	case "replace":
		if _, ok := get(path); !ok {
			return nil, false
		}
		return change(v, path, "replace", op["value"])
	case "test":
		at, ok := get(path)
		return v, ok && fmt.Sprint(at) == fmt.Sprint(op["value"])
	}
	moved, ok := get(from)
	if !ok || len(path) > len(from) && slices.Equal(path[:len(from)], from) {
		return nil, false
	}
	if op["op"] == "move" {
		if v, ok = change(v, from, "remove", nil); !ok {
			return nil, false
		}
	}
	return change(v, path, "add", moved)
}

func pointerOf(v any) pointer {
	s, _ := v.(string)
	d := newDoc()
	defer d.free()
	if d.parse(appendQuoted(nil, s)) != nil {
		return nil
	}
	p, _ := d.pointer(root)
	return p
}

// change returns a copy of v with value added, replaced or removed at p.
func change(v any, p pointer, how string, value any) (any, bool) {
	if len(p) == 0 {
		return value, how != "remove"
	}
	switch w := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, member := range w {
			out[key] = member
		}
		member, ok := w[p[0]]
		if len(p) > 1 {
			if !ok {
				return nil, false
			}
			out[p[0]], ok = change(member, p[1:], how, value)
			return out, ok
		}
		if how == "remove" {
			delete(out, p[0])
			return out, ok
		}
		out[p[0]] = value
		return out, true
	case []any:
		i, err := strconv.Atoi(p[0])
		if p[0] == "-" {
			i, err = len(w), nil
		}
		if err != nil || i < 0 || i > len(w) || i == len(w) && (len(p) > 1 || how != "add") {
			return nil, false
		}
		out := slices.Clone(w)
		switch {
		case len(p) > 1:
			var ok bool
			out[i], ok = change(w[i], p[1:], how, value)
			return out, ok
		case how == "add":
			return slices.Insert(out, i, value), true
		case how == "remove":
			return slices.Delete(out, i, i+1), true
		}
		out[i] = value
		return out, true
	}
	return nil, false
}
