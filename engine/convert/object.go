package convert

// Object appends to dst the object src of the converter's kind, in JSON,
// converted in direction dir. An object that does not say its apiVersion or kind
// is converted too and does not say it afterwards either. Objects of other kinds,
// and on the way to the client of other versions, are appended as they are, but for
// the version that a client's object of another kind says it is of.
//
// The error is an [*Error]; dst is then returned unchanged.
func (c *Converter) Object(dst, src []byte, dir Direction, vars *Vars) ([]byte, error) {
	return c.object(dst, src, dir, whole, vars)
}

func (c *Converter) object(dst, src []byte, dir Direction, m mode, vars *Vars) ([]byte, error) {
	d := newDoc()
	defer d.free()
	if err := c.parseObject(d, src, dir); err != nil {
		return dst, err
	}
	n := c.names(d, root)
	if is, err := c.concerns(n, dir); err != nil || !is {
		if err != nil {
			return dst, err
		}
		if dir == ToServer && n.apiVersion != "" && n.apiVersion == c.apiVersion(dir) { // that the kind is wrong, the server says
			d.setString(n.apiVersionAt, c.apiVersion(dir.reverse()))
		}
		return d.appendTo(dst, root), nil
	}
	x := &run{c: c, d: d, at: root, dir: dir, mode: m, acted: vars.acted()}
	if err := x.convert(n, vars); err != nil {
		return dst, err
	}
	return d.appendTo(dst, root), nil
}

// parseObject makes src the document d; it must be one JSON object.
func (c *Converter) parseObject(d *doc, src []byte, dir Direction) error {
	limit := c.limits.ObjectBytes
	if dir == ToClient {
		limit = MaxAnswerObjectBytes
	}
	if len(src) > limit {
		return c.badBody(dir, "cannot convert an object of %d bytes: the limit is %d", len(src), limit)
	}
	if err := d.parse(src); err != nil {
		return c.notJSON(dir, err)
	}
	if d.kind(root) != kindObject {
		return c.badBody(dir, "cannot convert the body: a JSON object is wanted")
	}
	return nil
}

// concerns reports whether an object with names n is one to convert. A client's
// object in another version is an error, in the words of the apiserver.
func (c *Converter) concerns(n names, dir Direction) (bool, error) {
	v := c.source(dir)
	if n.kindAt != 0 && !v.isKind(n.kind) {
		return false, nil
	}
	if n.apiVersionAt == 0 || n.apiVersion == c.apiVersion(dir) {
		return true, nil
	}
	if dir == ToClient {
		return false, nil
	}
	return false, c.badBody(dir, "the API version in the data (%s) does not match the expected API version (%s)",
		n.apiVersion, c.apiVersion(dir))
}

// convert converts the object at x.at, whose names n are, in place.
func (x *run) convert(n names, vars *Vars) error {
	if x.dir == ToClient && x.mode == whole {
		for _, p := range x.c.hidden {
			x.d.prune(x.at, p)
		}
	}
	links := x.c.links
	for i := range links {
		if x.dir == ToClient {
			i = len(links) - 1 - i
		}
		if err := x.convertLink(i, &n, vars); err != nil {
			return err
		}
	}
	return nil
}

// convertLink does link i of the conversion.
func (x *run) convertLink(i int, n *names, vars *Vars) error {
	x.of = x.c.links[i].of
	if x.dir == ToServer {
		if err := x.runSteps(x.c.stepsOf(i), nil); err != nil {
			return err
		}
	}
	program := x.of.request
	if x.dir == ToClient {
		program = x.of.response
	}
	if program != nil {
		if err := x.program(program, n, vars); err != nil {
			return err
		}
		if x.acted != nil {
			x.acted(program.stages.text.Start, x.dir)
		}
	}
	if x.dir == ToClient {
		if err := x.runSteps(x.c.stepsOf(i), nil); err != nil {
			return err
		}
	}
	x.relabel(n)
	return nil
}

// relabel makes the object say that it is of the version that the link converts to, also
// for what comes behind it. What it does not say it does not get.
func (x *run) relabel(n *names) {
	source, target := x.of.source(x.dir), x.of.target(x.dir)
	if n.apiVersion != "" && n.apiVersion == x.of.apiVersion(x.dir) {
		n.apiVersion = x.of.apiVersion(x.dir.reverse())
		x.d.setString(n.apiVersionAt, n.apiVersion)
	}
	if kind := rekind(n.kind, source, target); kind != n.kind {
		n.kind = kind
		x.d.setString(n.kindAt, kind)
	}
}
