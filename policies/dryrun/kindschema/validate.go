package kindschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	validationerrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// Violation is one thing about an object that its schema does not allow.
type Violation struct {
	Path    string `json:"path"`    // as policies write it: spec.containers[0].image; "" is the object
	Message string `json:"message"` // "unknown field", "must be of type integer: \"string\""
}

func (v Violation) String() string {
	if v.Path == "" {
		return v.Message
	}
	return v.Path + ": " + v.Message
}

// Limits of one check: an object with hundreds of mistakes has one mistake, and no kind
// nests a tenth as deep.
const (
	maxViolations = 100
	maxDepth      = 1000
)

// Validate says what the object, in JSON, has that s does not allow, in the order of
// its fields. Of what kube-apiserver sets itself (apiVersion, kind, metadata) nothing
// is said. A null counts as no field where it is no value, as in kube-apiserver.
func (s *Schema) Validate(object []byte) ([]Violation, error) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("cannot check the object against its schema: %w", err)
	}
	c := checker{}
	c.check(s, "", value, true)
	return c.found, nil
}

// unknownField is the message about one.
const unknownField = "unknown field"

// Unknown returns the paths of the fields of object, in JSON, that s does not have; none
// when it cannot be read.
func (s *Schema) Unknown(object []byte) (paths []string) {
	violations, _ := s.Validate(object)
	for _, v := range violations {
		if v.Message == unknownField {
			paths = append(paths, v.Path)
		}
	}
	return paths
}

type checker struct {
	found []Violation
	depth int
}

func (c *checker) add(path, format string, args ...any) {
	if len(c.found) < maxViolations {
		c.found = append(c.found, Violation{path, fmt.Sprintf(format, args...)})
	}
}

// check looks at a value, whole at an object with metadata of its own.
func (c *checker) check(s *Schema, path string, value any, whole bool) {
	if c.depth++; s != nil && c.depth <= maxDepth && c.own(s, path, value) {
		switch value := value.(type) {
		case map[string]any:
			c.object(s, path, value, whole || s.Embedded)
		case []any:
			c.list(s, path, value)
		}
	}
	c.depth--
}

// own looks at the value alone. It reports whether what is in it can be looked at.
func (c *checker) own(s *Schema, path string, value any) bool {
	if s.own == nil {
		return true
	}
	if value == nil && s.Nullable {
		return false
	}
	result := validate.NewSchemaValidator(s.own, nil, "", strfmt.Default).Validate(plainNumbers(value, s.Type))
	for _, err := range result.Errors {
		var failed *validationerrors.Validation
		if errors.As(err, &failed) && failed.Code() == validationerrors.InvalidTypeCode {
			c.add(path, "%s", message(err))
			return false // what else it says follows from that
		}
	}
	for _, err := range result.Errors {
		var failed *validationerrors.Validation
		if errors.As(err, &failed) && failed.Code() == validationerrors.RequiredFailCode {
			c.add(Member(path, strings.TrimPrefix(failed.Name, ".")), "is required")
			continue
		}
		c.add(path, "%s", message(err))
	}
	return true
}

// message is err without the name of the value, which is empty here.
func message(err error) string {
	text := strings.TrimPrefix(strings.TrimSpace(err.Error()), `"" `)
	return strings.TrimPrefix(text, "in body ")
}

// plainNumbers is value as the check of single values wants it: in objects and lists it
// looks for their size and what is required alone.
func plainNumbers(value any, schemaType string) any {
	number, ok := value.(json.Number)
	if !ok {
		return value
	}
	if i, err := number.Int64(); err == nil && schemaType != "number" {
		return i
	}
	if f, err := number.Float64(); err == nil {
		return f
	}
	return value
}

func (c *checker) object(s *Schema, path string, object map[string]any, whole bool) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if whole && (key == "apiVersion" || key == "kind" || key == "metadata") {
			continue
		}
		member, value := Member(path, key), object[key]
		known, named := s.Properties[key]
		switch {
		case named && value == nil && known != nil && !known.Nullable && !slices.Contains(s.Required, key):
			// Dropped before anything is checked.
		case named:
			c.check(known, member, value, false)
		case s.Values != nil:
			c.check(s.Values, member, value, false)
		case !s.Open:
			c.add(member, unknownField)
		}
	}
}

func (c *checker) list(s *Schema, path string, list []any) {
	seen := map[string]int{}
	for i, item := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		c.check(s.Items, at, item, false)
		if !s.Unique && len(s.Keys) == 0 {
			continue
		}
		id := identity(s.Keys, item)
		if first, twice := seen[id]; twice {
			c.add(at, "duplicate of [%d]: %s", first, id)
		} else {
			seen[id] = i
		}
	}
}

// Identity is by what item, an item of a list in JSON, differs from the others: keys
// are those of its fields that say so, none is all of it.
func Identity(keys []string, item []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(item))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return string(item)
	}
	return identity(keys, value)
}

// identity is by what an item of a list differs from the others.
func identity(keys []string, item any) string {
	value := item
	if object, ok := item.(map[string]any); ok && len(keys) > 0 {
		named := map[string]any{}
		for _, key := range keys {
			named[key] = object[key]
		}
		value = named
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "" // cannot be: it was decoded from JSON
	}
	return string(text)
}
