package discovery

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Request is a GET or HEAD of a discovery document.
type Request struct {
	Head        bool
	Path        string // decoded, without the query
	Accept      string // several header lines joined with commas; "": JSON
	IfNoneMatch string

	// Pretty asks for indented JSON, which kube-apiserver sends for ?pretty=true
	// and to curl, Wget and browsers.
	Pretty bool

	// Host is the address that the client used for us. /api names it, so that a
	// client that follows it stays with the proxy. Empty: it names none.
	Host string

	// StorageHashes has the storageVersionHash of resources, by name, for a request
	// of one group version. Nil: the document says none. See [StorageHashes].
	StorageHashes map[string]string
}

// An Answer is the response to a [Request]. For HEAD the caller leaves out the
// body.
type Answer struct {
	Status       int    // 200, 304, 405, or 406
	ContentType  string // empty for 304
	ETag         string // quoted; empty for 405 and 406
	Vary         string
	Encoding     string // Content-Encoding; "": none
	CacheControl string // the forms that kube-apiserver lets caches keep, it lets them keep
	Body         []byte // must not be changed; nil for 304
}

// Answer answers /api, /api/V, /apis, /apis/G and /apis/G/V, each with or without
// a slash at its end. ok is false for another path, for a group or version that
// clients do not see, and while m is empty: the caller then forwards the request,
// so that a server says in its own words that there is no such thing.
//
// An aggregated form exists of /api and /apis only, and not of /apis/. JSON, YAML and protobuf are
// answered, whatever else a client insists on gets 406, as from kube-apiserver;
// and as there, HEAD is an answer of /apis and /apis/G only.
func (m *Merged) Answer(req Request) (*Answer, bool) {
	if m.Empty() {
		return nil, false
	}
	path := strings.TrimSuffix(req.Path, "/")
	mayAggregate := path == "/api" || req.Path == "/apis" // /apis/ is another handler
	f, e, pretty, acceptable := negotiate(req.Accept, mayAggregate)
	doc, ok := m.document(path, f, req)
	switch {
	case !ok:
		return nil, false
	case req.Head && isRestful(path):
		return methodNotAllowed(e), true
	case !acceptable && isRestful(path) && !takesEncoding(req.Accept):
		return notAcceptableToRestful(), true
	case !acceptable:
		return notAcceptable(), true
	}
	if e == encodeJSON && (pretty || req.Pretty) {
		e = encodePretty
	}
	return doc.answer(f, e, req.IfNoneMatch)
}

// isRestful reports whether kube-apiserver serves the document of path by
// go-restful, which looks at method and Accept before anything else does: /api,
// /api/V and /apis/G/V.
func isRestful(path string) bool {
	return path == "/api" || strings.HasPrefix(path, "/api/") || strings.Count(path, "/") == 3
}

func (m *Merged) document(path string, f form, req Request) (*document, bool) {
	if path == "/api" && f == unaggregated {
		return &document{object: apiVersions(m.groups, req.Host)}, true
	}
	doc, ok := m.documents[documentKey{path, f}]
	if ok && len(req.StorageHashes) > 0 {
		doc = doc.withStorageHashes(req.StorageHashes)
	}
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

// availableTypes lists the media types that we answer, as messages do.
func availableTypes() string {
	var names []string
	for _, m := range mediaTypes {
		names = append(names, m.mainType+"/"+m.subtype)
	}
	return strings.Join(names, ", ")
}

func notAcceptable() *Answer {
	return refusal(&metav1.Status{
		Message: "only the following media types are accepted: " + availableTypes(),
		Reason:  metav1.StatusReasonNotAcceptable,
		Code:    http.StatusNotAcceptable,
	})
}

// notAcceptableToRestful is what kube-apiserver makes of go-restful's own refusal.
func notAcceptableToRestful() *Answer {
	return refusal(&metav1.Status{
		Message: "406: Not Acceptable\n\nAvailable representations: " + availableTypes(),
		Reason:  metav1.StatusReasonNotAcceptable,
		Details: &metav1.StatusDetails{},
		Code:    http.StatusNotAcceptable,
	})
}

// methodNotAllowed is in the encoding that the client accepts, or else in JSON.
func methodNotAllowed(e encoding) *Answer {
	return refusalIn(e, &metav1.Status{
		Message: "the server does not allow this method on the requested resource",
		Reason:  metav1.StatusReasonMethodNotAllowed,
		Details: &metav1.StatusDetails{},
		Code:    http.StatusMethodNotAllowed,
	})
}

// refusal is in JSON, whatever the client asked for, as kube-apiserver's is where it
// could not agree on a form.
func refusal(status *metav1.Status) *Answer { return refusalIn(encodeJSON, status) }

func refusalIn(e encoding, status *metav1.Status) *Answer {
	status.Kind, status.APIVersion, status.Status = "Status", "v1", metav1.StatusFailure
	body, _ := encode(status, e) // a struct of strings
	return &Answer{
		Status: int(status.Code), ContentType: e.mediaType(), Vary: "Accept",
		CacheControl: "no-cache, private", Body: body,
	}
}
