package proxy

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// cborMagic is the self-described CBOR tag, with which every encoding of a whole object
// begins.
var cborMagic = []byte{0xd9, 0xd9, 0xf7}

// appendCBOR appends a document in JSON in kube-apiserver's encoding of CBOR. Integers
// that are none of 64 bits become floats, as when kube-apiserver reads them.
func appendCBOR(dst, doc []byte) ([]byte, error) {
	var v any
	if err := utiljson.Unmarshal(doc, &v); err != nil {
		return nil, fmt.Errorf("cannot write the answer as %s: %w", mediaCBOR, err)
	}
	encoded, err := cbor.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot write the answer as %s: %w", mediaCBOR, err)
	}
	return append(dst, encoded...), nil
}

// cborOf gives an object or a list in JSON in CBOR.
func cborOf(doc []byte) ([]byte, error) { return appendCBOR(slices.Clone(cborMagic), doc) }

// appendCBOREvent appends an event of a watch.
func appendCBOREvent(dst []byte, kind string, object []byte) ([]byte, error) {
	dst = append(dst, cborMagic...)
	dst = append(dst, byte(cborMap)<<5|2)
	for _, s := range []string{"type", kind, "object"} {
		encoded, err := cbor.Marshal(s)
		if err != nil {
			return dst, err
		}
		dst = append(dst, encoded...)
	}
	encoded, err := cborOf(object)
	return append(dst, encoded...), err
}

// The heads of collections whose length is not known before their end.
const (
	cborManyMembers = byte(cborMap)<<5 | 31
	cborManyItems   = byte(cborArray)<<5 | 31
)

const cborNull = 0xf6

// writeCBORList writes the list that r has in JSON in CBOR, item by item as it is read.
// How many there are is not known before, so the list and its items are of indefinite
// length, which kube-apiserver does not write but each of its clients can read.
func writeCBORList(w io.Writer, r io.Reader) error {
	l := cborList{in: json.NewDecoder(r), out: bufio.NewWriterSize(w, copyBuffer)}
	if err := l.members(); err != nil {
		return inside(err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil { // errors of what comes behind
		return err
	}
	return l.out.Flush()
}

// cborList writes a list. An error of out stays with it until Flush.
type cborList struct {
	in  *json.Decoder
	out *bufio.Writer
	raw json.RawMessage // of one item or member
	buf []byte
}

func (l *cborList) members() error {
	if _, err := l.in.Token(); err != nil {
		return err
	}
	l.bytes(append(slices.Clone(cborMagic), cborManyMembers))
	for l.in.More() {
		if err := l.member(); err != nil {
			return err
		}
	}
	l.bytes([]byte{cborBreak})
	_, err := l.in.Token()
	return err
}

func (l *cborList) member() error {
	token, err := l.in.Token()
	if err != nil {
		return err
	}
	name, _ := token.(string)
	key, err := cbor.Marshal(name)
	if err != nil {
		return err
	}
	l.bytes(key)
	if name == "items" || name == "rows" { // a table has rows
		return l.items()
	}
	return l.value()
}

var errCBORItems = errors.New("cannot write the server's list as " + mediaCBOR + ": its items are no array")

func (l *cborList) items() error {
	switch begin, err := l.in.Token(); {
	case err != nil:
		return err
	case begin == nil:
		l.bytes([]byte{cborNull})
		return nil
	case begin != json.Delim('['):
		return errCBORItems
	}
	l.bytes([]byte{cborManyItems})
	for l.in.More() {
		if err := l.value(); err != nil {
			return err
		}
	}
	l.bytes([]byte{cborBreak})
	_, err := l.in.Token()
	return err
}

func (l *cborList) value() error {
	if err := l.in.Decode(&l.raw); err != nil {
		return err
	}
	encoded, err := appendCBOR(l.buf[:0], l.raw)
	if err != nil {
		return err
	}
	l.buf = encoded
	l.bytes(encoded)
	return nil
}

func (l *cborList) bytes(b []byte) { _, _ = l.out.Write(b) } // Flush tells
