package proxy

import (
	"encoding/binary"
	"math"
)

// cborMajor is what a data item of CBOR is, as the upper bits of its first byte say.
type cborMajor byte

const (
	cborUint cborMajor = iota
	cborNegative
	cborBytes
	cborText
	cborArray
	cborMap
	cborTag
	cborSimple // booleans, null and floats, too
)

// cborBreak ends what is of indefinite length.
const cborBreak = 0xff

func majorOf(first byte) cborMajor { return cborMajor(first >> 5) }

// cborHead is what a data item begins with.
type cborHead struct {
	major      cborMajor
	argument   uint64 // a number, a length in bytes or items, a tag
	indefinite bool   // the item has no length and ends with a break
	size       int    // bytes of the head itself; 0: they are not all there
}

// readCBORHead reads the head that b begins with. ok is false for what is none.
func readCBORHead(b []byte) (h cborHead, ok bool) {
	if len(b) == 0 {
		return h, true
	}
	h.major = majorOf(b[0])
	info := b[0] & 0x1f
	switch {
	case info < 24:
		h.argument, h.size = uint64(info), 1
		return h, true
	case info == 31:
		h.indefinite, h.size = true, 1
		return h, h.major >= cborBytes && h.major != cborTag
	case info > 27:
		return h, false
	}
	size := 1 + 1<<(info-24)
	if len(b) < size {
		return h, true
	}
	var argument [8]byte
	copy(argument[8-(size-1):], b[1:size])
	h.argument, h.size = binary.BigEndian.Uint64(argument[:]), size
	return h, true
}

const (
	// maxCBORDepth is how deep kube-apiserver lets CBOR nest.
	maxCBORDepth = 10000

	// maxCBORLength is no length of anything that fits a request or an event.
	maxCBORLength = 1 << 32

	// untilBreak is how many items of an indefinite length are left.
	untilBreak = math.MaxUint64
)

// cborExtent looks for the end of a data item that comes piece by piece. The zero
// cborExtent is before its first byte.
type cborExtent struct {
	seen  int      // bytes that were gone through, of a string also those to come
	open  []uint64 // of the collections around: the items that are left
	whole bool     // the item ends at seen
}

// end returns how long the item at the beginning of b is, 0 if it has not ended; ok is
// false for what is no item. Each call is given all of it again, and looks at what it
// has not seen.
func (e *cborExtent) end(b []byte) (n int, ok bool) {
	for !e.whole {
		if e.seen >= len(b) {
			return 0, true
		}
		h, ok := readCBORHead(b[e.seen:])
		if !ok || h.size == 0 {
			return 0, ok
		}
		e.seen += h.size
		if !e.enter(h) {
			return 0, false
		}
	}
	if e.seen > len(b) {
		return 0, true
	}
	return e.seen, true
}

// enter goes behind the head of an item, and behind the item if that is all of it.
func (e *cborExtent) enter(h cborHead) bool {
	left := uint64(0)
	switch {
	case h.major == cborSimple && h.indefinite:
		if len(e.open) == 0 || e.open[len(e.open)-1] != untilBreak {
			return false
		}
		e.open = e.open[:len(e.open)-1]
	case h.major == cborTag: // its content is the item
		return true
	case h.indefinite:
		left = untilBreak
	case h.major < cborBytes || h.major == cborSimple:
	case h.argument > maxCBORLength:
		return false
	case h.major == cborArray:
		left = h.argument
	case h.major == cborMap:
		left = 2 * h.argument
	default:
		e.seen += int(h.argument)
	}
	if left > 0 {
		e.open = append(e.open, left)
		return len(e.open) <= maxCBORDepth
	}
	e.leave()
	return true
}

// leave notes that an item has ended, and with it those that it was the last of.
func (e *cborExtent) leave() {
	for i := len(e.open) - 1; i >= 0; i-- {
		if e.open[i] == untilBreak {
			return
		}
		if e.open[i]--; e.open[i] > 0 {
			return
		}
		e.open = e.open[:i]
	}
	e.whole = true
}
