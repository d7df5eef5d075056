package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
)

// decodeObject decodes a body for expressions. Numbers become int64 when they
// are integral and fit, so that object.spec.replicas == 3 and % work on them, else
// float64. Neither its depth nor its size is bounded here: encoding/json stops at
// 10,000 levels, and whoever reads the body bounds its size.
func decodeObject(body []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var object any
	if err := decoder.Decode(&object); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the first value")
	}
	return withNumbers(object), nil
}

// withNumbers returns value with its json.Numbers replaced, in place where it
// can. Its recursion is as deep as the decoder's was.
func withNumbers(value any) any {
	switch value := value.(type) {
	case json.Number:
		return number(value)
	case []any:
		for i, item := range value {
			value[i] = withNumbers(item)
		}
	case map[string]any:
		for key, member := range value {
			value[key] = withNumbers(member)
		}
	}
	return value
}

// maxExactFloat is where float64 stops to tell integers apart.
const maxExactFloat = 1 << 53

func number(n json.Number) any {
	if i, err := n.Int64(); err == nil {
		return i
	}
	f, _ := n.Float64() // out of range is ±Inf, which compares as it should
	if f == math.Trunc(f) && math.Abs(f) <= maxExactFloat {
		return int64(f)
	}
	return f
}
