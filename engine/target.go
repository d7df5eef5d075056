package engine

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// fieldTerm maps a term of a field selector. The operator is =, == or !=, the value is
// escaped as in the selector.
type fieldTerm func(path, operator, value string) string

// WithVersion returns the target of the same request under another group,
// version and resource. Only these elements of the path are replaced; every
// other byte of path and query stays as it was sent. The core group is /api/v1,
// every other one /apis/{group}/{version}.
//
// The terms of a field selector go through term, which returns what to use instead, "" for
// nothing; a nil term keeps them. A field selector with another term is written anew, as
// one escaped value.
//
// The error says that the request is for no resource, or that an element cannot
// stand in a path.
func (r *Request) WithVersion(group, version, resource string, term fieldTerm) (string, error) {
	if !r.IsResource {
		return "", fmt.Errorf("cannot ask for another version of %s: it is no resource", source.Quote(r.Path))
	}
	if version == "" || resource == "" {
		return "", fmt.Errorf("cannot ask for %s in group %q version %q: version and resource must be given", r, group, version)
	}
	for _, element := range [...]string{group, version, resource} {
		if strings.Trim(element, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" {
			return "", fmt.Errorf("cannot ask for %s in group %q version %q resource %q: %q cannot stand in a path", r, group, version, resource, element)
		}
	}
	var b strings.Builder
	b.Grow(len(r.Path) + len(group) + len(version) + len(resource) + len("/apis/") + 1 + len(r.Query))
	r.writePath(&b, group, version, resource)
	if r.hasQuery {
		b.WriteByte('?')
		writeQuery(&b, r.Query, term)
	}
	return b.String(), nil
}

// writePath writes the path with its elements replaced.
func (r *Request) writePath(b *strings.Builder, group, version, resource string) {
	at := &r.at
	b.WriteString(r.Path[:at.prefix.start])
	switch {
	case group == "":
		b.WriteString("api")
		b.WriteString(r.Path[at.prefix.end:r.beforeVersion()])
	case r.Prefix == "api":
		b.WriteString("apis/")
		b.WriteString(group)
		b.WriteString(r.Path[at.prefix.end:at.version.start])
	default:
		b.WriteString(r.Path[at.prefix.start:at.group.start])
		b.WriteString(group)
		b.WriteString(r.Path[at.group.end:at.version.start])
	}
	b.WriteString(version)
	b.WriteString(r.Path[at.version.end:at.resource.start])
	b.WriteString(resource)
	b.WriteString(r.Path[at.resource.end:])
}

// beforeVersion returns where the slash after "api", or after "apis" and before
// the group, ends.
func (r *Request) beforeVersion() int {
	if r.Prefix == "apis" {
		return r.at.group.start
	}
	return r.at.version.start
}

// writeQuery writes query with the terms of its field selectors replaced. The
// loop is bounded by maxQueryParameters.
func writeQuery(b *strings.Builder, query string, term fieldTerm) {
	if term == nil {
		b.WriteString(query)
		return
	}
	for i, parameter := range strings.Split(query, "&") {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(replaceFieldSelector(parameter, term))
	}
}

// replaceFieldSelector returns parameter, of a query, with the terms of its field
// selector replaced, if that is what it is.
func replaceFieldSelector(parameter string, term fieldTerm) string {
	key, value, _, ok := queryParameter(parameter)
	if !ok || key != "fieldSelector" {
		return parameter
	}
	mapped := mapFieldSelector(value, term)
	if mapped == value {
		return parameter
	}
	rawKey, _, _ := strings.Cut(parameter, "=")
	return rawKey + "=" + url.QueryEscape(mapped)
}

// mapFieldSelector returns selector, a list of path=value, path==value and
// path!=value, with its terms replaced. Commas and backslashes in values are
// escaped with a backslash; a term that is no comparison stays, for the server to
// refuse.
func mapFieldSelector(selector string, term fieldTerm) string {
	var terms []string
	start, escaped := 0, false
	for i := 0; i <= len(selector); i++ {
		switch {
		case i == len(selector) || selector[i] == ',' && !escaped:
			old := selector[start:i]
			if mapped := mapFieldTerm(old, term); mapped != "" || old == "" {
				terms = append(terms, mapped)
			}
			start, escaped = i+1, false
		case selector[i] == '\\':
			escaped = !escaped
		default:
			escaped = false
		}
	}
	return strings.Join(terms, ",")
}

func mapFieldTerm(text string, term fieldTerm) string {
	i := strings.IndexByte(text, '=')
	if i < 0 {
		return text
	}
	end := i + 1
	switch {
	case i > 0 && text[i-1] == '!':
		i--
	case end < len(text) && text[end] == '=':
		end++
	}
	if i == 0 {
		return text // compares nothing
	}
	return term(text[:i], text[i:end], text[end:])
}
