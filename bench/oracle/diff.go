package oracle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Difference is a place at which two documents are not the same.
type Difference struct {
	Path      string // spec.rules[2].host; "" is the whole document
	Got, Want string // in JSON; "nothing" where there is no value
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: got %s, want %s", cmp.Or(d.Path, "the document"), clip(d.Got), clip(d.Want))
}

// clip cuts s to what fits on a line.
func clip(s string) string {
	const most = 160
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Pattern is d's path without the indexes of lists: spec.rules[].host.
func (d Difference) Pattern() string { return Pattern(d.Path) }

// Pattern is path without the indexes of lists.
func Pattern(path string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(path, "[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		index, rest, _ := strings.Cut(after, "]")
		if _, err := strconv.Atoi(index); err == nil {
			index = ""
		}
		b.WriteString("[" + index + "]")
		path = rest
	}
}

// Diff returns where the JSON documents got and want differ. Neither the order of an
// object's keys nor spaces nor how a string is escaped count; how a number is written
// does, and so does whether a field is absent or null.
func Diff(got, want []byte) ([]Difference, error) {
	if bytes.Equal(got, want) {
		return nil, nil
	}
	a, err := decode(got)
	if err != nil {
		return nil, err
	}
	b, err := decode(want)
	if err != nil {
		return nil, err
	}
	var found []Difference
	diff("", a, b, &found)
	return found, nil
}

func decode(document []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", clip(string(document)), err)
	}
	return value, nil
}

// none stands for a value that is not there.
type none struct{}

func diff(path string, got, want any, found *[]Difference) {
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			diffObjects(path, got, want, found)
			return
		}
	case []any:
		if got, ok := got.([]any); ok && len(got) == len(want) {
			for i := range want {
				diff(path+"["+strconv.Itoa(i)+"]", got[i], want[i], found)
			}
			return
		}
	default:
		if got == want {
			return
		}
	}
	*found = append(*found, Difference{Path: path, Got: show(got), Want: show(want)})
}

func diffObjects(path string, got, want map[string]any, found *[]Difference) {
	all := maps.Clone(got)
	maps.Copy(all, want)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		below := path + "[" + strconv.Quote(key) + "]"
		if plain(key) {
			below = strings.TrimPrefix(path+"."+key, ".")
		}
		diff(below, valueOr(got, key), valueOr(want, key), found)
	}
}

func valueOr(object map[string]any, key string) any {
	if value, ok := object[key]; ok {
		return value
	}
	return none{}
}

// plain reports whether key is written without quotes in a path.
func plain(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

func show(value any) string {
	if value == (none{}) {
		return "nothing"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
