package convert

import (
	"fmt"
	"strconv"
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
		var values []exchangeOf
		if field := d.find(m, "field"); field != 0 && d.kind(field) == kindString {
			values = c.valuesAt(strings.TrimPrefix(d.str(field), "."))
		}
		c.mapText(d, m, "field", c.clientField)
		c.mapText(d, m, "message", func(text string) string { return c.clientText(text, values) })
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
	const untyped = "failed to create typed patch object ("
	if about, rest, found := strings.Cut(text, "; "+to.Group+"/"+to.Version+", Kind="); found && strings.HasPrefix(about, untyped) {
		kind, rest, _ := strings.Cut(rest, ")")
		return about + "; " + from.Group + "/" + from.Version + ", Kind=" + rekind(kind, to, from) + ")" + c.ClientText(rest)
	}
	if before, found := strings.CutSuffix(text, "the expected API version ("+to.APIVersion()+")"); found {
		return before + "the expected API version (" + from.APIVersion() + ")"
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
// in it in the client's names. A path of one element could be any word, and counts only
// where a colon says that it is a field. What stands in quotes is data and stays, but for
// the field of `unknown field "…"` and `duplicate field "…"`, and for the value that a
// field has or might have, where a rule makes it of another one.
func (c *Converter) ClientText(text string) string { return c.clientText(text, nil) }

// clientText is ClientText for a text about a field with these values.
func (c *Converter) clientText(text string, values []exchangeOf) string {
	if !c.rewords() {
		return text
	}
	var b strings.Builder
	listed := -1 // where the last of the values that a field may have ended
	for i := 0; i < len(text); {
		end := i + 1
		switch {
		case text[i] == '"':
			end = endOfQuoted(text, i)
			before := text[:i]
			isListed := strings.HasSuffix(before, "supported values: ") || listed >= 0 && text[listed:i] == ", "
			if isListed || strings.HasSuffix(before, " value: ") {
				b.WriteString(clientValue(text[i:end], values))
			} else {
				b.WriteString(c.quotedText(before, text[i:end]))
			}
			listed = -1
			if isListed {
				listed = end
			}
		case isPathByte(text[i]) || text[i] == '.':
			end = endOfPath(text, i)
			if isFieldHead(text[i:end], text[end:]) {
				values = c.valuesAt(strings.TrimPrefix(text[i:end], "."))
			}
			b.WriteString(c.bareText(text[i:end], text[end:]))
		default:
			b.WriteByte(text[i])
		}
		i = end
	}
	return b.String()
}

// rewords reports whether a rule gives a field another name or value.
func (c *Converter) rewords() bool {
	for _, s := range c.steps {
		if s.renames() || s.exchange() != (exchangeOf{}) {
			return true
		}
	}
	return false
}

// exchange is what s makes of a string on the way to the client; zero: nothing else.
func (s *step) exchange() exchangeOf {
	if s.action != Modify || s.match == nil || s.replace == nil ||
		kindOf(s.match[0]) != kindString || kindOf(s.replace[0]) != kindString {
		return exchangeOf{}
	}
	return exchangeOf{from: unquoted(s.replace), to: unquoted(s.match)}
}

// valuesAt returns what becomes of the values of the server's field at path on the way to
// the client: the last step is the first to act.
func (c *Converter) valuesAt(text string) []exchangeOf {
	var values []exchangeOf
	p := splitFields(text)
	for i := len(c.steps) - 1; i >= 0; i-- {
		s := c.steps[i]
		if s.renames() {
			p.renamed(s.to, s.src, len(s.base))
			continue
		}
		if e := s.exchange(); e != (exchangeOf{}) && len(p) == len(s.from) {
			if at := p; at.renamed(s.from, nil, 0) {
				values = append(values, e)
			}
		}
	}
	return values
}

// clientValue is a value in quotes as the client knows it.
func clientValue(quoted string, values []exchangeOf) string {
	v, err := strconv.Unquote(quoted)
	if err != nil {
		return quoted
	}
	mapped := v
	for _, e := range values {
		if mapped == e.from {
			mapped = e.to
		}
	}
	if mapped == v {
		return quoted
	}
	return strconv.Quote(mapped)
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
	if !isField(token, after) {
		return token
	}
	path := strings.TrimRight(token, ".")
	return c.clientField(path) + token[len(path):]
}

// isFieldHead reports whether token is the path of the field that what follows is about,
// and not the words of such a text that have a colon, too.
func isFieldHead(token, after string) bool {
	return strings.HasPrefix(after, ":") && token != "value" && token != "values"
}

// isField reports whether token, which after follows, counts as a field's path.
func isField(token, after string) bool {
	path := strings.TrimRight(token, ".")
	return strings.ContainsAny(strings.TrimPrefix(path, "."), ".[") || strings.HasPrefix(after, ":")
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
