package proxy

import (
	"bytes"
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The fields that are read of messages in protobuf. They are numbered in
// generated.proto of k8s.io/apimachinery; that metadata comes first in every kind
// is its API convention.
const (
	watchEventType, watchEventObject = 1, 2 // of WatchEvent
	rawExtensionRaw                  = 1    // of RawExtension
	unknownRaw                       = 2    // of runtime.Unknown
	objectMetadata                   = 1    // of every kind
	metaResourceVersion              = 6    // of ObjectMeta
	metaAnnotations                  = 12
	entryKey, entryValue             = 1, 2 // of a map
)

// protoMagic is what the encoding of a whole object begins with.
var protoMagic = []byte("k8s\x00")

// fields goes through the fields of message that are strings, bytes or messages. It
// ends early at what is no protobuf.
func fields(message []byte) iter.Seq2[protowire.Number, []byte] {
	return func(yield func(protowire.Number, []byte) bool) {
		for len(message) > 0 {
			number, kind, n := protowire.ConsumeTag(message)
			if n < 0 {
				return
			}
			message = message[n:]
			if kind != protowire.BytesType {
				if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
					return
				}
				message = message[n:]
				continue
			}
			value, n := protowire.ConsumeBytes(message)
			if n < 0 || !yield(number, value) {
				return
			}
			message = message[n:]
		}
	}
}

// field is the last field of that number; nil without one.
func field(message []byte, number protowire.Number) []byte {
	var found []byte
	for n, value := range fields(message) {
		if n == number {
			found = value
		}
	}
	return found
}

// scanProto reads an event in protobuf. ok is false for what is no event.
func scanProto(b []byte) (e event, ok bool) {
	var kind, object []byte
	for number, value := range fields(b) {
		switch number {
		case watchEventType:
			kind = value
		case watchEventObject:
			object = protoObject(value)
		}
	}
	e.kind = kindOf(kind)
	if e.kind != errorEvent {
		e.rv = parseRV(field(field(object, objectMetadata), metaResourceVersion))
	}
	return e, kind != nil
}

// protoObject is the object in the RawExtension of an event.
func protoObject(extension []byte) []byte {
	unknown, ok := bytes.CutPrefix(field(extension, rawExtensionRaw), protoMagic)
	if !ok {
		return nil
	}
	return field(unknown, unknownRaw)
}

func protoEndsInitial(b []byte) bool {
	metadata := field(protoObject(field(b, watchEventObject)), objectMetadata)
	for number, entry := range fields(metadata) {
		if number == metaAnnotations && string(field(entry, entryKey)) == metav1.InitialEventsAnnotationKey {
			return string(field(entry, entryValue)) == "true"
		}
	}
	return false
}

func protoStatus(b []byte) *metav1.Status {
	status := &metav1.Status{}
	if status.Unmarshal(protoObject(field(b, watchEventObject))) != nil {
		return &metav1.Status{}
	}
	return status
}
