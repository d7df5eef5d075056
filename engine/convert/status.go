package convert

import (
	"fmt"
	"strings"
)

// maxCauses bounds how many causes of a Status are looked at; kube-apiserver gives one
// for each field that is wrong.
const maxCauses = 1000

// Status appends to dst the server's metav1.Status src, in JSON, with what its message,
// its causes and its details say of fields, kinds and groups in the client's names.
// Whatever is no Status is appended as it is, and so is every byte that says nothing of
// these.
func (c *Converter) Status(dst, src []byte) []byte {
	d := newDoc()
	defer d.free()
	if len(src) > MaxAnswerObjectBytes || d.parse(src) != nil || d.kind(root) != kindObject {
		return append(dst, src...)
	}
	if m := d.find(root, "kind"); m == 0 || !d.strIs(m, "Status") {
		return append(dst, src...)
	}
	c.mapText(d, root, "message", c.clientMessage)
	if details := d.find(root, "details"); details != 0 {
		c.details(d, details)
	}
	at := d.nodes[root].val // with the edits inside it, the white space around it stays
	dst = d.appendTo(append(dst, src[:at.start]...), root)
	return append(dst, src[at.end:]...)
}

// details maps the kind that a Status is about, and its causes. A group counts with
// the kind only: a Status may be about something else.
func (c *Converter) details(d *doc, r ref) {
	from, to := &c.spec.From, &c.spec.To
	kind, group := d.find(r, "kind"), d.find(r, "group")
	sameGroup := group == 0 && to.Group == "" || group != 0 && d.strIs(group, to.Group)
	if kind != 0 && d.kind(kind) == kindString && sameGroup {
		if name, ok := to.otherName(d.str(kind), from); ok {
			if name != d.str(kind) {
				d.setString(kind, name)
			}
			if group != 0 && from.Group != to.Group {
				d.setString(group, from.Group)
			}
		}
	}
	causes := d.find(r, "causes")
	if causes == 0 || d.kind(causes) != kindArray {
		return
	}
	n := 0
	for m := d.first(causes); m != 0 && n < maxCauses; m = d.next(m) {
		c.mapText(d, m, "field", c.clientField)
		c.mapText(d, m, "message", c.ClientText)
		n++
	}
}

// otherName is what name, v's kind or resource, is called in other. It reports false for
// any other name.
func (v *Version) otherName(name string, other *Version) (string, bool) {
	switch {
	case name == "":
	case name == v.Resource:
		return other.Resource, true
	case name == v.Kind && other.Kind != "":
		return other.Kind, true
	case name == v.Kind || v.Kind == "" && strings.EqualFold(name+"s", v.Resource):
		return name, true
	}
	return "", false
}

// mapText replaces the string at key of r by what f makes of it.
func (c *Converter) mapText(d *doc, r ref, key string, f func(string) string) {
	m := d.find(r, key)
	if m == 0 || d.kind(m) != kindString {
		return
	}
	text := d.str(m)
	if mapped := f(text); mapped != text {
		d.setString(m, mapped)
	}
}

// clientMessage is ClientText for the message of a Status, which may begin with what it is
// about: `CustomResource.example.com "x" is invalid: …`, or
// `CustomResource in version "v1" cannot be handled as a CustomResource: …`.
func (c *Converter) clientMessage(text string) string {
	from, to := &c.spec.From, &c.spec.To
	kind, rest, _ := strings.Cut(text, " ")
	const unreadable = `in version "%s" cannot be handled as a %s:`
	if to.isKind(kind) {
		name, is := rekind(kind, to, from), fmt.Sprintf(unreadable, to.Version, kind)
		if after, ok := strings.CutPrefix(rest, is); ok {
			return name + " " + fmt.Sprintf(unreadable, from.Version, name) + c.ClientText(after)
		}
	}
	about, rest, found := strings.Cut(text, ` "`)
	if !found || strings.Contains(about, " ") {
		return c.ClientText(text)
	}
	name, group, _ := strings.Cut(about, ".")
	if group == to.Group {
		if mapped, ok := to.otherName(name, from); ok {
			if about = mapped; from.Group != "" {
				about += "." + from.Group
			}
		}
	}
	return about + c.ClientText(` "`+rest)
}

// clientField is ClientFieldPath for a path that may begin with a dot, as those of
// server-side apply do.
func (c *Converter) clientField(text string) string {
	path := strings.TrimPrefix(text, ".")
	return text[:len(text)-len(path)] + c.ClientFieldPath(path)
}

// ClientText returns a server's text for people, such as a Warning, with the field paths
// in it in the client's names. What stands in quotes is data and stays, but for the
// field of `unknown field "…"` and `duplicate field "…"`. A path of one element could be
// any word, and counts only where those words or a colon say that it is a field.
func (c *Converter) ClientText(text string) string {
	if !c.renamesAny() {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		end := i + 1
		switch {
		case text[i] == '"':
			end = endOfQuoted(text, i)
			b.WriteString(c.quotedText(text[:i], text[i:end]))
		case isPathByte(text[i]) || text[i] == '.':
			end = endOfPath(text, i)
			b.WriteString(c.bareText(text[i:end], text[end:]))
		default:
			b.WriteByte(text[i])
		}
		i = end
	}
	return b.String()
}

func (c *Converter) renamesAny() bool {
	for _, s := range c.steps {
		if s.renames() {
			return true
		}
	}
	return false
}

// quotedText maps a string in quotes that follows before.
func (c *Converter) quotedText(before, quoted string) string {
	whole := len(quoted) > 1 && quoted[len(quoted)-1] == '"'
	if !whole || !strings.HasSuffix(before, "unknown field ") && !strings.HasSuffix(before, "duplicate field ") {
		return quoted
	}
	return `"` + c.clientField(quoted[1:len(quoted)-1]) + `"`
}

// bareText maps what may be a path, which after follows.
func (c *Converter) bareText(token, after string) string {
	path := strings.TrimRight(token, ".")
	if !strings.ContainsAny(strings.TrimPrefix(path, "."), ".[") && !strings.HasPrefix(after, ":") {
		return token
	}
	return c.clientField(path) + token[len(path):]
}

// endOfQuoted returns where the string that begins with the quote at i ends.
func endOfQuoted(text string, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// maxBracket is how far the end of a bracket is looked for, so that a text of brackets that
// nobody closes costs no more than its length; the keys of an item are shorter.
const maxBracket = 512

// endOfPath returns where the name or path at i ends. What stands in brackets is part
// of it: an index, a key, or [name="x"].
func endOfPath(text string, i int) int {
	for ; i < len(text); i++ {
		if text[i] == '[' {
			n := strings.IndexByte(text[i:min(len(text), i+maxBracket)], ']')
			if n < 0 {
				return i
			}
			i += n
			continue
		}
		if !isPathByte(text[i]) && text[i] != '.' {
			return i
		}
	}
	return i
}

func isPathByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '$' || c == '/'
}
