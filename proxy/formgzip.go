package proxy

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// inflate makes an answer that came compressed, although it was not to, one that can
// be converted.
func (x *exchange) inflate() error {
	encodings := strings.Join(x.answer.Header.Values("Content-Encoding"), ",")
	switch strings.ToLower(strings.Trim(encodings, " \t")) {
	case "", "identity":
	case "gzip", "x-gzip":
		x.answer.Body = &gunzip{body: x.answer.Body, in: bufio.NewReader(x.answer.Body)}
		x.answer.ContentLength = -1
	default:
		return &statusError{
			code: http.StatusBadGateway, reason: metav1.StatusReasonInternalError,
			message: fmt.Sprintf("%s answered in the encoding %s, which was not asked for and cannot be converted to %s",
				x.server.Name, clip(encodings), x.conv.From.APIVersion()),
		}
	}
	x.answer.Header.DelName("Content-Encoding")
	return nil
}

// gunzip reads what is compressed, of any number of members. It gives what a member
// has before it looks for the next one, which of a watch comes with the next event.
type gunzip struct {
	body   io.Closer
	in     *bufio.Reader
	member gzip.Reader
	inside bool
	begun  bool // there was a member
}

func (g *gunzip) Read(p []byte) (int, error) {
	for {
		if !g.inside {
			if err := g.next(); err != nil {
				return 0, err
			}
		}
		n, err := g.member.Read(p)
		if errors.Is(err, io.EOF) {
			g.inside, err = false, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// next begins a member. Its error is io.EOF behind the last one.
func (g *gunzip) next() error {
	switch _, err := g.in.Peek(1); {
	case errors.Is(err, io.EOF) && !g.begun:
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	}
	if err := g.member.Reset(g.in); err != nil {
		return inside(err)
	}
	g.member.Multistream(false)
	g.inside, g.begun = true, true
	return nil
}

func (g *gunzip) Close() error { return g.body.Close() }
