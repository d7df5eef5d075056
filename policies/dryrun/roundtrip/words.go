package roundtrip

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// texts are those that a jq program writes out, without such as have others in them.
var texts = regexp.MustCompile(`"(?:[^"\\]|\\["\\/bfnrtu])*"`)

// Words are the texts that the conversion looks for in objects of the side: those that a
// random object would never have, and without which most of a policy is not reached. What
// it writes into objects of the side is not among them, since that is of the other
// version.
func (t *Trip) Words(side Side) []string {
	dir := convert.ToServer
	if side == Server {
		dir = convert.ToClient
	}
	var words []string
	add := func(text []byte) {
		var word string
		if json.Unmarshal(text, &word) == nil && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	for _, rule := range t.c.Rules() {
		if side == Server && rule.Match != nil {
			add(rule.Replace)
		} else if side == Client {
			add(rule.Match)
		}
	}
	for _, p := range t.c.Programs() {
		if p.Direction != dir {
			continue
		}
		for _, text := range texts.FindAllString(p.Text.Code, -1) {
			add([]byte(text))
		}
	}
	return words
}

// numerals are texts, in JSON, that can be made a value of the type.
var numerals = map[convert.Type][]string{
	convert.TypeInteger: {`"0"`, `"1"`, `"30"`, `"-7"`, `"2147483648"`},
	convert.TypeNumber:  {`"0"`, `"1"`, `"0.5"`, `"-7"`},
	convert.TypeBoolean: {`"true"`, `"false"`},
}

// Values are what fields of the client's version have, by their name, that are texts and
// that a rule makes something else of: of most texts nothing can be made.
func (t *Trip) Values() map[string][]string {
	values := map[string][]string{}
	for _, rule := range t.c.Rules() {
		if pool := numerals[rule.Type]; pool != nil && rule.ClientType == convert.TypeString {
			values[rule.Path[strings.LastIndexByte(rule.Path, '.')+1:]] = pool
		}
	}
	return values
}
