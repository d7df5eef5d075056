package proxy

import (
	"encoding/binary"
	"mime"
)

// frames follows a watch as it streams by and knows where an event ends, so that
// a shutdown ends the watch there: a client that gets half an event reports an
// error instead of coming back.
type frames struct {
	binary bool // protobuf: each event has its length before it
	head   [4]byte
	read   int    // bytes of head that are there
	left   uint32 // bytes of the event that are not
	inside bool   // JSON: an event has begun
}

// newFrames follows an answer of that Content-Type. JSON events end with a
// newline; in CBOR, as in anything else, where an event ends is not looked for.
func newFrames(contentType string) frames {
	mediaType, _, err := mime.ParseMediaType(contentType)
	return frames{binary: err == nil && mediaType == mediaProtobuf}
}

// pass notes that p went by.
func (f *frames) pass(p []byte) {
	if !f.binary {
		if len(p) > 0 {
			f.inside = p[len(p)-1] != '\n'
		}
		return
	}
	for len(p) > 0 {
		if f.read < len(f.head) {
			n := copy(f.head[f.read:], p)
			f.read += n
			p = p[n:]
			if f.read < len(f.head) {
				return
			}
			f.left = binary.BigEndian.Uint32(f.head[:])
		}
		n := min(uint64(len(p)), uint64(f.left))
		p = p[n:]
		f.left -= uint32(n)
		if f.left == 0 {
			f.read = 0
		}
	}
}

// whole reports whether the last event that went by has ended.
func (f *frames) whole() bool {
	if f.binary {
		return f.read == 0
	}
	return !f.inside
}
