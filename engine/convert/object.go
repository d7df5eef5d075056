package convert

// Object appends to dst the object src of the converter's kind, in JSON,
// converted in direction dir. An object that does not say its apiVersion or kind
// is converted too and does not say it afterwards either. Objects of other kinds,
// and on the way to the client of other versions, are appended as they are.
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
		return append(dst, src...), nil
	}
	x := &run{c: c, d: d, at: root, dir: dir, mode: m}
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
	if x.dir == ToServer {
		if err := x.rules(); err != nil {
			return err
		}
		if x.c.request != nil {
			if err := x.program(x.c.request, &n, vars); err != nil {
				return err
			}
		}
	} else {
		if x.c.response != nil {
			if err := x.program(x.c.response, &n, vars); err != nil {
				return err
			}
		}
		if err := x.rules(); err != nil {
			return err
		}
	}
	x.setVersion(x.at, n)
	return nil
}
