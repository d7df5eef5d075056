package engine

import (
	"net/url"
	"strings"
)

// Request is what a request asks for, in Kubernetes' terms.
type Request struct {
	// Method, Path and Query are as sent; Path and Query still escaped, the "?"
	// between them left out.
	Method, Path, Query string

	// DecodedPath is Path without its escapes, as kube-apiserver sees it.
	DecodedPath string

	// IsResource is false for paths such as /healthz, /version, /apis/apps/v1.
	// All fields up to Name are then empty, except Verb and Prefix.
	IsResource bool

	// Verb is that of kube-apiserver's authorisation: "get", "list", "watch",
	// "create", "update", "patch", "delete", "deletecollection", "proxy"; ""
	// for a resource request of an unknown method. When IsResource is false it
	// is the method in lower case.
	Verb string

	// Prefix is "api" or "apis".
	Prefix string

	// Group is "" for the core group.
	Group, Version, Resource, Subresource, Namespace, Name string

	// Watch is true if the answer is a stream of watch events.
	Watch bool

	// DryRun is true if dryRun=All is in the query. (A DELETE can also ask for
	// it in its body.)
	DryRun bool

	// FieldManager is that of the query.
	FieldManager string

	// UserAgent and ContentType are the header fields. ParseRequest leaves them
	// empty.
	UserAgent, ContentType string

	hasQuery bool      // a "?" was sent
	at       pathSpans // where in Path the parts stand that a conversion replaces
}

// ParseRequest reads a request line as kube-apiserver does: on the decoded path,
// so that kube%2Dsystem is kube-system. The result is what RequestInfo of
// k8s.io/apiserver makes of the request that Go's HTTP server reads from the
// same bytes.
//
// The error is a [*BadTargetError]. Refused is what kube-apiserver refuses, and
// what other readers of the same bytes may take for something else: targets that
// do not start with exactly one "/", "#", invalid escapes in the path, control
// bytes, spaces, and more parameters than Go's parser reads.
//
// The work is linear in the length of target, which the size of a request head
// bounds.
func ParseRequest(method, target string) (Request, error) {
	if reason := checkTarget(method, target); reason != "" {
		return Request{}, &BadTargetError{Method: method, Target: target, Reason: reason}
	}
	r := Request{Method: method, Verb: lower(method)}
	r.Path, r.Query, r.hasQuery = strings.Cut(target, "?")
	decoded, err := url.PathUnescape(r.Path)
	if err != nil {
		return Request{}, &BadTargetError{Method: method, Target: target, Reason: "invalid escape in the path"}
	}
	r.DecodedPath = decoded
	if r.Query != "" {
		r.DryRun = queryValue(r.Query, "dryRun") == "All"
		r.FieldManager = queryValue(r.Query, "fieldManager")
	}
	if !r.parsePath() {
		return Request{}, &BadTargetError{Method: method, Target: target, Reason: "no resource after " + r.Verb}
	}
	return r, nil
}

// checkTarget returns why a request line is refused, or "".
func checkTarget(method, target string) string {
	if verbOf(method) == "" && (method == "" || strings.ContainsFunc(method, notToken)) {
		return "the method is not a token"
	}
	if !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") {
		return `the target must be a path that starts with one "/"`
	}
	for i := range len(target) {
		switch c := target[i]; {
		case c <= ' ' || c == 0x7f:
			return "the target has a space or a control byte"
		case c == '#':
			return `the target has a "#"`
		}
	}
	if _, query, _ := strings.Cut(target, "?"); strings.Count(query, "&") >= maxQueryParameters {
		return "too many query parameters"
	}
	return ""
}

// notToken reports whether c may not be in a method (RFC 9110 section 5.6.2).
func notToken(c rune) bool {
	if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
		return false
	}
	return !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
}

