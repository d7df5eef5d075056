package convert

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestDifferences(t *testing.T) {
	f := func(before, after, want string) {
		t.Helper()
		got, err := Differences([]byte(before), []byte(after), 20)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("of %s and %s: %q, %v, want %q", before, after, got, err, want)
		}
	}

	f(`{"a":1,"b":{"c":[1,{"d":"x"}]}}`, `{"b":{"c":[1.0,{"d":"x"}]},"a":1}`, "")
	f(`{"a":1,"b":2}`, `{"b":3,"c":4}`, "a b c")
	f(`{"spec":{"l":[{"n":"x"},{"n":"y"}]}}`, `{"spec":{"l":[{"n":"x"},{"n":"z","m":null}]}}`, "spec.l[1].n spec.l[1].m")
	f(`{"spec":{"l":[1,2]}}`, `{"spec":{"l":[1]}}`, "spec.l")
	f(`{"a":null}`, `{}`, "a")
	f(`{"a":{"b":1}}`, `{"a":[1]}`, "a")
	f(`{"metadata":{"labels":{"a.b/c":"x"}}}`, `{"metadata":{"labels":{"a.b/c":"y"}}}`, `metadata.labels["a.b/c"]`)
	f(`[{"op":"add","path":"/a"}]`, `[{"op":"add","path":"/b"}]`, "[0].path")
	f(`{}`, `[]`, ".")
	f(`{"`+strings.Repeat("k", 500)+`":1}`, `{}`, strings.Repeat("k", 64)+"…")

	deep := func(leaf string) string {
		return strings.Repeat(`{"a":`, MaxDepth/2) + leaf + strings.Repeat(`}`, MaxDepth/2)
	}
	f(deep("1"), deep("2"), strings.TrimSuffix(strings.Repeat("a.", MaxPathElements), "."))

	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, `,"k%d":1`, i)
	}
	if got, err := Differences([]byte(`{"a":1`+many.String()+`}`), []byte(`{}`), 3); err != nil || strings.Join(got, " ") != "a k0 k1" {
		t.Errorf("of more than the limit: %q, %v", got, err)
	}
	if _, err := Differences([]byte(`{`), []byte(`{}`), 3); err == nil || !strings.Contains(err.Error(), "at byte 2") {
		t.Errorf("of no JSON: %v", err)
	}
}

// Two texts have no differences where encoding/json decodes the same from them.
func FuzzDifferences(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":null}],"c":"x"}`), []byte(`{"a":[1,{"b":1}],"c":"x"}`))
	f.Add([]byte(`{"a":1}`), []byte(`{ "a" : 1 }`))
	f.Add([]byte(`{"a":{"a":[[]]}}`), []byte(`{"a":{"a":[{}]}}`))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		paths, err := Differences(before, after, 20)
		var a, b any
		if err != nil || json.Unmarshal(before, &a) != nil || json.Unmarshal(after, &b) != nil || hasNumberOrEscape(before) || hasNumberOrEscape(after) {
			return // numbers are compared by value to every digit, which encoding/json does not keep
		}
		if same := reflect.DeepEqual(a, b); same != (len(paths) == 0) || len(paths) > 20 {
			t.Errorf("of %s and %s: %q", before, after, paths)
		}
	})
}

// hasNumberOrEscape reports what this package and encoding/json do not read alike.
func hasNumberOrEscape(text []byte) bool {
	for _, c := range text {
		if c >= '0' && c <= '9' || c == '\\' || c >= 0x80 {
			return true
		}
	}
	return false
}
