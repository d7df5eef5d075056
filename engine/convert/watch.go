package convert

import (
	"encoding/base64"
	"errors"
	"io"
)

// watchBuffer is what a watch holds while nothing happens, in bytes: thousands
// of watches are idle at any time.
const watchBuffer = 4 << 10

// largeEvent is the size of an event, in bytes, after which the buffers that it
// grew are given back.
const largeEvent = 64 << 10

// Watch reads a server's watch stream in JSON from r and writes it to w for the
// client, each event in one Write, with a newline, as soon as its last byte has
// been read. It returns nil when r ends between two events; otherwise errors are
// as in [Converter.Answer], and no part of the event at hand has been written.
func (c *Converter) Watch(w io.Writer, r io.Reader, vars *Vars) error {
	s := stream{r: r, buf: make([]byte, 0, watchBuffer)}
	var out []byte
	for {
		first, err := s.space()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.mark = s.pos
		if first != '{' {
			return c.notJSON(ToClient, errNotObject)
		}
		if out, err = c.event(out[:0], &s, vars); err != nil {
			return err
		}
		s.mark = s.pos
		if _, err := w.Write(append(out, '\n')); err != nil {
			return err
		}
		if cap(out) > largeEvent {
			out = nil
		}
		if cap(s.buf) > largeEvent && len(s.buf)-s.pos <= watchBuffer {
			s.buf = append(make([]byte, 0, watchBuffer), s.buf[s.pos:]...)
			s.mark, s.pos = 0, 0
		}
	}
}

// event consumes a watch event and appends it, converted.
func (c *Converter) event(dst []byte, s *stream, vars *Vars) ([]byte, error) {
	d := newDoc()
	defer d.free()
	if err := s.document(d, "object"); err != nil {
		return dst, c.unreadable(err)
	}
	x := &run{c: c, d: d, dir: ToClient, acted: vars.acted()}
	typ, object := d.find(root, "type"), d.find(root, "object")
	if typ == 0 || object == 0 {
		return append(dst, s.buf[s.mark:s.pos]...), nil
	}
	var err error
	switch {
	case d.strIs(typ, "BOOKMARK"):
		x.bookmark(object)
	case d.strIs(typ, "ADDED"), d.strIs(typ, "MODIFIED"), d.strIs(typ, "DELETED"):
		err = x.changed(object, vars)
	}
	if err != nil {
		return dst, err
	}
	return d.appendTo(dst, root), nil
}

// changed converts the object of an event, or those in its table.
func (x *run) changed(object ref, vars *Vars) error {
	n := x.c.names(x.d, object)
	if x.c.isOurs(n) {
		x.at = object
		return x.convert(n, vars)
	}
	if isMetadataOnly(n.apiVersion, n.kind) {
		return x.metadataOnly(object, vars)
	}
	if !isTable(n.apiVersion, n.kind) {
		return nil
	}
	rows := x.d.find(object, "rows")
	if rows == 0 {
		return nil
	}
	for row := x.firstItem(rows); row != 0; row = x.d.next(row) {
		if err := x.rowObject(row, vars); err != nil {
			return err
		}
	}
	return nil
}

// blueprint is the annotation of the bookmark behind initial events in which a client finds
// the list, without items, that they are of: JSON in base64 (KEP-3157).
const blueprint = "kubernetes.io/initial-events-list-blueprint"

// blueprint makes the list be of the client's version. What is no such list stays.
func (x *run) blueprint(object ref) {
	annotation := x.d.below(object, path{{key: "metadata"}, {key: "annotations"}, {key: blueprint}})
	if annotation == 0 || x.d.kind(annotation) != kindString {
		return
	}
	list, err := base64.StdEncoding.DecodeString(x.d.str(annotation))
	if err != nil {
		return
	}
	d := newDoc()
	defer d.free()
	if d.parse(list) != nil || d.kind(root) != kindObject {
		return
	}
	n := x.c.names(d, root)
	if n.apiVersion != x.c.apiVersion(ToClient) || !x.c.spec.To.isListKind(n.kind) {
		return
	}
	d.setString(n.apiVersionAt, x.c.apiVersion(ToServer))
	d.setString(n.kindAt, rekind(n.kind, &x.c.spec.To, &x.c.spec.From))
	x.d.setString(annotation, base64.StdEncoding.EncodeToString(d.bytes(root)))
}

// bookmark changes only what version the object of a bookmark is said to be of:
// it has a resourceVersion and annotations, and is otherwise empty.
func (x *run) bookmark(object ref) {
	x.blueprint(object)
	n := x.c.names(x.d, object)
	if x.c.isOurs(n) {
		x.setVersion(object, n)
		return
	}
	rows := x.d.find(object, "rows")
	if rows == 0 || !isTable(n.apiVersion, n.kind) {
		return
	}
	for row := x.firstItem(rows); row != 0; row = x.d.next(row) {
		if inner := x.d.find(row, "object"); inner != 0 {
			if n := x.c.names(x.d, inner); x.c.isOurs(n) {
				x.setVersion(inner, n)
			}
		}
	}
}
