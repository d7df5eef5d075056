package convert

import (
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Answer reads a server's JSON answer to anything but a watch from r and writes
// it to w for the client, in pieces of about 32 KiB. A list goes by item by item;
// of a table only the embedded objects change, and of what is metadata only the labels
// and annotations; a Status is as [Converter.Status] makes it. An object that does not
// say it is of the converted kind and version passes byte for byte.
//
// An answer that is cut off, is not JSON, or cannot be converted is an error
// ([io.ErrUnexpectedEOF], an [*Error], or the reader's or writer's own). Part of
// it may have been written by then: abort the response, do not end it.
func (c *Converter) Answer(w io.Writer, r io.Reader, vars *Vars) error {
	buf := chunks.Get().(*[]byte)
	a := &answer{
		run:  run{c: c, d: newDoc(), dir: ToClient, acted: vars.acted()},
		s:    stream{r: r, buf: (*buf)[:0]},
		w:    w,
		vars: vars,
	}
	err := a.document()
	a.d.free()
	if cap(a.s.buf) == writeChunk {
		*buf = a.s.buf
		chunks.Put(buf)
	}
	return c.unreadable(err)
}

// unreadable makes an *Error of what the stream says of a server's answer.
func (c *Converter) unreadable(err error) error {
	var syntax *syntaxError
	switch {
	case errors.As(err, &syntax), errors.Is(err, errNotObject), errors.Is(err, errNotJSON), errors.Is(err, errValueTooLarge):
		return c.notJSON(ToClient, err)
	default:
		return err
	}
}

var chunks = sync.Pool{New: func() any {
	buf := make([]byte, 0, writeChunk)
	return &buf
}}

// answer is one answer on its way.
type answer struct {
	run
	s    stream
	w    io.Writer
	out  []byte // converted and not yet written
	vars *Vars

	head head
}

// head is what the start of an answer told about it.
type head struct {
	apiVersion, kind     string
	apiVersionAt, kindAt span // of the values, from the stream's mark
}

// document converts the whole answer.
func (a *answer) document() error {
	c, err := a.s.inside()
	if err != nil {
		return err
	}
	if c != '{' {
		return errNotObject
	}
	a.s.pos++
	if err := a.object(); err != nil {
		return err
	}
	switch _, err := a.s.space(); {
	case err == nil:
		return errNotJSON // something after the document
	case !errors.Is(err, io.EOF):
		return err
	}
	a.copy()
	return a.flush(0)
}

// object reads the members of the answer until it knows what it is.
func (a *answer) object() error {
	for first := true; ; first = false {
		name, more, err := a.s.member(first)
		if err != nil {
			return err
		}
		if !more {
			return nil // not ours: document writes it as it is
		}
		array := a.s.buf[a.s.pos] == '['
		switch {
		case name == "items" && array && (a.head.mayBeList(&a.c.spec.To) || a.head.mayBeMetadataList()):
			return a.list()
		case name == "rows" && array && a.head.mayBeTable():
			return a.table()
		}
		if err := a.headMember(name); err != nil {
			return err
		}
		if decided, err := a.decide(); decided || err != nil {
			return err
		}
	}
}

// headMember consumes a member and notes what it tells.
func (a *answer) headMember(name string) error {
	start := a.s.pos - a.s.mark
	if err := a.s.value(); err != nil {
		return err
	}
	at := span{int32(start), int32(a.s.pos - a.s.mark)}
	value := ""
	raw := a.s.buf[a.s.mark+start : a.s.pos]
	if end, f := checkValue(raw, 0, 1); f != noFault || end != len(raw) {
		return errNotJSON
	}
	if raw[0] == '"' {
		value = string(appendUnquoted(nil, raw[1:len(raw)-1]))
	}
	switch name {
	case "apiVersion":
		a.head.apiVersion, a.head.apiVersionAt = value, at
	case "kind":
		a.head.kind, a.head.kindAt = value, at
	}
	return nil
}

// decide goes on as what the answer has turned out to be, if it has.
func (a *answer) decide() (bool, error) {
	h, to := &a.head, &a.c.spec.To
	ours := h.apiVersion == a.c.apiVersion(ToClient)
	mayBeStatus := h.apiVersion == "v1" && (h.kindAt == (span{}) || h.kind == "Status")
	switch {
	case h.apiVersionAt != (span{}) && !ours && !mayBeStatus && !strings.HasPrefix(h.apiVersion, metaGroup):
		return true, a.untouched()
	case h.apiVersionAt == (span{}) || h.kindAt == (span{}):
		return false, nil
	case mayBeStatus:
		return true, a.status()
	case ours && to.isKind(h.kind):
		return true, a.single()
	case ours && to.isListKind(h.kind):
		return true, a.listMembers()
	case isTable(h.apiVersion, h.kind):
		return true, a.tableMembers()
	case isMetadataOnly(h.apiVersion, h.kind) && a.c.convertsMetadata():
		return true, a.metadata()
	case isMetadataList(h.apiVersion, h.kind) && a.c.convertsMetadata():
		return true, a.listMembers()
	default:
		return true, a.untouched()
	}
}

func (h *head) mayBeList(to *Version) bool {
	return (h.apiVersionAt == (span{}) || h.apiVersion == to.APIVersion()) &&
		(h.kindAt == (span{}) || to.isListKind(h.kind))
}

func (h *head) mayBeMetadataList() bool {
	const kind = "PartialObjectMetadataList"
	return (h.kindAt == (span{}) || h.kind == kind) && (h.apiVersionAt == (span{}) || isMetadataList(h.apiVersion, kind))
}

func (h *head) mayBeTable() bool {
	return (h.kindAt == (span{}) || h.kind == "Table") &&
		(h.apiVersionAt == (span{}) || isTable(h.apiVersion, "Table"))
}

// single converts the answer as one object.
func (a *answer) single() error {
	if err := a.s.rest(1); err != nil {
		return err
	}
	out, err := a.c.Object(a.out, a.s.buf[a.s.mark:a.s.pos], ToClient, a.vars)
	a.out = out
	a.s.mark = a.s.pos
	return err
}

// status says what the answer says of fields and kinds in the client's names.
func (a *answer) status() error {
	if err := a.s.rest(1); err != nil {
		return err
	}
	a.out = a.c.Status(a.out, a.s.buf[a.s.mark:a.s.pos])
	a.s.mark = a.s.pos
	return nil
}

// metadata converts the answer as one metadata-only object.
func (a *answer) metadata() error {
	if err := a.s.rest(1); err != nil {
		return err
	}
	if err := a.d.parse(a.s.buf[a.s.mark:a.s.pos]); err != nil {
		return a.c.notJSON(ToClient, err)
	}
	if err := a.metadataOnly(root, a.vars); err != nil {
		return err
	}
	a.out = a.d.appendTo(a.out, root)
	a.s.mark = a.s.pos
	return nil
}

// untouched passes the rest of the answer.
func (a *answer) untouched() error {
	a.s.pass = func(b []byte) error {
		a.out = append(a.out, b...)
		return a.flush(writeChunk)
	}
	err := a.s.rest(1)
	a.s.pass = nil
	return err
}

// list converts the items at hand and what comes after them.
func (a *answer) list() error {
	a.writeHead()
	if err := a.elements(a.item); err != nil {
		return err
	}
	return a.listMembers()
}

// listMembers converts the members of a list that are still to come.
func (a *answer) listMembers() error {
	a.writeHead()
	for {
		name, more, err := a.s.member(false)
		if err != nil || !more {
			return err
		}
		if name == "items" && a.s.buf[a.s.pos] == '[' {
			a.copy()
			err = a.elements(a.item)
		} else {
			a.copy()
			if err = a.headMember(name); err == nil {
				err = a.stillList()
			}
			a.writeHead()
		}
		if err != nil {
			return err
		}
	}
}

// stillList checks that what comes after the items does not belie the guess that
// they are a list's: an object may have a field called items.
func (a *answer) stillList() error {
	h, to := &a.head, &a.c.spec.To
	if h.mayBeMetadataList() {
		return nil
	}
	if h.apiVersionAt != (span{}) && h.apiVersion != to.APIVersion() || h.kindAt != (span{}) && !to.isListKind(h.kind) {
		return a.c.badBody(ToClient, "cannot convert the server's answer: %s %s has items before it says what it is",
			source.Cut(h.apiVersion), source.Cut(h.kind))
	}
	return nil
}

// writeHead writes what has been read, with the version and kind of the list
// changed where it says them.
func (a *answer) writeHead() {
	h, spec := &a.head, &a.c.spec
	type edit struct {
		at   span
		text string
	}
	var edits [2]edit
	if h.apiVersionAt != (span{}) && h.apiVersion == spec.To.APIVersion() {
		edits[0] = edit{h.apiVersionAt, spec.From.APIVersion()}
	}
	if h.kindAt != (span{}) && spec.To.isListKind(h.kind) {
		edits[1] = edit{h.kindAt, rekind(h.kind, &spec.To, &spec.From)}
	}
	if edits[1].at.start < edits[0].at.start {
		edits[0], edits[1] = edits[1], edits[0]
	}
	done := a.s.mark
	for _, e := range edits {
		if e.at == (span{}) {
			continue
		}
		a.out = append(a.out, a.s.buf[done:a.s.mark+int(e.at.start)]...)
		a.out = appendQuoted(a.out, e.text)
		done = a.s.mark + int(e.at.end)
	}
	a.out = append(a.out, a.s.buf[done:a.s.pos]...)
	a.s.mark = a.s.pos
	h.apiVersionAt, h.kindAt = span{}, span{}
}

func (a *answer) table() error {
	if err := a.elements(a.row); err != nil {
		return err
	}
	return a.tableMembers()
}

// tableMembers converts the members of a table that are still to come.
func (a *answer) tableMembers() error {
	for {
		a.copy()
		name, more, err := a.s.member(false)
		if err != nil || !more {
			return err
		}
		if name == "rows" && a.s.buf[a.s.pos] == '[' {
			err = a.elements(a.row)
		} else {
			err = a.headMember(name)
		}
		if err != nil {
			return err
		}
	}
}

// elements converts the array at pos, element by element: convert finds each in the
// document.
func (a *answer) elements(convert func() error) error {
	a.s.pos++
	for first := true; ; first = false {
		c, err := a.s.inside()
		if err != nil {
			return err
		}
		if !first && c == ',' {
			a.s.pos++
			if _, err = a.s.inside(); err != nil {
				return err
			}
		} else if c == ']' {
			a.s.pos++
			a.copy()
			return nil
		} else if !first {
			return errNotJSON
		}
		a.copy()
		if err := a.s.document(a.d, ""); err != nil {
			return err
		}
		if err := convert(); err != nil {
			return err
		}
		a.s.mark = a.s.pos
		if err := a.flush(writeChunk); err != nil {
			return err
		}
	}
}

// item converts one item of a list. What it does not say of itself, the list
// says for it.
func (a *answer) item() error {
	if a.d.kind(root) == kindObject {
		n := a.c.names(a.d, root)
		if isMetadataOnly(n.apiVersion, n.kind) || isMetadataList(a.head.apiVersion, a.head.kind) && n.kindAt == 0 {
			if err := a.metadataOnly(root, a.vars); err != nil {
				return err
			}
			a.out = a.d.appendTo(a.out, root)
			return nil
		}
		is, err := a.c.concerns(n, ToClient)
		if err != nil {
			return err
		}
		if is {
			a.at = root
			if err := a.convert(n, a.vars); err != nil {
				return err
			}
		}
	}
	a.out = a.d.appendTo(a.out, root)
	return nil
}

// row converts one row of a table.
func (a *answer) row() error {
	if err := a.rowObject(root, a.vars); err != nil {
		return err
	}
	a.out = a.d.appendTo(a.out, root)
	return nil
}

// rowObject converts the object that the table row r embeds.
func (x *run) rowObject(r ref, vars *Vars) error {
	object := x.d.find(r, "object")
	if object == 0 {
		return nil
	}
	n := x.c.names(x.d, object)
	switch {
	case x.c.isOurs(n):
		x.at = object
		return x.convert(n, vars)
	case isMetadataOnly(n.apiVersion, n.kind):
		return x.metadataOnly(object, vars)
	}
	return nil
}

// isOurs reports whether an object of the server's says that it is one to
// convert.
func (c *Converter) isOurs(n names) bool {
	return n.apiVersion == c.apiVersion(ToClient) && c.spec.To.isKind(n.kind)
}

// copy moves what has been read to the output as it is.
func (a *answer) copy() {
	a.out = append(a.out, a.s.buf[a.s.mark:a.s.pos]...)
	a.s.mark = a.s.pos
}

// flush writes the output when there are at least least bytes of it.
func (a *answer) flush(least int) error {
	if len(a.out) < least || len(a.out) == 0 {
		return nil
	}
	_, err := a.w.Write(a.out)
	a.out = a.out[:0]
	return err
}
