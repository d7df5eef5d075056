package proxy_test

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// sameJSON compares two documents by their values; numbers by their digits.
func sameJSON(a, b string) bool {
	decode := func(s string) (v any, ok bool) {
		if s == "" {
			return nil, true
		}
		d := json.NewDecoder(bytes.NewReader([]byte(s)))
		d.UseNumber()
		return v, d.Decode(&v) == nil
	}
	x, okX := decode(a)
	y, okY := decode(b)
	return okX && okY && reflect.DeepEqual(x, y)
}
