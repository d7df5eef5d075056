package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
)

// Limits of the chunked coding (RFC 9112 section 7.1). A line of it (a chunk's size
// with its extensions, a trailer) must also fit the connection's buffer of
// readBufferBytes.
const (
	// maxChunkDigits is the length of a chunk's size in hexadecimal: 2^60 bytes.
	maxChunkDigits = 15

	// maxTrailers is how many trailer lines are skipped. Kubernetes sends none.
	maxTrailers = 64
)

// chunkState is what comes next in a chunked body.
type chunkState byte

const (
	chunkSize     chunkState = iota // a size line
	chunkData                       // left bytes of data
	chunkEnd                        // the CR LF after the data
	chunkTrailers                   // trailer lines and the empty line after them
	chunksDone                      // nothing
)

// readChunked fills b with the data of as many chunks as have arrived, so that a
// burst of watch events is one Read. It waits only for the first byte, and notices
// the end at once if that has arrived.
func (p *payload) readChunked(b []byte) (int, error) {
	n := 0
	for n == 0 || p.stepArrived() {
		if p.state == chunksDone {
			return n, io.EOF
		}
		if p.state != chunkData {
			if err := p.stepChunk(); err != nil {
				return n, err
			}
			continue
		}
		if n == len(b) {
			break
		}
		m, err := p.readSome(b[n:])
		n += m
		if err != nil {
			return n, err
		}
		if p.left == 0 {
			p.state = chunkEnd
		}
	}
	return n, nil
}

// stepArrived reports whether the next step can be made without waiting.
func (p *payload) stepArrived() bool {
	switch p.state {
	case chunksDone:
		return true
	case chunkData:
		return p.r.Buffered() > 0
	}
	buffered, _ := p.r.Peek(p.r.Buffered())
	return bytes.IndexByte(buffered, '\n') >= 0
}

// stepChunk reads one line of the coding.
func (p *payload) stepChunk() error {
	line, err := p.readLine()
	if err != nil {
		return err
	}
	switch p.state {
	case chunkSize:
		return p.startChunk(line)
	case chunkEnd:
		if len(line) != 0 {
			return malformed("a chunk is longer than its size", string(line))
		}
		p.state = chunkSize
		return nil
	}
	return p.trailer(line)
}

func (p *payload) startChunk(line []byte) error {
	digits, extensions, _ := bytes.Cut(line, []byte(";"))
	digits = bytes.TrimRight(digits, " \t")
	size, ok := parseHex(digits)
	if !ok || !validValue(string(extensions)) {
		return malformed("bad chunk size", string(line))
	}
	p.left, p.state = size, chunkData
	if size == 0 {
		p.left, p.state = maxTrailers, chunkTrailers
	}
	return nil
}

// trailer drops one line after the last chunk, after checking that it is a header
// line. In this state left counts the lines that may still come.
func (p *payload) trailer(line []byte) error {
	if len(line) == 0 {
		p.state = chunksDone
		return nil
	}
	if p.left == 0 {
		return malformed("too many trailers, limit "+strconv.Itoa(maxTrailers), "")
	}
	p.left--
	_, err := parseField(string(line))
	return err
}

func parseHex(digits []byte) (n int64, ok bool) {
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | int64(c)
	}
	return n, len(digits) > 0 && len(digits) <= maxChunkDigits
}

// readLine returns the next line without its CR LF, valid until the next read.
func (p *payload) readLine() ([]byte, error) {
	line, err := p.r.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF):
		return nil, io.ErrUnexpectedEOF
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, malformed("a line of the chunked coding is too long", string(line))
	case err != nil:
		return nil, err
	case len(line) < 2 || line[len(line)-2] != '\r':
		return nil, malformed("a line does not end in CR LF", string(line))
	}
	return line[:len(line)-2], nil
}
