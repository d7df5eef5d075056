package upstream

import (
	"context"
)

// RoundTrip sends req and returns the answer once its head has arrived. 1xx answers
// are skipped. The answer may come before the body was read whole; what is left of
// it is then sent while the answer is read, and dropped when that ends.
//
// When ctx is done, before or after RoundTrip returned, the connection is closed at
// once and reads of the body fail. HeaderTimeout bounds the wait for the head.
//
// The error is always an *Error. RoundTrip tries a second time, on a new connection,
// only if the first one was an old one that failed before a byte of an answer came,
// and either nothing was sent or the method is GET or HEAD.
func (s *Server) RoundTrip(ctx context.Context, req *Request) (*Response, error) {
	out, streamed, err := s.prepare(ctx, req)
	if err != nil {
		return nil, err
	}
	defer putRequest(out)
	leave, err := s.enter(ctx, req)
	if err != nil {
		return nil, err
	}
	kind := connKind{credential: req.Credential, long: req.Long}
	c := s.idle.get(kind)
	if c == nil {
		if c, err = s.dial(ctx, kind); err != nil {
			leave()
			return nil, err
		}
	}
	for {
		x := s.begin(ctx, c, req, leave)
		resp, failed := x.roundTrip(*out, streamed)
		if failed == nil {
			return resp, nil
		}
		if !x.mayRepeat(failed, streamed) {
			leave()
			return nil, failed
		}
		if c, err = s.dial(ctx, kind); err != nil {
			leave()
			return nil, err
		}
	}
}

// prepare checks req and returns its head, with its body if that is small; streamed
// says that there is a body that is not.
func (s *Server) prepare(ctx context.Context, req *Request) (out *[]byte, streamed bool, err error) {
	if err := req.check(); err != nil {
		return nil, false, s.fail(ctx, OpRequest, false, err)
	}
	material := s.secrets.current()
	if err := req.checkCredential(material); err != nil {
		return nil, false, s.fail(ctx, OpRequest, false, err)
	}
	token := ""
	if req.Credential == OwnCredential {
		token = material.token
	}
	out = requests.Get().(*[]byte)
	*out, streamed, err = req.appendInline(req.appendHead((*out)[:0], s.end.addr, token))
	if err != nil {
		putRequest(out)
		return nil, false, s.fail(ctx, OpRequestBody, false, err)
	}
	return out, streamed, nil
}
