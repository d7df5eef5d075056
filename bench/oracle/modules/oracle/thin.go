package main

import (
	"bytes"
	"encoding/json"
	"slices"
)

// tree is an object of encoding/json's.
func tree(object []byte) (fields map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	err = d.Decode(&fields)
	return fields, err
}

// thin makes an object that lacks some of what object has, or says explicitly that
// there is nothing: clients send null, "", 0, {} and [] where others leave a field out.
func (f *generator) thin(object map[string]any) ([]byte, error) {
	f.share = []float64{0.05, 0.2, 0.5}[f.r.Intn(3)]
	thin := make(map[string]any, len(object))
	for _, name := range sortedKeys(object) {
		thin[name] = object[name]
		if name != "apiVersion" && name != "kind" {
			thin[name] = f.thinValue(object[name])
		}
	}
	return json.Marshal(thin)
}

func (f *generator) thinValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		thin := make(map[string]any, len(value))
		for _, name := range sortedKeys(value) {
			switch {
			case f.r.Float64() >= f.share:
				thin[name] = f.thinValue(value[name])
			case f.r.Intn(4) == 0:
				thin[name] = f.nothing(value[name])
			}
		}
		return thin
	case []any:
		thin := make([]any, len(value))
		for i := range value {
			thin[i] = f.thinValue(value[i])
		}
		return thin
	}
	return value
}

// nothing is a value that says that there is none like value.
func (f *generator) nothing(value any) any {
	if f.r.Intn(3) == 0 {
		return nil
	}
	switch value.(type) {
	case map[string]any:
		return map[string]any{}
	case []any:
		return []any{}
	case string:
		return ""
	case bool:
		return false
	case json.Number:
		return 0
	}
	return nil
}

// sortedKeys are in the same order for the same seed.
func sortedKeys(fields map[string]any) []string {
	keys := make([]string, 0, len(fields))
	for key := range fields {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
