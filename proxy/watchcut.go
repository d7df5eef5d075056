package proxy

import (
	"bytes"
	"encoding/binary"
	"mime"

	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// maxHeldEvent is the size, in bytes, up to which an event is held until it is
// whole. No object that etcd takes is larger in any form; a watch with a larger event
// passes as it comes, and ends when its server does.
const maxHeldEvent = convert.MaxAnswerObjectBytes

// cutter finds where the events of one answer end.
//
// kube-apiserver writes an event in JSON as one line, so that its end is found by
// looking for the newline. What is written otherwise is gone through bracket by
// bracket.
type cutter struct {
	form form // JSON, protobuf or CBOR

	// Of an event in JSON that is not whole yet:
	searched int // bytes that have no newline
	depth    depth

	extent cborExtent // of one in CBOR
}

// cuttable reports whether the events of an answer of that Content-Type can be told
// apart, and how.
func cuttable(contentType string) (f form, ok bool) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	switch mediaType {
	case string(formJSON), mediaProtobuf:
		f = form(mediaType)
	case mediaCBORSeq:
		f = formCBOR
	}
	return f, err == nil && f != formNone
}

// cut returns the event that b begins with, and its length with the newline behind
// it; 0 if it is not whole. ok is false if b begins with no event. Until it is whole
// an event must stay at the beginning of b.
func (c *cutter) cut(b []byte) (n int, e event, ok bool) {
	switch c.form {
	case formProtobuf:
		return cutProto(b)
	case formCBOR:
		return c.sequence(b)
	}
	if n = blanks(b); n > 0 {
		return n, event{kind: blankEvent}, true
	}
	if len(b) == 0 {
		return 0, e, true
	}
	if b[0] != '{' {
		return 0, e, false
	}
	if n, e, ok = c.line(b); n == 0 {
		n, e, ok = c.value(b)
	}
	if n > 0 {
		c.searched, c.depth = 0, depth{}
	}
	return n, e, ok
}

// line cuts off an event that is one line.
func (c *cutter) line(b []byte) (n int, e event, ok bool) {
	if c.depth.seen > 0 { // it is not
		return 0, e, true
	}
	n = bytes.IndexByte(b[c.searched:], '\n')
	if n < 0 {
		c.searched = len(b)
		return 0, e, true
	}
	n += c.searched
	if end := bytes.TrimSuffix(b[:n], []byte{'\r'}); end[len(end)-1] == '}' {
		if e, ok = scanJSON(end); ok {
			return n + 1, e, true
		}
	}
	return 0, e, true
}

// value cuts off an event that is more than a line, or that no newline follows yet.
// The bytes of one that may still become a line are not looked at.
func (c *cutter) value(b []byte) (n int, e event, ok bool) {
	if c.searched == len(b) && b[len(b)-1] != '}' {
		return 0, e, true
	}
	if n = c.depth.end(b); n == 0 {
		return 0, e, true
	}
	if e, ok = scanJSON(b[:n]); !ok {
		return 0, e, false
	}
	if n < len(b) && b[n] == '\n' {
		n++
	}
	return n, e, true
}

// protoHead is the length of the length before each event in protobuf.
const protoHead = 4

func cutProto(b []byte) (n int, e event, ok bool) {
	if len(b) < protoHead {
		return 0, e, true
	}
	size := binary.BigEndian.Uint32(b)
	if size > maxHeldEvent-protoHead {
		return 0, e, false
	}
	n = protoHead + int(size)
	if len(b) < n {
		return 0, e, true
	}
	e, ok = scanProto(b[protoHead:n])
	if !ok {
		return 0, e, false
	}
	return n, e, true
}

// sequence cuts off an event in CBOR, which is one data item.
func (c *cutter) sequence(b []byte) (n int, e event, ok bool) {
	if n, ok = c.extent.end(b); n == 0 {
		return 0, e, ok
	}
	c.extent = cborExtent{}
	if e, ok = scanCBOR(b[:n]); !ok {
		return 0, e, false
	}
	return n, e, true
}

// body is the message of an event that was cut off.
func (c *cutter) body(raw []byte) []byte {
	if c.form == formProtobuf {
		return raw[protoHead:]
	}
	return raw
}
