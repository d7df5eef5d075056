package engine

import (
	"net/url"
	"strings"
)

// span is a range of bytes of an escaped path.
type span struct{ start, end int }

// part is one element of a path.
type part struct {
	text string // decoded
	span        // of its escaped form
}

// pathSpans are the places of the parts that a conversion replaces.
type pathSpans struct{ prefix, group, version, resource span }

// maxParts is how many parts of a path have a meaning:
// apis/{group}/{version}/watch/namespaces/{namespace}/{resource}/{name}/{subresource}.
// What follows them is the business of the subresource.
const maxParts = 9

type parts struct {
	n    int
	part [maxParts]part
}

func (p *parts) all() []part { return p.part[:p.n] }

// splitPath splits path, whose escapes are valid, where its decoded form has
// slashes: "%2F" separates as "/" does, since kube-apiserver splits the decoded
// path. Slashes at both ends do not count.
func splitPath(path string) parts {
	start, end := 0, len(path)
	for start < end && separator(path[start:end]) > 0 {
		start += separator(path[start:end])
	}
	for start < end && trailingSeparator(path[start:end]) > 0 {
		end -= trailingSeparator(path[start:end])
	}
	var p parts
	if start == end {
		return p
	}
	for i := start; p.n < maxParts; {
		if i < end && separator(path[i:end]) == 0 {
			i++
			continue
		}
		p.part[p.n] = part{decode(path[start:i]), span{start, i}}
		p.n++
		if i == end {
			break
		}
		i += separator(path[i:end])
		start = i
	}
	return p
}

// separator returns the length of the slash that path starts with, or 0.
func separator(path string) int {
	if path[0] == '/' {
		return 1
	}
	if path[0] == '%' && len(path) >= 3 && path[1] == '2' && (path[2] == 'F' || path[2] == 'f') {
		return 3
	}
	return 0
}

// trailingSeparator returns the length of the slash that path ends with, or 0.
func trailingSeparator(path string) int {
	if path[len(path)-1] == '/' {
		return 1
	}
	if len(path) >= 3 && separator(path[len(path)-3:]) == 3 {
		return 3
	}
	return 0
}

// decode returns s, whose escapes are valid, without them.
func decode(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	decoded, _ := url.PathUnescape(s) // the whole path was decoded before
	return decoded
}
