// Package kindschema knows the schemas of kinds, reads them from
// CustomResourceDefinitions, OpenAPI documents and Go types, and says what an object
// has that its schema does not allow.
//
// It talks to no server. Of a CustomResourceDefinition, the rules in CEL
// (x-kubernetes-validations) are not looked at.
package kindschema

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// A Schema says what a value may be. It may lead back to itself. It never changes and
// may be used by any number of goroutines; nil allows everything.
type Schema struct {
	// Type is "object", "array", "string", "integer", "number", "boolean", or "" where
	// it may be several: IntOrString, or anything.
	Type string

	IntOrString bool // an integer or a text
	Quantity    bool // a number or a text such as "100m"
	Nullable    bool
	Open        bool // members that nothing names are no mistake
	Embedded    bool // it is a whole object, with apiVersion, kind and metadata

	Format, Pattern string

	// Enum are the values that it may have, as encoding/json decodes them; nil: all.
	Enum []any

	// The bounds of numbers; nil: none.
	Minimum, Maximum                   *float64
	ExclusiveMinimum, ExclusiveMaximum bool

	// The bounds of lengths: of texts in characters, of lists, of maps; nil: none.
	MinLength, MaxLength, MinItems, MaxItems, MinProperties, MaxProperties *int64

	Properties map[string]*Schema
	Required   []string // of Properties
	Values     *Schema  // of members that Properties does not name; nil: there are none
	Items      *Schema  // of a list; nil: anything

	// Unique says that no two items of a list are equal, Keys by which of their fields
	// they differ.
	Unique bool
	Keys   []string

	own *spec.Schema // what it says of the value itself, without what is in it
}

// builder makes Schemas of the schemas of a document.
type builder struct {
	definitions map[string]spec.Schema // by what a $ref has as its last element
	made        map[string]*Schema     // of definitions
}

// named is the definition that ref names; one that does not exist allows everything.
func (b *builder) named(ref string) *Schema {
	name := ref[strings.LastIndexByte(ref, '/')+1:]
	name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	if made, ok := b.made[name]; ok {
		return made
	}
	definition, ok := b.definitions[name]
	if !ok {
		return nil
	}
	made := &Schema{}
	b.made[name] = made // before it is filled: it may lead back to itself
	if other := b.alias(&definition); other != nil {
		*made = *other
		return made
	}
	b.fill(made, &definition)
	return made
}

func (b *builder) build(in *spec.Schema) *Schema {
	if in == nil {
		return nil
	}
	if other := b.alias(in); other != nil {
		return other
	}
	made := &Schema{}
	b.fill(made, in)
	return made
}

// alias is the schema that in is another name of: in OpenAPI v3, a description beside
// a reference makes it the only part of an allOf.
func (b *builder) alias(in *spec.Schema) *Schema {
	if ref := in.Ref.String(); ref != "" {
		return b.named(ref)
	}
	if len(in.AllOf) == 1 && len(in.Type) == 0 && len(in.Properties) == 0 {
		return b.build(&in.AllOf[0])
	}
	return nil
}

func (b *builder) fill(s *Schema, in *spec.Schema) {
	*s = Schema{
		Nullable: in.Nullable, Format: in.Format, Pattern: in.Pattern, Enum: in.Enum,
		Minimum: in.Minimum, Maximum: in.Maximum, ExclusiveMinimum: in.ExclusiveMinimum, ExclusiveMaximum: in.ExclusiveMaximum,
		MinLength: in.MinLength, MaxLength: in.MaxLength, MinItems: in.MinItems, MaxItems: in.MaxItems,
		MinProperties: in.MinProperties, MaxProperties: in.MaxProperties,
		Required: in.Required, Unique: in.UniqueItems,
		Open:     says(in, "x-kubernetes-preserve-unknown-fields"),
		Embedded: says(in, "x-kubernetes-embedded-resource"),
	}
	s.IntOrString = isIntOrString(in)
	s.Quantity = !s.IntOrString && isStringOrNumber(in)
	if len(in.Type) == 1 && !s.IntOrString && !s.Quantity {
		s.Type = in.Type[0]
	}
	b.members(s, in)
	if listType, _ := in.Extensions.GetString("x-kubernetes-list-type"); listType == "set" {
		s.Unique = true
	}
	s.Keys, _ = in.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	s.own = withoutMembers(in, s)
}

