package proxy

import (
	"errors"
	"io"
	"iter"
)

// errNotPulled tells a writer that nobody reads on.
var errNotPulled = errors.New("the rest is not needed")

// pulled is what write writes, to be read: write runs as far as the reader needs it,
// on the reader's goroutine. Its error comes behind its last byte. Call stop when
// done.
func pulled(write func(w io.Writer) error) (r io.Reader, stop func()) {
	p := &puller{}
	p.next, stop = iter.Pull(func(yield func([]byte) bool) {
		p.err = write(pushWriter(yield))
	})
	return p, stop
}

type puller struct {
	next func() ([]byte, bool)
	left []byte
	err  error // what write returned
}

func (p *puller) Read(b []byte) (int, error) {
	for len(p.left) == 0 {
		chunk, ok := p.next()
		if !ok {
			if p.err != nil {
				return 0, p.err
			}
			return 0, io.EOF
		}
		p.left = chunk
	}
	n := copy(b, p.left)
	p.left = p.left[n:]
	return n, nil
}

// pushWriter hands on what is written, and waits until it has been read.
type pushWriter func([]byte) bool

func (yield pushWriter) Write(b []byte) (int, error) {
	if !yield(b) {
		return 0, errNotPulled
	}
	return len(b), nil
}
