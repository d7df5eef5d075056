package engine

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// WithVersion returns the target of the same request under another group,
// version and resource. Only these elements of the path are replaced; every
// other byte of path and query stays as it was sent. The core group is /api/v1,
// every other one /apis/{group}/{version}.
//
// The paths of a field selector go through field, which returns the path to use
// instead; a nil field keeps them. A field selector with another path is written
// anew, as one escaped value.
//
// The error says that the request is for no resource, or that an element cannot
// stand in a path.
func (r *Request) WithVersion(group, version, resource string, field func(path string) string) (string, error) {
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
		writeQuery(&b, r.Query, field)
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

// writeQuery writes query with the paths of its field selectors replaced. The
// loop is bounded by maxQueryParameters.
func writeQuery(b *strings.Builder, query string, field func(path string) string) {
	if field == nil {
		b.WriteString(query)
		return
	}
	for i, parameter := range strings.Split(query, "&") {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(replaceFieldSelector(parameter, field))
	}
}

// replaceFieldSelector returns parameter, of a query, with the paths of its field
// selector replaced, if that is what it is.
func replaceFieldSelector(parameter string, field func(path string) string) string {
	key, value, _, ok := queryParameter(parameter)
	if !ok || key != "fieldSelector" {
		return parameter
	}
	mapped := mapFieldSelector(value, field)
	if mapped == value {
		return parameter
	}
	rawKey, _, _ := strings.Cut(parameter, "=")
	return rawKey + "=" + url.QueryEscape(mapped)
}

// mapFieldSelector returns selector, a list of path=value, path==value and
// path!=value, with its paths replaced. Commas and backslashes in values are
// escaped with a backslash; a term that is no comparison stays, for the server to
// refuse.
func mapFieldSelector(selector string, field func(path string) string) string {
	var b strings.Builder
	start, escaped := 0, false
	for i := 0; i <= len(selector); i++ {
		switch {
		case i == len(selector) || selector[i] == ',' && !escaped:
			b.WriteString(mapFieldTerm(selector[start:i], field))
			if i < len(selector) {
				b.WriteByte(',')
			}
			start, escaped = i+1, false
		case selector[i] == '\\':
			escaped = !escaped
		default:
			escaped = false
		}
	}
	return b.String()
}

func mapFieldTerm(term string, field func(path string) string) string {
	i := strings.IndexByte(term, '=')
	if i < 0 {
		return term
	}
	if i > 0 && term[i-1] == '!' {
		i--
	}
	if i == 0 {
		return term // compares nothing
	}
	return field(term[:i]) + term[i:]
}