// parsePath fills in what the path and the query say, from Verb on. It returns
// false for a path that ends where a resource must follow.
//
// The grammar, with [] for what may be missing:
//
//	/api/{version}/[watch|proxy/][namespaces/{namespace}/]{resource}[/{name}[/{subresource}]]
//	/apis/{group}/{version}/...
//
// where namespaces/{namespace}[/status|/finalize] is the resource "namespaces".
func (r *Request) parsePath() bool {
	parts := splitPath(r.Path)
	rest := parts.all()
	if len(rest) < 3 || rest[0].text != "api" && rest[0].text != "apis" {
		return true
	}
	r.Prefix, r.at.prefix, rest = rest[0].text, rest[0].span, rest[1:]
	if r.Prefix == "apis" {
		if len(rest) < 3 {
			return true
		}
		r.Group, r.at.group, rest = rest[0].text, rest[0].span, rest[1:]
	}
	r.IsResource = true
	r.Version, r.at.version, rest = rest[0].text, rest[0].span, rest[1:]

	if rest[0].text == "watch" || rest[0].text == "proxy" {
		// Forms of long ago; kube-apiserver still serves "watch".
		r.Verb = rest[0].text
		if rest = rest[1:]; len(rest) == 0 {
			return false
		}
	} else {
		r.Verb = verbOf(r.Method)
	}
	r.parseResource(rest)
	r.refineVerb()
	return true
}

// parseResource reads the parts from the namespace or the resource on.
func (r *Request) parseResource(rest []part) {
	if rest[0].text == "namespaces" && len(rest) > 1 {
		r.Namespace = rest[1].text
		if len(rest) > 2 && rest[2].text != "status" && rest[2].text != "finalize" {
			rest = rest[2:]
		}
	}
	r.Resource, r.at.resource = rest[0].text, rest[0].span
	if len(rest) > 1 {
		r.Name = rest[1].text
	}
	if len(rest) > 2 && r.Verb != "proxy" {
		r.Subresource = rest[2].text
	}
}

// verbOf returns the verb of a request for one object.
func verbOf(method string) string {
	switch method {
	case "GET", "HEAD":
		return "get"
	case "POST":
		return "create"
	case "PUT":
		return "update"
	case "PATCH":
		return "patch"
	case "DELETE":
		return "delete"
	}
	return ""
}

// lower returns method in lower case, without an allocation for the usual ones.
func lower(method string) string {
	switch method {
	case "GET":
		return "get"
	case "POST":
		return "post"
	case "PUT":
		return "put"
	case "PATCH":
		return "patch"
	case "DELETE":
		return "delete"
	}
	return strings.ToLower(method)
}

// refineVerb turns the verb of one object into that of a collection where there
// is no name. A field selector for metadata.name is a name.
func (r *Request) refineVerb() {
	if r.Name == "" && r.Verb == "get" {
		options := parseListOptions(r.Query)
		r.Verb, r.Name = "list", options.name
		if options.watch {
			r.Verb = "watch"
		}
	}
	if r.Name == "" && r.Verb == "delete" {
		r.Verb = "deletecollection"
	}
	r.Watch = r.Verb == "watch"
}

// String returns "verb group/version resource[/subresource] [namespace/]name",
// or verb and path when it is not a resource request.
func (r *Request) String() string {
	if !r.IsResource {
		return r.Verb + " " + r.Path
	}
	var b strings.Builder
	b.WriteString(r.Verb + " " + r.Group + "/" + r.Version + " " + r.Resource)
	if r.Subresource != "" {
		b.WriteString("/" + r.Subresource)
	}
	switch {
	case r.Namespace != "":
		b.WriteString(" " + r.Namespace + "/" + r.Name)
	case r.Name != "":
		b.WriteString(" " + r.Name)
	}
	return b.String()
}

// Vars returns r as a jq program sees it in $request: the fields that CEL
// expressions see, under the same names.
func (r *Request) Vars() map[string]any {
	query := map[string]any{}
	for key, values := range decodeQuery(r.Query) {
		list := make([]any, len(values))
		for i, value := range values {
			list[i] = value
		}
		query[key] = list
	}
	return map[string]any{
		"method": r.Method, "path": r.DecodedPath, "verb": r.Verb,
		"group": r.Group, "version": r.Version, "resource": r.Resource, "subresource": r.Subresource,
		"namespace": r.Namespace, "name": r.Name, "query": query,
		"userAgent": r.UserAgent, "contentType": r.ContentType,
		"fieldManager": r.FieldManager, "dryRun": r.DryRun,
	}
}
