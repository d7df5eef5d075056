package convert

import (
	"fmt"
	"strings"
)

// elem is one element of a path: a key, or every item of an array.
type elem struct {
	key  string
	each bool
}

// path is where fields are in an object.
type path []elem

func (p path) String() string {
	var b strings.Builder
	for _, e := range p {
		appendElem(&b, e, -1)
	}
	return b.String()
}

// appendElem writes e as it stands after what b holds; [*] as [index] unless
// index is negative.
func appendElem(b *strings.Builder, e elem, index int) {
	switch {
	case e.each && index >= 0:
		fmt.Fprintf(b, "[%d]", index)
	case e.each:
		b.WriteString("[*]")
	case isPlainKey(e.key):
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(e.key)
	case strings.Contains(e.key, `"`):
		b.WriteString("['" + e.key + "']")
	default:
		b.WriteString(`["` + e.key + `"]`)
	}
}

// isPlainKey reports whether key can stand in a path without brackets.
func isPlainKey(key string) bool {
	return key != "" && !strings.ContainsAny(key, ".[]\"'*/ \t\r\n")
}

// split divides p after its last [*]: what leads to the items, and the keys
// below an item. Without a [*] the item is the object itself.
func (p path) split() (base path, keys []string) {
	cut := 0
	for i, e := range p {
		if e.each {
			cut = i + 1
		}
	}
	for _, e := range p[cut:] {
		keys = append(keys, e.key)
	}
	return p[:cut:cut], keys
}

// hasPrefix reports whether p starts with prefix.
func (p path) hasPrefix(prefix path) bool {
	return len(p) >= len(prefix) && p[:len(prefix)].equal(prefix)
}

func (p path) equal(q path) bool {
	if len(p) != len(q) {
		return false
	}
	for i := range p {
		if p[i] != q[i] {
			return false
		}
	}
	return true
}

// schemaPath is p in the form that [Schema] wants.
func (p path) schemaPath() []string {
	s := make([]string, len(p))
	for i, e := range p {
		if s[i] = e.key; e.each {
			s[i] = "*"
		}
	}
	return s
}

// pathError is a mistake in a path.
type pathError struct {
	path   string
	offset int // of the mistake, from 0
	msg    string
}

func (e *pathError) Error() string {
	return fmt.Sprintf("bad path %q at character %d: %s", e.path, e.offset+1, e.msg)
}

// parsePath reads a rule's path. Its error is a *pathError.
func parsePath(text string) (path, error) {
	fail := func(offset int, msg string) (path, error) {
		return nil, &pathError{text, offset, msg}
	}
	if text == "" {
		return fail(0, "it is empty")
	}
	switch {
	case text[0] == '/':
		return fail(0, "a path starts with a field's name, and dots are between the names, as in spec.a")
	case strings.HasPrefix(text, "$.") || strings.HasPrefix(text, "$["):
		return fail(0, "a path starts with a field's name, without $")
	}
	var p path
	for i := 0; i < len(text); {
		start := i
		var e elem
		var msg string
		switch {
		case text[i] == '[':
			e, i, msg = parseBracket(text, i)
		case text[i] == '.' && i == 0:
			return fail(i, "a path starts with a field's name, without a dot")
		default:
			if text[i] == '.' {
				i++
			} else if i > 0 {
				return fail(i, `a "." or "[" is wanted here`)
			}
			e, i, msg = parseKey(text, i)
		}
		if msg != "" {
			return fail(i, msg)
		}
		if p = append(p, e); len(p) > MaxPathElements {
			return fail(start, fmt.Sprintf("more than %d elements", MaxPathElements))
		}
	}
	if p[0].each {
		return fail(0, "an object has no items; start with a field's name")
	}
	return p, nil
}

// parseKey reads a plain name at text[i]. It returns the position after it, or
// that of the mistake and what it is.
func parseKey(text string, i int) (elem, int, string) {
	end := i
	for end < len(text) && text[end] != '.' && text[end] != '[' {
		if strings.IndexByte("]\"'* \t\r\n", text[end]) >= 0 {
			return elem{}, end, `a name with such a character stands in brackets: ["name"]`
		}
		end++
	}
	if end == i {
		return elem{}, i, "a field's name is missing"
	}
	return elem{key: text[i:end]}, end, ""
}

// parseBracket reads [*] or ["key"] at text[i], like parseKey.
func parseBracket(text string, i int) (elem, int, string) {
	const wanted = `wanted [*] for all items of a list, or ["key"]`
	if strings.HasPrefix(text[i:], "[*]") {
		return elem{each: true}, i + 3, ""
	}
	if i+1 >= len(text) || (text[i+1] != '"' && text[i+1] != '\'') {
		return elem{}, i, wanted
	}
	quote := text[i+1]
	n := strings.IndexByte(text[i+2:], quote)
	if n < 0 {
		return elem{}, i + 1, "the quote is not closed"
	}
	end := i + 2 + n
	if end+1 >= len(text) || text[end+1] != ']' {
		return elem{}, end, `a "]" is wanted after the key`
	}
	if n == 0 {
		return elem{}, i, "the key is empty"
	}
	return elem{key: text[i+2 : end]}, end + 2, ""
}
