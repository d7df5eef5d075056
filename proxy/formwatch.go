package proxy

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// protobufEvents writes a watch's events, which come in JSON, in protobuf: each as
// soon as it is whole, and those of one Write in one.
type protobufEvents struct {
	x      *exchange
	w      io.Writer
	cutter cutter
	buf    []byte // what is not a whole event yet
}

var errNoEvent = errors.New("cannot write the server's watch as " + mediaProtobuf + ": it has something that is no event")

// Write takes the next bytes in JSON. An event that has no form in protobuf ends the
// watch with an ERROR event that says why.
func (p *protobufEvents) Write(b []byte) (int, error) {
	p.buf = append(p.buf, b...)
	var frames []byte
	done := 0
	for {
		n, e, ok := p.cutter.cut(p.buf[done:])
		var err error
		switch {
		case !ok:
			err = errNoEvent
		case n == 0:
			p.keep(done)
			return len(b), p.send(frames)
		case e.kind != blankEvent:
			frames, err = appendFrame(frames, p.buf[done:done+n])
		}
		if err != nil {
			return 0, errors.Join(err, p.send(p.appendError(frames, err)))
		}
		done += n
	}
}

// keep drops the first done bytes.
func (p *protobufEvents) keep(done int) {
	rest := p.buf[done:]
	if cap(p.buf) > largeWatchBuffer && len(rest) <= idleWatchBuffer {
		p.buf = nil
	}
	p.buf = append(p.buf[:0], rest...)
}

func (p *protobufEvents) send(frames []byte) error {
	if len(frames) == 0 {
		return nil
	}
	_, err := p.w.Write(frames)
	return err
}

func (p *protobufEvents) appendError(frames []byte, err error) []byte {
	event := append([]byte(`{"type":"ERROR","object":`), p.x.statusBody(toStatus(err))...)
	frames, err = appendFrame(frames, append(event, '}'))
	if err != nil { // a Status has a form
		panic(err)
	}
	return frames
}

// appendFrame appends an event in protobuf, behind its length.
func appendFrame(dst, raw []byte) ([]byte, error) {
	var event struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := json.Unmarshal(raw, &event); err != nil {
		return dst, fmt.Errorf("cannot read an event of the watch: %w", err)
	}
	object, err := protobufOf(event.Object)
	if err != nil {
		return dst, err
	}
	if object == nil {
		return dst, fmt.Errorf("cannot write an event of the watch as %s: its object is of a kind that has no such form", mediaProtobuf)
	}
	frame, err := (&metav1.WatchEvent{Type: event.Type, Object: runtime.RawExtension{Raw: object}}).Marshal()
	if err != nil {
		return dst, err
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(frame)))
	return append(dst, frame...), nil
}
