package upstream

import (
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
	material := s.secrets.current()
	own := header.Clone(2)
	own.Set("User-Agent", userAgent)
	if material.token != "" {
		own.Set("Authorization", "Bearer "+material.token)
	}
	resp, err := s.RoundTrip(ctx, &Request{
		Method: "GET", Target: target, Header: own, OwnCertificate: material.cert != nil, probe: true,
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > limit {
		return nil, &TooLargeError{Target: target, Limit: limit}
	}
	return &Document{Status: resp.Status, Header: resp.Header, Body: body}, nil
}
