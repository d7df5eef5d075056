package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/types"
)

// The media types of CBOR: one data item, a watch's events, a server-side apply.
const (
	mediaCBOR      = runtime.ContentTypeCBOR
	mediaCBORSeq   = runtime.ContentTypeCBORSequence
	applyPatchCBOR = string(types.ApplyCBORPatchType)
)

// maxCBORGrowth is how many times longer than the longest body its JSON may be. Objects
// become less than twice as long; a body of nothing but short times would grow tenfold.
const maxCBORGrowth = 4

// cborToJSON gives the request's body, which is in CBOR, in JSON.
func (x *exchange) cborToJSON(raw []byte) ([]byte, error) {
	limit := maxCBORGrowth * x.s.cfg.MaxBody
	doc, err := transcodeCBOR(raw, int(limit))
	switch {
	case errors.Is(err, errCBORGrowth):
		return nil, &statusError{
			code: http.StatusRequestEntityTooLarge, reason: metav1.StatusReasonRequestEntityTooLarge,
			message: fmt.Sprintf("the body of the request is longer than the limit of %d bytes when it is written in JSON", limit),
		}
	case err != nil:
		return nil, &statusError{
			code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest,
			message: fmt.Sprintf("cannot read the body as %s: %s", mediaCBOR, clip(err.Error())),
		}
	}
	return doc, x.body.reserve(int64(len(doc)))
}

// transcodeCBOR writes a data item in JSON: what kube-apiserver decodes it to where it
// has no Go type for it. Integers keep their digits, floats stay floats (1.0 is not 1),
// byte strings are strings or, under a tag that says so, base64.
//
// kube-apiserver refuses keys that stand twice, integers beyond 64 bits, NaN and
// undefined, and so does this. What it takes and JSON cannot hold is refused, too:
// strings that are not UTF-8.
func transcodeCBOR(raw []byte, limit int) ([]byte, error) {
	if err := cbor.Unmarshal(raw, &wellFormed{}); err != nil {
		return nil, err
	}
	t := cborTranscoder{in: raw, limit: limit}
	if err := t.value(); err != nil {
		return nil, err
	}
	return t.out, nil
}

// wellFormed decodes from every data item that is well-formed, whole and within
// kube-apiserver's limits. It takes no memory.
type wellFormed struct{}

func (*wellFormed) UnmarshalCBOR([]byte) error { return nil }

var (
	errCBORGrowth = errors.New("too long in JSON")
	errNotUTF8    = errors.New("it has a string that is not UTF-8, which JSON cannot hold")
)

// cborTranscoder goes through well-formed CBOR without decoding it to values first, which
// would take a hundred times the memory of a body made for it.
type cborTranscoder struct {
	in    []byte // what is left
	out   []byte
	limit int   // bytes of out
	later uint8 // the tag around that says how byte strings become text; 0: they are text
}

// The tags that are looked at.
const (
	tagRFC3339, tagEpoch        = 0, 1
	tagLaterFirst, tagLaterLast = 21, 23 // base64url, base64, base16
)

// value writes the next item.
func (t *cborTranscoder) value() error {
	if len(t.out) > t.limit {
		return errCBORGrowth
	}
	h, _ := readCBORHead(t.in)
	switch h.major {
	case cborUint, cborNegative:
		return t.integer(h)
	case cborBytes, cborText:
		s, err := t.text(h, "")
		if err != nil {
			return err
		}
		t.out = appendJSONString(t.out, s)
		return nil
	case cborArray:
		return t.array(h)
	case cborMap:
		return t.object(h)
	case cborTag:
		return t.tagged()
	}
	return t.scalar()
}

func (t *cborTranscoder) integer(h cborHead) error {
	if h.argument > math.MaxInt64 {
		return t.scalar() // which knows how to refuse it
	}
	t.in = t.in[h.size:]
	n := int64(h.argument)
	if h.major == cborNegative {
		n = -1 - n
	}
	t.out = strconv.AppendInt(t.out, n, 10)
	return nil
}

