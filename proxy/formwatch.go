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

// formEvents writes a watch's events, which come in JSON, in another form: each as
// soon as it is whole, and those of one Write in one.
type formEvents struct {
	x      *exchange
	w      io.Writer
	form   form
	cutter cutter
	buf    []byte // what is not a whole event yet
}

// Write takes the next bytes in JSON. An event that cannot be written ends the watch with an ERROR event that says why.
func (p *formEvents) Write(b []byte) (int, error) {
	p.buf = append(p.buf, b...)
	var frames []byte
	done := 0
	for {
		n, e, ok := p.cutter.cut(p.buf[done:])
		var err error
		switch {
		case !ok:
			err = fmt.Errorf("cannot write the server's watch as %s: it has something that is no event", p.form)
		case n == 0:
			p.keep(done)
			return len(b), p.send(frames)
		case e.kind != blankEvent:
			frames, err = p.appendFrame(frames, p.buf[done:done+n])
		}
		if err != nil {
			return 0, errors.Join(err, p.send(p.appendError(frames, err)))
		}
		done += n
	}
}

// keep drops the first done bytes.
func (p *formEvents) keep(done int) {
	rest := p.buf[done:]
	if cap(p.buf) > largeWatchBuffer && len(rest) <= idleWatchBuffer {
		p.buf = nil
	}
	p.buf = append(p.buf[:0], rest...)
}

func (p *formEvents) send(frames []byte) error {
	if len(frames) == 0 {
		return nil
	}
	_, err := p.w.Write(frames)
	return err
}

func (p *formEvents) appendError(frames []byte, err error) []byte {
	frames, err = p.appendEvent(frames, "ERROR", p.x.statusBody(toStatus(err)))
	if err != nil { // a Status has a form
		panic(err)
	}
	return frames
}

// appendFrame appends an event that is in JSON.
func (p *formEvents) appendFrame(dst, raw []byte) ([]byte, error) {
	var event struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := json.Unmarshal(raw, &event); err != nil {
		return dst, fmt.Errorf("cannot read an event of the watch: %w", err)
	}
	return p.appendEvent(dst, event.Type, event.Object)
}

// appendEvent appends an event in the form. Its object is given in JSON.
func (p *formEvents) appendEvent(dst []byte, kind string, object []byte) ([]byte, error) {
	if p.form == formCBOR {
		return appendCBOREvent(dst, kind, object)
	}
	return appendProtobufEvent(dst, kind, object)
}

// appendProtobufEvent appends an event in protobuf, behind its length.
func appendProtobufEvent(dst []byte, kind string, raw []byte) ([]byte, error) {
	object, err := protobufOf(raw)
	if err != nil {
		return dst, err
	}
	if object == nil {
		return dst, fmt.Errorf("cannot write an event of the watch as %s: its object is of a kind that has no such form", mediaProtobuf)
	}
	frame, err := (&metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: object}}).Marshal()
	if err != nil {
		return dst, err
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(frame)))
	return append(dst, frame...), nil
}
