package convert

// MergePatch appends to dst the client's RFC 7386 merge patch src for the server:
// renames act on the keys that are there, null (delete) stays null wherever it
// leads, values are retyped and replaced as in an object, and nothing is added.
//
// The error is [ErrNeedsObject] where the patch alone does not say what to do,
// always so with a jq program, or an [*Error]; dst is then returned unchanged.
func (c *Converter) MergePatch(dst, src []byte, vars *Vars) ([]byte, error) {
	return c.patch(dst, src, merge, vars)
}

func (c *Converter) patch(dst, src []byte, m mode, vars *Vars) ([]byte, error) {
	d := newDoc()
	defer d.free()
	if err := c.parseObject(d, src, ToServer); err != nil {
		return dst, err
	}
	n := c.names(d, root)
	if n.apiVersion != "" && n.apiVersion != c.apiVersion(ToServer) {
		return dst, c.badBody(ToServer, "the API version in the data (%s) does not match the expected API version (%s)",
			n.apiVersion, c.apiVersion(ToServer))
	}
	if c.UsesJQ() || m == strategic && c.replacesObjects(src) {
		return dst, ErrNeedsObject
	}
	x := &run{c: c, d: d, at: root, dir: ToServer, mode: m, acted: vars.acted()}
	if err := x.rules(); err != nil {
		return dst, err
	}
	x.setVersion(root, n)
	return d.appendTo(dst, root), nil
}
