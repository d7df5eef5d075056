package engine

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
)

func TestDecodeObject(t *testing.T) {
	f := func(body string, want any) {
		t.Helper()
		got, err := decodeObject([]byte(body))
		if err != nil {
			got = err.Error()
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("decodeObject(%s)\n got %#v\nwant %#v", body, got, want)
		}
	}
	f(`{"a":[1,-1,0.5,1e3,1.0,-0]}`, map[string]any{"a": []any{int64(1), int64(-1), 0.5, int64(1000), int64(1), int64(0)}})
	f(`9223372036854775807`, int64(math.MaxInt64))
	f(`9223372036854775808`, float64(math.MaxInt64))
	f(`1e300`, 1e300)
	f(`1e999`, math.Inf(1))
	f(`null`, nil)
	f(`{"a":{"b":1,"c":[{"b":2},{"b":"b"}]},"b":{"a":"a"}}`, map[string]any{
		"a": map[string]any{"b": int64(1), "c": []any{map[string]any{"b": int64(2)}, map[string]any{"b": "b"}}},
		"b": map[string]any{"a": "a"},
	})
	const twice = " stands twice in one object, which readers understand differently"
	f(`{"a":1,"a":2}`, `the key "a"`+twice)
	f(`{"a":[{"b":{"c":1}},{"b":{"c":1,"\u0063":2}}]}`, `the key "c"`+twice)
	f(`{"a":{"x":1},"b":[],"a":{"y":1}}`, `the key "a"`+twice)
	f(``, "unexpected EOF")
	f(`{"a":`, "unexpected EOF")
	f(`{} {}`, "there is more after the first value")
	f(`{}}`, "there is more after the first value")
	f(`[01]`, "invalid character '1' after array element")
}

// FuzzDecodeObject holds the decoder against encoding/json.
func FuzzDecodeObject(f *testing.F) {
	for _, body := range []string{`{"a":[1,0.5,1e3,null,true,"x"]}`, `{} {}`, `[`, `1e999`, ` 1 `} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decodeObject(body)
		if (err == nil) != json.Valid(body) {
			t.Fatalf("decodeObject(%q): %v, encoding/json says valid %v", body, err, json.Valid(body))
		}
		var want any
		if err != nil || json.Unmarshal(body, &want) != nil {
			return // encoding/json refuses numbers that are out of range
		}
		if got := withFloats(got); !reflect.DeepEqual(got, want) {
			t.Errorf("decodeObject(%q)\n got %#v\nwant %#v", body, got, want)
		}
	})
}

// withFloats returns value as encoding/json decodes it.
func withFloats(value any) any {
	switch value := value.(type) {
	case int64:
		return float64(value)
	case []any:
		for i := range value {
			value[i] = withFloats(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = withFloats(value[key])
		}
	}
	return value
}
