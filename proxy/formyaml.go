package proxy

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// writeYAML writes the document that r has in JSON in YAML, as it is read: keys keep
// their order and numbers their digits.
func writeYAML(w io.Writer, r io.Reader) error {
	y := yamlWriter{in: json.NewDecoder(r), out: bufio.NewWriterSize(w, copyBuffer), inline: true}
	y.in.UseNumber()
	if err := y.value(-1, false, 0); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, r); err != nil { // errors of what comes behind
		return err
	}
	return y.out.Flush()
}

// yamlWriter writes block style: a member or item a line, sequences not indented.
// An error of out stays with it until Flush.
type yamlWriter struct {
	in     *json.Decoder
	out    *bufio.Writer
	inline bool // the next member or item begins where the line is
}

var errYAMLDepth = fmt.Errorf("cannot write the answer in YAML: it nests deeper than %d levels", convert.MaxDepth)

// value writes the next value of the input, which is in a collection of that indent:
// a member's, behind its key, or an item.
func (y *yamlWriter) value(indent int, member bool, depth int) error {
	if depth > convert.MaxDepth {
		return errYAMLDepth
	}
	token, err := y.in.Token()
	if err != nil {
		return inside(err)
	}
	open, collection := token.(json.Delim)
	switch {
	case !collection:
		y.scalar(member, scalarYAML(token))
		return nil
	case !y.in.More():
		y.scalar(member, map[json.Delim]string{'{': "{}", '[': "[]"}[open])
	case open == '{':
		y.begin(member)
		err = y.mapping(indent+1, depth+1)
	case member:
		y.begin(member)
		err = y.sequence(indent, depth+1)
	default:
		y.begin(member)
		err = y.sequence(indent+1, depth+1)
	}
	if err != nil {
		return err
	}
	_, err = y.in.Token()
	return inside(err)
}

// maxPlainKey is the length in bytes from which on a key is said to be one ("? key"):
// YAML knows one by the colon behind it within 1024 characters only.
const maxPlainKey = 512

func (y *yamlWriter) mapping(indent, depth int) error {
	for y.in.More() {
		key, err := y.in.Token()
		if err != nil {
			return inside(err)
		}
		text := scalarYAML(key)
		if len(text) > maxPlainKey {
			y.line(indent, "? "+text+"\n")
			text = ""
		}
		y.line(indent, text+":")
		if err := y.value(indent, true, depth); err != nil {
			return err
		}
	}
	return nil
}

func (y *yamlWriter) sequence(indent, depth int) error {
	for y.in.More() {
		y.line(indent, "- ")
		if err := y.value(indent, false, depth); err != nil {
			return err
		}
	}
	return nil
}

// inside is what it means that the input ends in a value.
func inside(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// begin goes to where a collection's first line begins.
func (y *yamlWriter) begin(member bool) {
	if member {
		y.text("\n")
	}
	y.inline = !member
}

func (y *yamlWriter) line(indent int, text string) {
	if !y.inline {
		y.text(strings.Repeat("  ", indent))
	}
	y.inline = false
	y.text(text)
}

func (y *yamlWriter) scalar(member bool, text string) {
	if member {
		y.text(" ")
	}
	y.text(text + "\n")
	y.inline = false
}

func (y *yamlWriter) text(s string) { _, _ = y.out.WriteString(s) } // Flush tells

func scalarYAML(token json.Token) string {
	switch v := token.(type) {
	case string:
		if plainYAML(v) {
			return v
		}
		return quotedYAML(v)
	case nil:
		return "null"
	}
	return fmt.Sprint(token) // a bool, or a number as it was written
}

// plainYAML reports whether a string needs no quotes with any reader of YAML: it
// begins with a letter and is neither a word that YAML 1.1 takes for something else,
// nor a number in any notation.
func plainYAML(s string) bool {
	if s == "" || s[len(s)-1] == ' ' {
		return false
	}
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "infinity":
		return false
	}
	for i, c := range []byte(s) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || !(c >= '0' && c <= '9') && !strings.ContainsRune("._-/ ", rune(c))) {
			return false
		}
	}
	return true
}

// quotedYAML is a string in double quotes. Their escapes are those of JSON and more.
func quotedYAML(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"', c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c > 0xffff && !unicode.IsPrint(c):
			fmt.Fprintf(&b, `\U%08x`, c)
		case !unicode.IsPrint(c):
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