// text consumes a string, or what may be one as the key of a map; null is the key
// before it, as it is for kube-apiserver.
func (t *cborTranscoder) text(h cborHead, before string) (string, error) {
	s := before
	plain := h.major == cborText || h.major == cborBytes && t.later == 0
	if plain && !h.indefinite {
		end := h.size + int(h.argument)
		s = string(t.in[h.size:end])
		t.in = t.in[end:]
	} else if err := cbor.Unmarshal(t.item(), &s); err != nil {
		return "", err
	}
	if !utf8.ValidString(s) {
		return "", errNotUTF8
	}
	return s, nil
}

// item consumes an item of any sort and returns it with the tag around it.
func (t *cborTranscoder) item() []byte {
	var extent cborExtent
	n, _ := extent.end(t.in)
	item := t.in[:n]
	t.in = t.in[n:]
	if t.later != 0 {
		item = append([]byte{byte(cborTag)<<5 | t.later}, item...)
	}
	return item
}

// scalar writes what is neither a collection nor holds one.
func (t *cborTranscoder) scalar() error {
	var v any
	if err := cbor.Unmarshal(t.item(), &v); err != nil {
		return err
	}
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return errNotUTF8
		}
		t.out = appendJSONString(t.out, v)
	case float64:
		t.out = appendJSONFloat(t.out, v)
	case bool:
		t.out = strconv.AppendBool(t.out, v)
	case int64:
		t.out = strconv.AppendInt(t.out, v, 10)
	default:
		t.out = append(t.out, "null"...)
	}
	return nil
}

// tagged writes the content of an item with tags. Those that say nothing of what becomes
// of it in JSON are passed over.
func (t *cborTranscoder) tagged() error {
	begin, later, timed := t.in, t.later, false
	h, _ := readCBORHead(t.in)
	for ; h.major == cborTag; h, _ = readCBORHead(t.in) {
		t.in = t.in[h.size:]
		timed = timed || h.argument == tagRFC3339 || h.argument == tagEpoch
		if h.argument >= tagLaterFirst && h.argument <= tagLaterLast {
			later = uint8(h.argument)
		}
	}
	switch {
	case h.major != cborArray && h.major != cborMap:
		t.in = begin
		return t.scalar()
	case timed:
		return errors.New("a collection is tagged as a time")
	}
	around := t.later
	t.later = later
	err := t.value()
	t.later = around
	return err
}

// more reports whether a collection has an item after i, and consumes its break.
func (t *cborTranscoder) more(h cborHead, i uint64) bool {
	if !h.indefinite {
		return i < h.argument
	}
	if t.in[0] != cborBreak {
		return true
	}
	t.in = t.in[1:]
	return false
}

func (t *cborTranscoder) array(h cborHead) error {
	t.in = t.in[h.size:]
	t.out = append(t.out, '[')
	for i := uint64(0); t.more(h, i); i++ {
		if i > 0 {
			t.out = append(t.out, ',')
		}
		if err := t.value(); err != nil {
			return err
		}
	}
	t.out = append(t.out, ']')
	return nil
}

func (t *cborTranscoder) object(h cborHead) error {
	t.in = t.in[h.size:]
	t.out = append(t.out, '{')
	keys, key := map[string]struct{}{}, ""
	for i := uint64(0); t.more(h, i); i++ {
		if i > 0 {
			t.out = append(t.out, ',')
		}
		head, _ := readCBORHead(t.in)
		var err error
		if key, err = t.text(head, key); err != nil {
			return err
		}
		if _, twice := keys[key]; twice {
			return fmt.Errorf("the key %q stands twice in a map", clip(key))
		}
		keys[key] = struct{}{}
		t.out = append(appendJSONString(t.out, key), ':')
		if err := t.value(); err != nil {
			return err
		}
	}
	t.out = append(t.out, '}')
	return nil
}

// appendJSONString appends a string that is UTF-8.
func appendJSONString(dst []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil { // of a string there is none
		panic(err)
	}
	return append(dst, quoted...)
}

// appendJSONFloat appends a number that readers which tell integers from floats, as
// kube-apiserver does, take for a float.
func appendJSONFloat(dst []byte, f float64) []byte {
	number, err := json.Marshal(f)
	if err != nil { // NaN and infinities were refused
		panic(err)
	}
	dst = append(dst, number...)
	if !bytes.ContainsAny(number, ".e") {
		dst = append(dst, ".0"...)
	}
	return dst
}
