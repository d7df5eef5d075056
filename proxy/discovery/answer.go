package discovery

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Request is a GET or HEAD of a discovery document.
type Request struct {
	Path        string // decoded, without the query
	Accept      string // several header lines joined with commas; "": JSON
	IfNoneMatch string

	// Pretty asks for indented JSON, which kube-apiserver sends for ?pretty=true
	// and to curl, Wget and browsers.
	Pretty bool

	// Host is the address that the client used for us. /api names it, so that a
	// client that follows it stays with the proxy. Empty: it names none.
	Host string
}

// An Answer is the response to a [Request]. For HEAD the caller leaves out the
// body.
type Answer struct {
	Status       int    // 200, 304, or 406
	ContentType  string // empty for 304
	ETag         string // quoted; empty for 406
	Vary         string
	CacheControl string // the forms that kube-apiserver lets caches keep, it lets them keep
	Body         []byte // must not be changed; nil for 304
}

// Answer answers /api, /api/V, /apis, /apis/G and /apis/G/V, each with or without
// a slash at its end. ok is false for another path, for a group or version that
// clients do not see, and while m is empty: the caller then forwards the request,
// so that a server says in its own words that there is no such thing.
//
// An aggregated form exists of /api and /apis only. JSON, YAML and protobuf are
// answered, whatever else a client insists on gets 406, as from kube-apiserver.
func (m *Merged) Answer(req Request) (*Answer, bool) {
	if m.Empty() {
		return nil, false
	}
	path := strings.TrimSuffix(req.Path, "/")
	mayAggregate := path == "/api" || path == "/apis"
	f, e, pretty, acceptable := negotiate(req.Accept, mayAggregate)
	doc, ok := m.document(path, f, req.Host)
	if !ok {
		return nil, false
	}
	if !acceptable {
		return notAcceptable(), true
	}
	if e == encodeJSON && (pretty || req.Pretty) {
		e = encodePretty
	}
	return doc.answer(f, e, req.IfNoneMatch)
}

func (m *Merged) document(path string, f form, host string) (*document, bool) {
	if path == "/api" && f == unaggregated {
		return &document{object: apiVersions(m.groups, host)}, true
	}
	doc, ok := m.documents[documentKey{path, f}]
	return doc, ok
}

// answer returns false if the document cannot be written, which would be a
// mistake of ours that a server's own answer covers up best.
func (d *document) answer(f form, e encoding, ifNoneMatch string) (*Answer, bool) {
	etag, err := d.etag()
	if err != nil {
		return nil, false
	}
	a := &Answer{Status: http.StatusOK, ETag: etag, Vary: "Accept", CacheControl: "no-cache, private"}
	if f != unaggregated {
		a.CacheControl = "public"
	}
	if matchesETag(ifNoneMatch, etag) {
		a.Status = http.StatusNotModified
		return a, true
	}
	a.ContentType = e.mediaType() + f.mediaParameters()
	a.Body, err = d.body(e)
	return a, err == nil
}

// matchesETag reports whether an If-None-Match header (RFC 9110, section 13.1.2)
// names etag; the comparison is the weak one.
func matchesETag(header, etag string) bool {
	for header != "" {
		var tag string
		tag, header, _ = strings.Cut(header, ",") // our tags contain no comma
		tag = strings.TrimSpace(tag)
		if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
			return true
		}
	}
	return false
}

func notAcceptable() *Answer {
	var names []string
	for _, m := range mediaTypes {
		names = append(names, m.mainType+"/"+m.subtype)
	}
	status := &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Message:  "only the following media types are accepted: " + strings.Join(names, ", "),
		Reason:   metav1.StatusReasonNotAcceptable,
		Code:     http.StatusNotAcceptable,
	}
	body, _ := encode(status, encodeJSON) // a struct of strings
	return &Answer{Status: http.StatusNotAcceptable, ContentType: "application/json", Vary: "Accept", Body: body}
}
