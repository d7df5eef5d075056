package upstream

import (
	"errors"
	"net/http"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

var errOnlyGet = errors.New("MVP's own clients only read")

// transport is a server as client-go wants one. Requests are MVP's own, with its own
// credential, over the connections and under the trust of all its others. It refuses
// everything but GET.
type transport struct{ server *Server }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	closeBody(r)
	if r.Method != http.MethodGet {
		return nil, errOnlyGet
	}
	watch := isWatch(r)
	req := ownRequest(r, watch)
	req.Body, req.ContentLength = nil, 0
	resp, err := t.server.RoundTrip(r.Context(), req)
	if err != nil {
		return nil, err
	}
	out := httpResponse(r, resp)
	if !watch {
		out.Body = http.MaxBytesReader(nil, resp.Body, maxCRDListBytes)
	}
	return out, nil
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") == "true" }

// ownRequest is r as a request of MVP's own.
func ownRequest(r *http.Request, watch bool) *Request {
	req := &Request{
		Method: r.Method, Target: r.URL.RequestURI(), Header: wireHeader(r.Header),
		Credential: OwnCredential, Long: watch, probe: true,
	}
	if r.Body != nil && r.Body != http.NoBody {
		req.Body, req.ContentLength = r.Body, r.ContentLength
		if req.ContentLength == 0 {
			req.ContentLength = -1 // net/http's way to say that it is not known
		}
	}
	req.Header.Set("User-Agent", userAgent)
	return req
}

func httpResponse(r *http.Request, resp *Response) *http.Response {
	return &http.Response{
		StatusCode: resp.Status, Status: http.StatusText(resp.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: httpHeader(resp.Header), ContentLength: resp.ContentLength, Body: resp.Body, Request: r,
	}
}

func wireHeader(h http.Header) wire.Header {
	var out wire.Header
	for name, values := range h {
		for _, value := range values {
			out.Add(name, value)
		}
	}
	return out
}

func httpHeader(h wire.Header) http.Header {
	out := make(http.Header, len(h))
	for i := range h {
		out.Add(h[i].Name, h[i].Value)
	}
	return out
}