// members takes over what in says of what is in the value.
func (b *builder) members(s *Schema, in *spec.Schema) {
	for name := range in.Properties {
		if s.Properties == nil {
			s.Properties = map[string]*Schema{}
		}
		property := in.Properties[name]
		s.Properties[name] = b.build(&property)
	}
	if in.Items != nil {
		s.Items = b.build(in.Items.Schema)
	}
	if more := in.AdditionalProperties; more != nil {
		s.Values = b.build(more.Schema)
		s.Open = s.Open || more.Schema == nil && more.Allows
	}
	// What says nothing of its members leaves it open what they are, and so does what is
	// put together of parts: what all of them allow is not worked out.
	s.Open = s.Open || len(s.Properties) == 0 && s.Values == nil || len(in.AllOf) > 0
	if s.Type == "" && len(s.Properties) > 0 {
		s.Type = "object"
	}
}

// withoutMembers is in as it is checked of the value alone.
func withoutMembers(in *spec.Schema, s *Schema) *spec.Schema {
	own := *in
	own.Properties, own.Items, own.AdditionalProperties, own.Definitions = nil, nil, nil, nil
	own.PatternProperties, own.AdditionalItems, own.Dependencies = nil, nil, nil
	own.AllOf, own.OneOf, own.AnyOf = plain(own.AllOf), plain(own.OneOf), plain(own.AnyOf)
	if own.Not != nil && refers(own.Not) {
		own.Not = nil
	}
	if s.IntOrString || s.Quantity {
		own.Type, own.Format, own.AnyOf, own.OneOf = spec.StringOrArray{"integer", "string"}, "", nil, nil
		if s.Quantity {
			own.Type = spec.StringOrArray{"number", "string"}
		}
	}
	return &own
}

// plain is the list of schemas where none of them refers to others, which the check
// of a single value cannot follow.
func plain(list []spec.Schema) []spec.Schema {
	for i := range list {
		if refers(&list[i]) {
			return nil
		}
	}
	return list
}

func refers(s *spec.Schema) bool {
	if s.Ref.String() != "" || s.Items != nil && s.Items.Schema != nil && refers(s.Items.Schema) ||
		s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil && refers(s.AdditionalProperties.Schema) || s.Not != nil && refers(s.Not) {
		return true
	}
	for _, list := range [][]spec.Schema{s.AllOf, s.OneOf, s.AnyOf} {
		for i := range list {
			if refers(&list[i]) {
				return true
			}
		}
	}
	for name := range s.Properties {
		if property := s.Properties[name]; refers(&property) {
			return true
		}
	}
	return false
}

func says(s *spec.Schema, extension string) bool {
	value, ok := s.Extensions.GetBool(extension)
	return ok && value
}

// isIntOrString knows the three ways in which Kubernetes says so.
func isIntOrString(s *spec.Schema) bool {
	return says(s, "x-kubernetes-int-or-string") || s.Format == "int-or-string" || alternates(s, "integer")
}

// isStringOrNumber knows how Kubernetes says that a field is a quantity.
func isStringOrNumber(s *spec.Schema) bool { return alternates(s, "number") }

// alternates reports whether s is either a text or a value of the type.
func alternates(s *spec.Schema, numeric string) bool {
	for _, list := range [][]spec.Schema{s.AnyOf, s.OneOf} {
		if len(list) != 2 {
			continue
		}
		types := slices.Concat(list[0].Type, list[1].Type)
		if len(types) == 2 && slices.Contains(types, "string") && slices.Contains(types, numeric) {
			return true
		}
	}
	return false
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// Member is the path of a member of the object at path, as policies write it:
// spec.a["x.y/z"].
func Member(path, key string) string {
	switch {
	case !plainName.MatchString(key):
		return path + `["` + key + `"]`
	case path == "":
		return key
	}
	return path + "." + key
}

// TypeAt returns the type of the field at path, whose elements are keys and "*" for the
// items of a list or the values of a map: one of Type's, or "int-or-string"; "" where it
// is not known, or may be several.
func (s *Schema) TypeAt(path []string) string {
	s = s.at(path)
	switch {
	case s == nil:
		return ""
	case s.IntOrString:
		return "int-or-string"
	}
	return s.Type
}

// at returns the schema of what is at path, nil if that is not known.
func (s *Schema) at(path []string) *Schema {
	for _, key := range path {
		if s == nil {
			return nil
		}
		next, named := s.Properties[key]
		switch {
		case named:
			s = next
		case key == "*" && s.Items != nil:
			s = s.Items
		default:
			s = s.Values
		}
	}
	return s
}
