package convert

// constant is JSON text, a node of which is in a slot from when it is needed.
type constant struct {
	text string
	slot int
}

func (e *constant) eval(p *planRun, _ ref) (ref, bool) {
	if p.slots[e.slot] == 0 {
		p.slots[e.slot] = p.text(e.text)
	}
	return p.slots[e.slot], p.spend(0)
}

// boolean is true or false.
type boolean bool

func (e boolean) eval(p *planRun, _ ref) (ref, bool) { return p.boolean(bool(e)) }

// dot is the input.
type dot struct{}

func (dot) eval(_ *planRun, at ref) (ref, bool) { return at, true }

// held is the value in a slot.
type held int

func (e held) eval(p *planRun, _ ref) (ref, bool) {
	if p.slots[e] == 0 {
		dir := p.dir
		if e > 0 {
			dir = dir.reverse()
		}
		p.slots[e] = p.text(p.c.quotedVersion(dir)) // only those can be empty
	}
	return p.slots[e], true
}

// member is a member of an object.
type member string

func (e member) eval(p *planRun, at ref) (ref, bool) {
	return p.orNull(p.field(at, string(e)))
}

// orNull makes no node a null.
func (p *planRun) orNull(r ref, ok bool) (ref, bool) {
	if r == 0 && ok {
		r = p.null()
	}
	return r, ok
}

// item is an item of an array.
type item int

func (e item) eval(p *planRun, at ref) (ref, bool) {
	switch p.d.kind(at) {
	case kindNull:
		return at, true
	case kindArray:
	default:
		return 0, false
	}
	r := p.d.first(at)
	for i := 0; i < int(e) && r != 0; i++ {
		r = p.d.next(r)
	}
	return p.orNull(r, true)
}

// chained is the value of right for that of left.
type chained struct{ left, right expr }

func (e *chained) eval(p *planRun, at ref) (ref, bool) {
	v, ok := e.left.eval(p, at)
	if !ok {
		return 0, false
	}
	return e.right.eval(p, v)
}

// bound is a value with a variable.
type bound struct {
	hold  hold
	value expr
}

func (e *bound) eval(p *planRun, at ref) (ref, bool) {
	if !e.hold.apply(p, at) {
		return 0, false
	}
	return e.value.eval(p, at)
}

// changed is the input as a transform changes it.
type changed struct{ do transform }

func (e *changed) eval(p *planRun, at ref) (ref, bool) {
	// The copy shares the text, and has members of its own.
	v, ok := p.copyOf(at)
	return v, ok && e.do.apply(p, v)
}

// alternative is left // right.
type alternative struct{ left, right expr }

func (e *alternative) eval(p *planRun, at ref) (ref, bool) {
	v, ok := e.left.eval(p, at)
	if !ok || p.isTrue(v) {
		return v, ok
	}
	return e.right.eval(p, at)
}

// choice is an if.
type choice struct{ cond, yes, no expr }

func (e *choice) eval(p *planRun, at ref) (ref, bool) {
	v, ok := e.cond.eval(p, at)
	switch {
	case !ok:
		return 0, false
	case p.isTrue(v):
		return e.yes.eval(p, at)
	default:
		return e.no.eval(p, at)
	}
}

// truth is whether jq takes a value for true, or for false.
type truth struct {
	value expr
	not   bool
}

func (e *truth) eval(p *planRun, at ref) (ref, bool) {
	v, ok := e.value.eval(p, at)
	if !ok {
		return 0, false
	}
	return p.boolean(p.isTrue(v) != e.not)
}

// has is whether there is a member.
type has string

func (e has) eval(p *planRun, at ref) (ref, bool) {
	m, ok := p.field(at, string(e))
	if !ok {
		return 0, false
	}
	return p.boolean(m != 0)
}

// quantified is whether any, or all, items of an array meet a condition. It stops
// at the first that decides.
type quantified struct {
	list     expr
	optional bool // what is no array has no items
	cond     expr
	all      bool
}

func (e *quantified) eval(p *planRun, at ref) (ref, bool) {
	list, ok := e.list.eval(p, at)
	if !ok {
		return 0, false
	}
	switch p.d.kind(list) {
	case kindArray:
	case kindObject:
		return 0, false
	default:
		if !e.optional {
			return 0, false
		}
	}
	for item := p.d.first(list); item != 0; item = p.d.next(item) {
		v, ok := e.cond.eval(p, item)
		if !ok {
			return 0, false
		}
		if p.isTrue(v) != e.all {
			return p.boolean(!e.all)
		}
	}
	return p.boolean(e.all)
}

// comparison is left == right, or !=.
type comparison struct {
	left, right expr
	not         bool
}

func (e *comparison) eval(p *planRun, at ref) (ref, bool) {
	left, ok := e.left.eval(p, at)
	if !ok {
		return 0, false
	}
	right, ok := e.right.eval(p, at)
	if !ok {
		return 0, false
	}
	equal, ok := p.d.equalJQ(left, right)
	if !ok {
		return 0, false
	}
	return p.boolean(equal != e.not)
}

// conversion is a function from one scalar to another.
type conversion string

func (e conversion) eval(p *planRun, at ref) (ref, bool) {
	d := p.d
	raw, k := d.raw(at), d.kind(at)
	if k == kindArray || k == kindObject {
		if e != "type" {
			return 0, false
		}
		raw = nil
	}
	start := len(d.own)
	switch {
	case e == "type":
		d.own = append(append(append(d.own, '"'), kindNames[k]...), '"')
	case e == "tostring" && k == kindString, e == "tonumber" && k == kindNumber:
		return at, true
	case e == "tostring":
		d.own = append(append(append(d.own, '"'), raw...), '"')
	case e == "tonumber" && k == kindString && isPlainNumber(raw[1:len(raw)-1]):
		d.own = append(d.own, raw[1:len(raw)-1]...)
	case e == "tointeger":
		var ok bool
		if d.own, ok = appendExactInteger(d.own, raw); !ok {
			return 0, false
		}
	default:
		return 0, false
	}
	if !p.spend(len(d.own) - start) {
		return 0, false
	}
	return p.detached(span{int32(start), int32(len(d.own))}, true), true
}

var kindNames = [...]string{"null", "boolean", "number", "string", "array", "object"}

// isPlainNumber reports whether the inside of a string is an integer in its usual
// spelling.
func isPlainNumber(raw []byte) bool {
	if len(raw) == 0 || string(raw) == "-" {
		return false
	}
	_, plain := plainInt(raw)
	return plain
}

// composed is an array or, with keys, an object of values.
type composed struct {
	keys   []string
	values []expr
}

func (e *composed) eval(p *planRun, at ref) (ref, bool) {
	d := p.d
	brackets := "[]"
	if e.keys != nil {
		brackets = "{}"
	}
	built := p.text(brackets)
	for i, value := range e.values {
		v, ok := value.eval(p, at)
		if ok {
			v, ok = p.copyOf(v)
		}
		if !ok || !p.spend(int(d.nodes[v].val.end-d.nodes[v].val.start)) {
			return 0, false
		}
		if e.keys != nil {
			d.attach(built, v, e.keys[i])
		} else {
			d.attachItem(built, v)
		}
	}
	return built, true
}

// table looks a string up in a constant object.
type table struct {
	object expr
	key    expr
}

func (e *table) eval(p *planRun, at ref) (ref, bool) {
	key, ok := e.key.eval(p, at)
	if !ok || p.d.kind(key) != kindString {
		return 0, false
	}
	object, ok := e.object.eval(p, at)
	if !ok {
		return 0, false
	}
	return p.orNull(p.d.find(object, validText(p.d.str(key))), true)
}
