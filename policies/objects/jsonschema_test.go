package objects

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
)

// jsonSchemaRefusal says why a JSON schema, of the words that the schema for editors has,
// does not take the value at path; "" when it does.
func jsonSchemaRefusal(s jsonObject, path string, value any) string {
	if why := typeRefusal(s["type"], path, value); why != "" {
		return why
	}
	if want, ok := s["const"]; ok && !reflect.DeepEqual(want, value) {
		return fmt.Sprintf("%s is not %q", path, want)
	}
	if enum, ok := s["enum"].([]any); ok && !slices.Contains(enum, value) {
		return path + " is none of what it may be"
	}
	var why string
	switch v := value.(type) {
	case string:
		why = stringRefusal(s, path, v)
	case []any:
		why = listRefusal(s, path, v)
	case map[string]any:
		why = objectRefusal(s, path, v)
	}
	if why == "" {
		why = combinedRefusal(s, path, value)
	}
	return why
}

func typeRefusal(types any, path string, value any) string {
	list, several := types.([]any)
	if !several {
		list = []any{types}
	}
	is := "null"
	switch value.(type) {
	case string:
		is = "string"
	case []any:
		is = "array"
	case map[string]any:
		is = "object"
	case float64:
		is = "number"
	case bool:
		is = "boolean"
	}
	if types == nil || slices.Contains(list, any(is)) || is == "number" && slices.Contains(list, any("integer")) {
		return ""
	}
	return fmt.Sprintf("%s is no %v", path, list[0])
}

func stringRefusal(s jsonObject, path, v string) string {
	least, _ := s["minLength"].(float64)
	most, bounded := s["maxLength"].(float64)
	if len(v) < int(least) || bounded && len(v) > int(most) {
		return path + " is too short or too long"
	}
	if pattern, ok := s["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(v) {
		return path + " does not match " + pattern
	}
	return ""
}

func listRefusal(s jsonObject, path string, v []any) string {
	least, _ := s["minItems"].(float64)
	most, bounded := s["maxItems"].(float64)
	if len(v) < int(least) || bounded && len(v) > int(most) {
		return path + " has too few or too many items"
	}
	items, _ := s["items"].(jsonObject)
	for i, item := range v {
		if why := jsonSchemaRefusal(items, fmt.Sprintf("%s[%d]", path, i), item); why != "" {
			return why
		}
	}
	return ""
}

func objectRefusal(s jsonObject, path string, v map[string]any) string {
	required, _ := s["required"].([]any)
	for _, name := range required {
		if _, has := v[name.(string)]; !has {
			return fmt.Sprintf("%s has no %v", path, name)
		}
	}
	properties, _ := s["properties"].(jsonObject)
	for _, name := range slices.Sorted(maps.Keys(v)) {
		property, known := properties[name].(jsonObject)
		if !known && s["additionalProperties"] == false {
			return path + " has an unknown member " + name
		}
		if why := jsonSchemaRefusal(property, path+"."+name, v[name]); why != "" {
			return why
		}
	}
	return ""
}

// combinedRefusal is of what is put together from schemas of the same value.
func combinedRefusal(s jsonObject, path string, value any) string {
	all, _ := s["allOf"].([]any)
	for _, part := range all {
		if why := jsonSchemaRefusal(part.(jsonObject), path, value); why != "" {
			return why
		}
	}
	takes := func(part any) bool { return jsonSchemaRefusal(part.(jsonObject), path, value) == "" }
	if anyOf, ok := s["anyOf"].([]any); ok && !slices.ContainsFunc(anyOf, takes) {
		return path + " is none of what it may be"
	}
	if not, ok := s["not"]; ok && takes(not) {
		return path + " is what it may not be"
	}
	if condition, ok := s["if"]; ok {
		branch, _ := s["else"].(jsonObject)
		if takes(condition) {
			branch, _ = s["then"].(jsonObject)
		}
		return jsonSchemaRefusal(branch, path, value)
	}
	return ""
}
