package policies

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// yamlObject is a map of a YAML file while its fields are taken out. Every field
// that was asked for is known; done reports the others. So a field cannot be
// known without being read.
type yamlObject struct {
	f      *yamlFile
	what   string // for messages: "the transformation"
	node   *yaml.Node
	fields []yamlField
	asked  []string
}

type yamlField struct {
	name       string
	key, value *yaml.Node
	taken      bool
}

// object returns the map that node is. Its keys are strings and differ.
func (f *yamlFile) object(what string, node *yaml.Node) (*yamlObject, bool) {
	value := deref(node)
	if value.Kind != yaml.MappingNode {
		f.fail(node, "%s is %s: it must be a map", what, describe(value))
		return nil, false
	}
	o := &yamlObject{f: f, what: what, node: value}
	first := make(map[string]int, len(value.Content)/2) // the line of each key
	for i := 0; i+1 < len(value.Content); i += 2 {
		key := value.Content[i]
		if key.ShortTag() == "!!merge" {
			f.fail(key, `"<<" is not read, since not every YAML reader merges maps: write the fields out`)
			return nil, false
		}
		name, ok := f.str("the key", key)
		if !ok {
			continue
		}
		if line, twice := first[name]; twice {
			f.fail(key, "%s is given twice, first in line %d", source.Quote(name), line)
			continue
		}
		first[name] = key.Line
		o.fields = append(o.fields, yamlField{name: name, key: key, value: value.Content[i+1]})
	}
	return o, true
}

// pos is the place of the map: its first key.
func (o *yamlObject) pos() source.Pos { return o.f.pos(o.node) }

// take returns the value of a field, nil when it is absent.
func (o *yamlObject) take(name string) *yaml.Node {
	if !slices.Contains(o.asked, name) {
		o.asked = append(o.asked, name)
	}
	for i := range o.fields {
		if o.fields[i].name == name {
			o.fields[i].taken = true
			return o.fields[i].value
		}
	}
	return nil
}

// given is take for fields where null is the same as nothing.
func (o *yamlObject) given(name string) *yaml.Node {
	node := o.take(name)
	if node == nil || isNull(node) {
		return nil
	}
	return node
}

// ignore makes names known fields whose values do not matter here.
func (o *yamlObject) ignore(names ...string) {
	for _, name := range names {
		o.take(name)
	}
}

// optional returns the string in a field, "" when it is absent.
func (o *yamlObject) optional(name string) string {
	node := o.given(name)
	if node == nil {
		return ""
	}
	s, _ := o.f.str(name, node)
	return s
}

// word returns the string in a field that may be absent; ok is false when it is, or
// holds something else, which is noted.
func (o *yamlObject) word(name string) (s string, ok bool) {
	node := o.given(name)
	if node == nil {
		return "", false
	}
	return o.f.str(name, node)
}

// required returns the string in a field. hint ends the message when it is
// missing.
func (o *yamlObject) required(name, hint string) (s string, ok bool) {
	node := o.given(name)
	if node == nil {
		o.f.failAt(o.pos(), "%s has no %s%s", o.what, name, hint)
		return "", false
	}
	return o.f.str(name, node)
}

// text returns the expression or program in a field, nil when it is absent.
func (o *yamlObject) text(name string) *source.Text {
	node := o.given(name)
	if node == nil {
		return nil
	}
	s, ok := o.f.str(name, node)
	if !ok {
		return nil
	}
	if isBlank(s) {
		o.f.fail(node, "%s is empty", name)
		return nil
	}
	return o.f.text(node)
}

// list returns the items of a field, none when it is absent.
func (o *yamlObject) list(name string) []*yaml.Node {
	node := o.given(name)
	if node == nil {
		return nil
	}
	value := deref(node)
	if value.Kind != yaml.SequenceNode {
		o.f.fail(node, "%s is %s: it must be a list", name, describe(value))
		return nil
	}
	return value.Content
}

// strings returns the strings in the list of a field.
func (o *yamlObject) strings(name string) []string {
	var list []string
	for _, item := range o.list(name) {
		if s, ok := o.f.str("an item of "+name, item); ok {
			list = append(list, s)
		}
	}
	return list
}

// value returns the JSON value in a field; has says whether the field is there.
func (o *yamlObject) value(name string) (v any, has bool) {
	node := o.take(name)
	if node == nil {
		return nil, false
	}
	v, ok := o.f.value(node, 0)
	return v, ok
}

// valuePos returns the place of a field's value, that of the map when it is absent.
func (o *yamlObject) valuePos(name string) source.Pos {
	if node := o.take(name); node != nil {
		return o.f.pos(node)
	}
	return o.pos()
}

// fieldPos returns the places of the values of all fields, by their names, and
// those of the items of the field list, by "name[index]".
func (o *yamlObject) fieldPos(list string) map[string]source.Pos {
	places := make(map[string]source.Pos, len(o.fields))
	for _, field := range o.fields {
		places[field.name] = o.f.pos(field.value)
		if value := deref(field.value); field.name == list && value.Kind == yaml.SequenceNode {
			for i, item := range value.Content {
				places[fmt.Sprintf("%s[%d]", list, i)] = o.f.pos(item)
			}
		}
	}
	return places
}

// fail notes a mistake at the value of a field.
func (o *yamlObject) fail(name, format string, args ...any) {
	o.f.failAt(o.valuePos(name), format, args...)
}

// done notes the fields that nothing asked for.
func (o *yamlObject) done() {
	for _, field := range o.fields {
		if !field.taken {
			o.f.fail(field.key, "%s has an unknown field %s%s", o.what, source.Quote(field.name), source.Suggest(field.name, o.asked))
		}
	}
}
