package proxy

import (
	"fmt"
	"unicode/utf8"
)

// maxYAMLKey is how many bytes a key may have, with its quotes, without the indicator
// "?". YAML's limit is 1024 characters.
const maxYAMLKey = 1024

// jsonAsYAML gives a document in JSON, without space between its tokens, so that a
// reader of YAML finds the same in it: kube-apiserver takes server-side apply as YAML
// only. There a raw U+0085 is the end of a line, which becomes a space, other control
// characters and noncharacters are mistakes, and so are long keys without an indicator.
// A document that has none of them is returned itself.
func jsonAsYAML(doc []byte) []byte {
	y := yamlOfJSON{doc: doc}
	for i := 0; i < len(doc); i++ {
		if doc[i] == '"' {
			i = y.text(i)
		}
	}
	if y.out == nil {
		return doc
	}
	return append(y.out, doc[y.done:]...)
}

// yamlOfJSON is a document that is being rewritten.
type yamlOfJSON struct {
	doc, out []byte
	done     int // how much of doc is in out
}

func (y *yamlOfJSON) replace(from, to int, with string) {
	y.out = append(append(y.out, y.doc[y.done:from]...), with...)
	y.done = to
}

// text rewrites the string that begins at begin and returns where its end quote is.
func (y *yamlOfJSON) text(begin int) (end int) {
	end = stringEnd(y.doc, begin)
	if end-begin >= maxYAMLKey && end+1 < len(y.doc) && y.doc[end+1] == ':' {
		y.replace(begin, begin, "? ")
	}
	for i := begin; i < end; {
		r, size := utf8.DecodeRune(y.doc[i:])
		if r >= 0x7f && r < 0xa0 || r == 0xfffe || r == 0xffff {
			y.replace(i, i+size, fmt.Sprintf(`\u%04x`, r))
		}
		i += size
	}
	return end
}

// stringEnd is where the end quote of the JSON string is that begins at begin.
func stringEnd(doc []byte, begin int) int {
	for i := begin + 1; i < len(doc); i++ {
		switch doc[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(doc)
}
