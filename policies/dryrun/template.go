package dryrun

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine"
)

// Template is a request whose body is still to come. The zero Template is the create
// of an object.
type Template struct {
	// Method and Target are those of the request line; empty: the create of the
	// body's own kind.
	Method, Target string

	Header http.Header
	User   *engine.User
}

// ParseLine sets method and target from a request line: "PUT /api/v1/…".
func (t *Template) ParseLine(line string) error {
	method, target, ok := strings.Cut(strings.TrimSpace(line), " ")
	if !ok {
		return fmt.Errorf("want a method and a path, such as 'PUT /api/v1/…'")
	}
	if _, err := engine.ParseRequest(method, target); err != nil {
		return err
	}
	t.Method, t.Target = method, target
	return nil
}

// HasBody reports whether the request has a body that policies look at. Without one
// its Request is made with a nil body.
func (t *Template) HasBody() bool {
	if t.Target == "" {
		return true
	}
	request, err := engine.ParseRequest(t.Method, t.Target)
	return err == nil && hasBody(&request)
}

// IsPatch reports whether the body is a patch, which need not be an object.
func (t *Template) IsPatch() bool { return t.Method == http.MethodPatch }

// Request is the request with the body, which is in JSON. Without a content type the
// body is an object, and that of a patch a JSON patch if it is a list, else a merge
// patch.
func (t *Template) Request(body []byte) Request {
	r := Request{Method: t.Method, Target: t.Target, Header: t.Header.Clone(), Body: body, User: t.User}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if body == nil || r.Header.Get("Content-Type") != "" {
		return r
	}
	switch {
	case !t.IsPatch():
		r.Header.Set("Content-Type", mediaJSON)
	case bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")):
		r.Header.Set("Content-Type", JSONPatch)
	default:
		r.Header.Set("Content-Type", MergePatch)
	}
	return r
}

// Create is the request that creates the object of m: POST /apis/G/V/namespaces/N/R.
// set says which resource a kind is that it converts.
func (t *Template) Create(set *engine.Set, m *Manifest) Request {
	create := Template{Method: http.MethodPost, Target: createTarget(set, m), Header: t.Header, User: t.User}
	return create.Request(m.JSON)
}
