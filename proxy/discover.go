package proxy

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/mixed-version-proxy/mvp/proxy/discovery"
	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// discover answers what clients are told of the APIs: the union of what the
// servers serve, and what is served by conversion. Nil: the request asks for
// something else, or for a document that a server answers as well.
//
// A server is asked first, with the client's own credential, so that nobody sees
// of the merged discovery what kube-apiserver would not have shown him.
func (x *exchange) discover() (*front.Response, error) {
	if x.req.IsResource || !readOnly(x.in.Method) {
		return nil, nil
	}
	own, err := x.ownDocument()
	if own == nil || err != nil {
		return nil, err
	}
	if resp, err := x.authorize(); resp != nil || err != nil {
		return resp, err
	}
	return ownResponse(own, x.in.Method), nil
}

// ownDocument finds the answer in the merged discovery; nil when there is none.
func (x *exchange) ownDocument() (*discovery.Answer, error) {
	path := x.req.Path
	isAPI := path == "/api" || path == "/apis" || strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/apis/")
	isOpenAPI := path == "/openapi/v3" || strings.HasPrefix(path, "/openapi/v3/")
	if !isAPI && !isOpenAPI {
		return nil, nil
	}
	if x.st.merged.Empty() {
		return nil, unavailable("no kube-apiserver has said yet what it serves")
	}
	ifNoneMatch := x.in.Header.Get("If-None-Match")
	if isOpenAPI {
		return x.st.openapi.answer(path, ifNoneMatch), nil
	}
	answer, ok := x.st.merged.Answer(discovery.Request{
		Path:        path,
		Accept:      strings.Join(x.in.Header.Values("Accept"), ","),
		IfNoneMatch: ifNoneMatch,
		Host:        x.in.Host,
		Pretty:      pretty(x.req.Query),
	})
	if !ok {
		return nil, nil
	}
	return answer, nil
}

// pretty reports whether a query asks for indented JSON, as kube-apiserver reads
// it: any value but 0 and false.
func pretty(query string) bool {
	values, err := url.ParseQuery(query)
	if err != nil {
		return false
	}
	switch values.Get("pretty") {
	case "", "0", "false":
		return false
	}
	return true
}

// authorize asks a server for the same document in its smallest form. It returns
// the server's answer where that is a refusal, and nil where the client may see
// the document.
func (x *exchange) authorize() (*front.Response, error) {
	if err := x.choose(); err != nil {
		return nil, err
	}
	header := x.header.Clone(2)
	header.DelName("If-None-Match")
	header.Set("Accept", "application/json")
	header.Set("Accept-Encoding", "identity")
	err := x.forward(&upstream.Request{Method: http.MethodGet, Target: x.in.Target, Host: x.in.Host, Header: header})
	if err != nil {
		return nil, err
	}
	switch status := x.answer.Status; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden,
		status == http.StatusTooManyRequests, status >= 500:
		return x.pass(), nil
	}
	// The rest of a small document is cheaper to read than its connection is to
	// make anew; what a large one leaves unread takes the connection with it.
	_, _ = io.CopyN(io.Discard, x.answer.Body, maxAuthorizeBody)
	return nil, nil
}

// maxAuthorizeBody is how much of a server's own document is read to keep its
// connection: the unaggregated form of a busy cluster's largest group is less.
const maxAuthorizeBody = 256 << 10

// ownResponse sends a document of MVP's own.
func ownResponse(d *discovery.Answer, method string) *front.Response {
	h := wire.Header{}
	for _, field := range []wire.Field{
		{Name: "Cache-Control", Value: d.CacheControl},
		{Name: "Content-Type", Value: d.ContentType},
		{Name: "Etag", Value: d.ETag},
		{Name: "Vary", Value: d.Vary},
	} {
		if field.Value != "" {
			h = append(h, field)
		}
	}
	if method == http.MethodHead {
		h.Add("Content-Length", strconv.Itoa(len(d.Body)))
	}
	return &front.Response{
		Status: d.Status, Header: h, Bytes: d.Body,
		NoBody: method == http.MethodHead || d.Status == http.StatusNotModified,
	}
}
