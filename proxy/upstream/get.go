package upstream

import (
	"bytes"
	"context"
	"io"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// userAgent is how MVP's own requests present themselves.
const userAgent = "mvp"

// Get reads target with MVP's own credential: its bearer token and its client
// certificate, as far as there are any. Header adds lines, such as Accept. An answer
// larger than limit bytes is a *TooLargeError. Any status is an answer; other errors
// are *Error.
func (s *Server) Get(ctx context.Context, target string, header wire.Header, limit int64) (*Document, error) {
	return s.ask(ctx, &Request{Method: "GET", Target: target, Header: header}, limit)
}

// Post sends body, which is JSON, to target as Get does. It is for what a server
// answers without keeping it, such as a TokenReview.
func (s *Server) Post(ctx context.Context, target string, body []byte, limit int64) (*Document, error) {
	const contentType = "application/json"
	return s.ask(ctx, &Request{
		Method: "POST", Target: target,
		Header:        wire.Header{{Name: "Content-Type", Value: contentType}, {Name: "Accept", Value: contentType}},
		Body:          bytes.NewReader(body),
		ContentLength: int64(len(body)),
	}, limit)
}

// ask makes a request of MVP's own and reads the answer whole.
func (s *Server) ask(ctx context.Context, req *Request, limit int64) (*Document, error) {
	req.Header = req.Header.Clone(1)
	req.Header.Set("User-Agent", userAgent)
	req.Credential, req.probe = OwnCredential, true
	resp, err := s.RoundTrip(ctx, req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > limit {
		return nil, &TooLargeError{Method: req.Method, Target: req.Target, Limit: limit}
	}
	return &Document{Status: resp.Status, Header: resp.Header, Body: body}, nil
}
