package roundtrip

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"unicode/utf8"
)

// maxTries bounds how many smaller objects are tried for one failure: some seconds.
const maxTries = 5000

// Smallest returns the failure of the smallest object that fails as f does: without the
// fields and items that it does not need, with short texts and small numbers. allowed
// says whether an object is one that there can be; nil: all are.
func (t *Trip) Smallest(f *Failure, allowed func(object []byte) bool) *Failure {
	decoder := json.NewDecoder(bytes.NewReader(f.Object))
	decoder.UseNumber()
	s := shrinker{trip: t, smallest: f, allowed: allowed}
	if decoder.Decode(&s.object) != nil || !s.fails() {
		return f // it is the spelling that counts
	}
	for s.shrink(s.object, nil, true) {
	}
	return s.smallest
}

// shrinker makes an object smaller in place as long as it fails.
type shrinker struct {
	trip     *Trip
	object   map[string]any
	smallest *Failure
	allowed  func([]byte) bool
	tried    int
}

// fails reports whether the object, as it is now, fails in the same way.
func (s *shrinker) fails() bool {
	if s.tried++; s.tried > maxTries {
		return false
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(s.object) != nil {
		return false
	}
	object := bytes.TrimSpace(text.Bytes())
	if s.allowed != nil && !s.allowed(object) {
		return false
	}
	f, _, err := s.trip.Check(s.smallest.Side, object)
	if err != nil || f == nil || (f.Err == nil) != (s.smallest.Err == nil) {
		return false
	}
	s.smallest = f
	return true
}

// shrink makes value smaller; put puts another one in its place. It reports whether it
// did. whole is true for the object itself, which keeps its version and kind.
func (s *shrinker) shrink(value any, put func(any), whole bool) bool {
	switch value := value.(type) {
	case map[string]any:
		return s.members(value, whole)
	case []any:
		return s.items(value, put)
	}
	for _, simpler := range simplerThan(value) {
		if put(simpler); s.fails() {
			return true
		}
	}
	if put != nil {
		put(value)
	}
	return false
}

func (s *shrinker) members(object map[string]any, whole bool) bool {
	smaller := false
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if whole && (key == "apiVersion" || key == "kind") {
			continue
		}
		member := object[key]
		delete(object, key)
		if s.fails() {
			smaller = true
			continue
		}
		object[key] = member
		smaller = s.shrink(member, func(v any) { object[key] = v }, false) || smaller
	}
	return smaller
}

func (s *shrinker) items(list []any, put func(any)) bool {
	smaller := false
	for i := len(list) - 1; i >= 0; i-- {
		without := slices.Delete(slices.Clone(list), i, i+1)
		if put(without); s.fails() {
			list, smaller = without, true
			continue
		}
		put(list)
	}
	for i := range list {
		smaller = s.shrink(list[i], func(v any) { list[i] = v }, false) || smaller
	}
	return smaller
}

// simplerThan are values to try in the place of value, the simplest first. Each is
// simpler, so that trying comes to an end.
func simplerThan(value any) []any {
	switch value := value.(type) {
	case string:
		return simplerTexts(value)
	case json.Number:
		return simplerNumbers(value)
	case bool:
		if value {
			return []any{false}
		}
	}
	return nil
}

func simplerTexts(text string) []any {
	var all []any
	for _, simpler := range []string{"", "a", text[:half(text)], text[half(text):]} {
		if len(simpler) < len(text) && (simpler != "a" || text != "") {
			all = append(all, simpler)
		}
	}
	return all
}

// half is where the second half of text begins.
func half(text string) int {
	i := len(text) / 2
	for i > 0 && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}

func simplerNumbers(number json.Number) []any {
	value, ok := new(big.Float).SetString(number.String())
	if !ok {
		return nil
	}
	size := new(big.Float).Abs(value)
	halved, _ := new(big.Float).Quo(value, big.NewFloat(2)).Int(nil)
	var all []any
	for _, simpler := range []json.Number{"0", "1", json.Number(halved.String())} {
		f, _ := new(big.Float).SetString(simpler.String())
		if f.Abs(f).Cmp(size) < 0 {
			all = append(all, simpler)
		}
	}
	return all
}
