package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/mixed-version-proxy/mvp/engine/source"
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
	if key, found := duplicateKey(body); found {
		return nil, fmt.Errorf("the key %s stands twice in one object, which readers understand differently", source.Quote(key))
	}
	return withNumbers(object), nil
}

// duplicateKey finds a key that stands twice in one object of the checked JSON
// body. encoding/json takes the last of them; kube-apiserver merges what
// Kubernetes' own kinds have there, so that what an expression sees would not be
// what is stored.
func duplicateKey(body []byte) (key string, found bool) {
	type level struct {
		keys map[string]bool // nil: an array
		name bool            // the next string is a key
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var open []level
	for {
		token, err := decoder.Token()
		if err != nil {
			return "", false
		}
		top := len(open) - 1
		switch token {
		case json.Delim('{'):
			open = append(open, level{map[string]bool{}, true})
			continue
		case json.Delim('['):
			open = append(open, level{})
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:top]
			top--
		default:
			if text, isText := token.(string); isText && top >= 0 && open[top].name {
				if open[top].keys[text] {
					return text, true
				}
				open[top].keys[text], open[top].name = true, false
				continue
			}
		}
		if top >= 0 && open[top].keys != nil {
			open[top].name = true
		}
	}
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
