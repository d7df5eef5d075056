package convert

import (
	"reflect"

	"github.com/itchyny/gojq"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// namesOf are the names of fields that the program text, which has been compiled before,
// uses anywhere, and its other texts, which may be such names.
func namesOf(text *source.Text) map[string]bool {
	names := map[string]bool{}
	addNames(names, reflect.ValueOf(plainQuery(text.Code)))
	delete(names, "")
	return names
}

// addNames goes through a syntax tree of gojq's: a field is named by an index, by a key
// of an object, or by a text.
func addNames(names map[string]bool, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			addNames(names, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			addNames(names, v.Index(i))
		}
	case reflect.Struct:
		switch node := v.Interface().(type) {
		case gojq.Index:
			names[node.Name] = true
		case gojq.ObjectKeyVal:
			names[node.Key] = true
		case gojq.String:
			names[node.Str] = true
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				addNames(names, v.Field(i))
			}
		}
	}
}
