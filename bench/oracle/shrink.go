package oracle

import (
	"encoding/json"
	"maps"
	"slices"
)

// maxTries bounds how often Shrink asks.
const maxTries = 1000

// Shrink takes out of the JSON object document whatever can go while holds stays
// true. holds is true of document.
func Shrink(document []byte, holds func([]byte) bool) []byte {
	root, err := decode(document)
	if err != nil {
		return document
	}
	s := &shrinker{root: root, best: document, holds: holds}
	for before := 0; before != len(s.best); {
		before = len(s.best)
		s.value(root)
	}
	return s.best
}

type shrinker struct {
	root  any
	best  []byte
	holds func([]byte) bool
	tries int
}

// value takes out what can go of value, which is somewhere in the document.
func (s *shrinker) value(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			s.member(value, key)
		}
	case []any:
		for i := range value {
			s.replaceItem(value, i)
		}
	}
}

func (s *shrinker) member(object map[string]any, key string) {
	value := object[key]
	delete(object, key)
	if s.try() {
		return
	}
	object[key] = value
	if list, ok := value.([]any); ok {
		for i := len(list) - 1; i >= 0 && len(list) > 1; i-- {
			object[key] = slices.Delete(slices.Clone(list), i, i+1)
			if s.try() {
				list = object[key].([]any)
			}
		}
		object[key] = list
	}
	s.simplify(value, func(v any) { object[key] = v })
	s.value(object[key])
}

func (s *shrinker) replaceItem(list []any, i int) {
	s.simplify(list[i], func(v any) { list[i] = v })
	s.value(list[i])
}

// simplify puts the simplest string in place of a longer one.
func (s *shrinker) simplify(value any, set func(any)) {
	text, ok := value.(string)
	if !ok || text == "x" || text == "" {
		return
	}
	if set("x"); !s.try() {
		set(value)
	}
}

// try reports whether what the document has become will do, and notes it.
func (s *shrinker) try() bool {
	if s.tries++; s.tries > maxTries {
		return false
	}
	document, err := json.Marshal(s.root)
	if err != nil || !s.holds(document) {
		return false
	}
	s.best = document
	return true
}
