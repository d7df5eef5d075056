package proxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/mixed-version-proxy/mvp/proxy/builtin"
)

// message is an object of a Go type that has a form in protobuf.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
}

// metaKinds are the kinds of answers that are of no group of their own.
var metaKinds = func() *runtime.Scheme {
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{metav1.AddMetaToScheme, metav1beta1.AddMetaToScheme} {
		if err := add(kinds); err != nil {
			panic(err)
		}
	}
	return kinds
}()

// newMessage is an empty object of a kind; nil for one that has no form in protobuf, as
// nothing has that does not say what it is.
func newMessage(apiVersion, kind string) message {
	if apiVersion == "" || kind == "" {
		return nil
	}
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	object, err := builtin.Scheme.New(gvk)
	if err != nil {
		object, err = metaKinds.New(gvk)
	}
	m, ok := object.(message)
	if err != nil || !ok {
		return nil
	}
	return m
}

// readMessage reads an object from JSON as kube-apiserver does. Fields that the Go
// type has not are left out, as by a kube-apiserver of that version.
func readMessage(m message, doc []byte) error {
	if err := utiljson.Unmarshal(doc, m); err != nil {
		return fmt.Errorf("cannot write the answer as %s: %w", mediaProtobuf, err)
	}
	return nil
}

// protobufOf gives an object or a list in JSON in kube-apiserver's encoding of
// protobuf; nil for a kind that has none.
func protobufOf(doc []byte) ([]byte, error) {
	var kind metav1.TypeMeta
	if err := utiljson.Unmarshal(doc, &kind); err != nil {
		return nil, fmt.Errorf("cannot read the kind of the answer: %w", err)
	}
	m := newMessage(kind.APIVersion, kind.Kind)
	if m == nil {
		return nil, nil
	}
	if err := readMessage(m, doc); err != nil {
		return nil, err
	}
	raw, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	envelope := runtime.Unknown{TypeMeta: typeOf(kind), Raw: raw}
	sealed, err := envelope.Marshal()
	if err != nil {
		return nil, err
	}
	return append(slices.Clone(protoMagic), sealed...), nil
}

func typeOf(kind metav1.TypeMeta) runtime.TypeMeta {
	return runtime.TypeMeta{APIVersion: kind.APIVersion, Kind: kind.Kind}
}

// relabelled is an object in protobuf said to be of the version to, if it says that
// it is of the version from. Anything else stays as it is.
func relabelled(raw []byte, from, to string) ([]byte, error) {
	envelope := runtime.Unknown{}
	sealed, ok := bytes.CutPrefix(raw, protoMagic)
	if !ok {
		return raw, nil
	}
	if err := envelope.Unmarshal(sealed); err != nil {
		return raw, nil //nolint:nilerr // the server says what is wrong with it
	}
	if envelope.APIVersion != from {
		return raw, nil
	}
	envelope.APIVersion = to
	changed, err := envelope.Marshal()
	return append(slices.Clone(protoMagic), changed...), err
}

// maxHeldList is how large, in bytes of protobuf, a list may be. The encoding begins
// with the length, so that all of it must be there before any is sent; 5,000 objects
// of 10 KiB are less.
const maxHeldList = 64 << 20

// The fields of every list kind; a test holds all kinds to it.
const listMetadata, listItems = 1, 2

// protobufList is a list that is read from JSON item by item and held in protobuf.
type protobufList struct {
	metav1.TypeMeta
	reserve func(n int64) error // memory

	metadata metav1.ListMeta
	items    [][]byte // each as a field of the list
	size     int      // of the items together
}

// read reads the list, and r to its end.
func (l *protobufList) read(r io.Reader) error {
	if err := l.members(json.NewDecoder(r)); err != nil {
		return inside(err)
	}
	if newMessage(l.APIVersion, l.Kind) == nil {
		return fmt.Errorf("cannot write an answer of this size as %s: %s %s has no such form", mediaProtobuf, clip(l.APIVersion), clip(l.Kind))
	}
	_, err := io.Copy(io.Discard, r) // errors of what comes behind
	return err
}

// members reads an object, which the converter has seen that it is.
func (l *protobufList) members(in *json.Decoder) error {
	if _, err := in.Token(); err != nil {
		return err
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return err
		}
		if err := l.member(in, name); err != nil {
			return err
		}
	}
	_, err := in.Token()
	return err
}

func (l *protobufList) member(in *json.Decoder, name json.Token) error {
	switch name {
	case "kind":
		return in.Decode(&l.Kind)
	case "apiVersion":
		return in.Decode(&l.APIVersion)
	case "metadata":
		return in.Decode(&l.metadata)
	case "items":
		return l.readItems(in)
	}
	return in.Decode(new(json.RawMessage))
}

var (
	errItemsFirst = errors.New("cannot write the server's list as " + mediaProtobuf + ": it has items before it says of which kind")
	errNoItems    = errors.New("cannot write the server's list as " + mediaProtobuf + ": its items are no array")
)

func (l *protobufList) readItems(in *json.Decoder) error {
	switch begin, err := in.Token(); {
	case err != nil || begin == nil: // null
		return err
	case begin != json.Delim('['):
		return errNoItems
	}
	kind, ok := strings.CutSuffix(l.Kind, "List")
	if !ok || newMessage(l.APIVersion, kind) == nil {
		return errItemsFirst
	}
	var raw json.RawMessage
	for in.More() {
		if err := in.Decode(&raw); err != nil {
			return err
		}
		item := newMessage(l.APIVersion, kind)
		if err := readMessage(item, raw); err != nil {
			return err
		}
		if err := l.hold(item); err != nil {
			return err
		}
	}
	_, err := in.Token()
	return err
}

func (l *protobufList) hold(item message) error {
	encoded, err := item.Marshal()
	if err != nil {
		return err
	}
	held := protowire.AppendTag(make([]byte, 0, len(encoded)+1+binary.MaxVarintLen32), listItems, protowire.BytesType)
	held = protowire.AppendBytes(held, encoded)
	if l.size += len(held); l.size > maxHeldList {
		return &statusError{
			code: http.StatusRequestEntityTooLarge, reason: metav1.StatusReasonRequestEntityTooLarge,
			message: fmt.Sprintf("a converted list can have %d bytes as %s; ask with a limit, or for application/json", maxHeldList, mediaProtobuf),
		}
	}
	l.items = append(l.items, held)
	return l.reserve(int64(len(held)))
}

// writeTo is the Response.Stream of the list.
func (l *protobufList) writeTo(w io.Writer) error {
	out := bufio.NewWriterSize(w, copyBuffer)
	metadata, err := l.metadata.Marshal()
	if err != nil {
		return err
	}
	head := protowire.AppendTag(nil, listMetadata, protowire.BytesType)
	head = protowire.AppendBytes(head, metadata)
	if _, err := out.Write(protoMagic); err != nil {
		return err
	}
	envelope := runtime.Unknown{TypeMeta: typeOf(l.TypeMeta)}
	_, err = envelope.MarshalToWriter(out, len(head)+l.size, func(w io.Writer) (int, error) {
		return l.writeFields(w, head)
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

func (l *protobufList) writeFields(w io.Writer, head []byte) (int, error) {
	written, err := w.Write(head)
	for i := 0; i < len(l.items) && err == nil; i++ {
		var n int
		n, err = w.Write(l.items[i])
		written += n
	}
	return written, err
}
