package demo

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A jsonSchema is the openAPIV3Schema of one version of a custom resource, as
// decoded. The functions here know the keywords that CRDs use: type, properties,
// additionalProperties, items, required, enum, default, nullable, minimum,
// maximum, minLength, maxLength, pattern and the x-kubernetes-… extensions.
// Others (oneOf, CEL rules, formats) are shown to clients but not enforced.
type jsonSchema map[string]any

func (s jsonSchema) child(keyword string) jsonSchema {
	child, _ := s[keyword].(map[string]any)
	return child
}

func (s jsonSchema) is(extension string) bool { return s[extension] == true }

// property returns the schema of one key, and whether the key may stand there.
func (s jsonSchema) property(key string) (jsonSchema, bool) {
	if p, ok := s.child("properties")[key].(map[string]any); ok {
		return p, true
	}
	switch more := s["additionalProperties"].(type) {
	case map[string]any:
		return more, true
	case bool:
		return nil, more
	}
	return nil, s.is("x-kubernetes-preserve-unknown-fields")
}

// rootFields are part of every object, whatever its schema says.
var rootFields = []string{"apiVersion", "kind", "metadata"}

// pruneObject removes the fields of obj that its schema does not have and returns
// their paths, sorted.
func pruneObject(s jsonSchema, obj map[string]any) []string {
	var unknown []string
	for _, key := range slices.Sorted(maps.Keys(obj)) {
		if !slices.Contains(rootFields, key) {
			unknown = append(unknown, pruneField(s, obj, key, key)...)
		}
	}
	return unknown
}

func pruneField(s jsonSchema, obj map[string]any, key, path string) []string {
	child, ok := s.property(key)
	if !ok {
		delete(obj, key)
		return []string{path}
	}
	return prune(child, obj[key], path)
}

func prune(s jsonSchema, value any, path string) []string {
	if s == nil {
		return nil // nothing is known of what is inside
	}
	var unknown []string
	switch value := value.(type) {
	case map[string]any:
		if s.is("x-kubernetes-embedded-resource") {
			return nil
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			unknown = append(unknown, pruneField(s, value, key, path+"."+key)...)
		}
	case []any:
		for i, item := range value {
			unknown = append(unknown, prune(s.child("items"), item, fmt.Sprintf("%s[%d]", path, i))...)
		}
	}
	return unknown
}

// applyDefaults sets what is absent and has a default, inside of what is there.
func applyDefaults(s jsonSchema, value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, p := range s.child("properties") {
			schema, _ := p.(map[string]any)
			if _, present := value[key]; !present && schema["default"] != nil {
				value[key] = runtime.DeepCopyJSONValue(schema["default"])
			}
		}
		for key, item := range value {
			child, _ := s.property(key)
			applyDefaults(child, item)
		}
	case []any:
		for _, item := range value {
			applyDefaults(s.child("items"), item)
		}
	}
}

// validate says what of value breaks s, in kube-apiserver's words. path is nil at
// the root, where apiVersion, kind and metadata are not the schema's affair.
func validate(s jsonSchema, value any, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	if err := checkType(s, value, path); err != nil {
		return field.ErrorList{err}
	}
	errs := checkValue(s, value, path)
	switch value := value.(type) {
	case map[string]any:
		errs = append(errs, validateMap(s, value, path)...)
	case []any:
		for i, item := range value {
			errs = append(errs, validate(s.child("items"), item, path.Index(i))...)
		}
	}
	return errs
}

func validateMap(s jsonSchema, value map[string]any, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	required, _ := s["required"].([]any)
	for _, key := range required {
		if name, ok := key.(string); ok && value[name] == nil {
			errs = append(errs, field.Required(childPath(path, name), ""))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(value)) {
		if path == nil && slices.Contains(rootFields, key) {
			continue
		}
		child, _ := s.property(key)
		errs = append(errs, validate(child, value[key], childPath(path, key))...)
	}
	return errs
}

func childPath(path *field.Path, key string) *field.Path {
	if path == nil {
		return field.NewPath(key)
	}
	return path.Child(key)
}

func checkType(s jsonSchema, value any, path *field.Path) *field.Error {
	got := typeOf(value)
	want, _ := s["type"].(string)
	switch {
	case s.is("x-kubernetes-int-or-string"):
		if got == "integer" || got == "string" {
			return nil
		}
		want = "integer,string"
	case want == "", got == want, want == "number" && got == "integer", got == "null" && s.is("nullable"):
		return nil
	}
	return field.TypeInvalid(path, got, fmt.Sprintf("%s in body must be of type %s: %q", path, want, got))
}

func typeOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case int64:
		return "integer"
	case float64:
		if value == float64(int64(value)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

func checkValue(s jsonSchema, value any, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if enum, _ := s["enum"].([]any); enum != nil && !slices.ContainsFunc(enum, func(e any) bool { return reflect.DeepEqual(e, value) }) {
		errs = append(errs, field.NotSupported(path, value, enumNames(enum)))
	}
	invalid := func(format string, args ...any) {
		errs = append(errs, field.Invalid(path, value, fmt.Sprintf("%s in body "+format, append([]any{path}, args...)...)))
	}
	if n, ok := number(value); ok {
		if limit, ok := number(s["minimum"]); ok && n < limit {
			invalid("should be greater than or equal to %v", s["minimum"])
		}
		if limit, ok := number(s["maximum"]); ok && n > limit {
			invalid("should be less than or equal to %v", s["maximum"])
		}
	}
	text, ok := value.(string)
	if !ok {
		return errs
	}
	if limit, ok := s["minLength"].(int64); ok && int64(utf8.RuneCountInString(text)) < limit {
		invalid("should be at least %d chars long", limit)
	}
	if limit, ok := s["maxLength"].(int64); ok && int64(utf8.RuneCountInString(text)) > limit {
		invalid("should be at most %d chars long", limit)
	}
	if pattern, ok := s["pattern"].(string); ok {
		// A pattern that Go cannot read is not enforced.
		if re, err := regexp.Compile(pattern); err == nil && !re.MatchString(text) {
			invalid("should match '%s'", pattern)
		}
	}
	return errs
}

func enumNames(enum []any) []string {
	var names []string
	for _, e := range enum {
		name, ok := e.(string)
		if !ok {
			data, _ := json.Marshal(e) // was JSON before
			name = string(data)
		}
		names = append(names, name)
	}
	return names
}

func number(value any) (float64, bool) {
	switch value := value.(type) {
	case int64:
		return float64(value), true
	case float64:
		return value, true
	}
	return 0, false
}
