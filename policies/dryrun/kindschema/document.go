package kindschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Kind names a kind in one version.
type Kind struct{ Group, Version, Kind string }

func (k Kind) String() string {
	return strings.TrimPrefix(k.Group+"/"+k.Version, "/") + " " + k.Kind
}

// Resource guesses the plural of k, by the rules of English that kubectl knows.
func (k Kind) Resource() string {
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind(k))
	return plural.Resource
}

// Schemas are the schemas of kinds. The zero value has none. It may be read by any
// number of goroutines while nobody adds to it.
type Schemas struct {
	kinds     map[Kind]*Schema
	resources map[Kind]Kind // by the plural, of which only CustomResourceDefinitions tell
}

// Find returns the schema of a kind.
func (s *Schemas) Find(k Kind) (*Schema, bool) {
	found, ok := s.kinds[k]
	return found, ok
}

// FindResource is Find for the kind whose plural is resource: where a
// CustomResourceDefinition says so, or by the rules of English that kubectl knows.
func (s *Schemas) FindResource(group, version, resource string) (Kind, *Schema, bool) {
	if k, ok := s.resources[Kind{group, version, resource}]; ok {
		return k, s.kinds[k], true
	}
	for k, found := range s.kinds {
		if k.Group == group && k.Version == version && k.Resource() == resource {
			return k, found, true
		}
	}
	return Kind{}, nil, false
}

func (s *Schemas) add(k Kind, made *Schema) {
	if s.kinds == nil {
		s.kinds, s.resources = map[Kind]*Schema{}, map[Kind]Kind{}
	}
	s.kinds[k] = made
}

// Add adds the kinds of document, in JSON: a CustomResourceDefinition, or an OpenAPI v2
// or v3 document. The error says what it is instead, or why it cannot be read.
func (s *Schemas) Add(document []byte) error {
	var head struct {
		Kind        string                 `json:"kind"`
		OpenAPI     string                 `json:"openapi"`
		Swagger     string                 `json:"swagger"`
		Spec        crdSpec                `json:"spec"`
		Definitions map[string]spec.Schema `json:"definitions"`
		Components  struct {
			Schemas map[string]spec.Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &head); err != nil {
		return fmt.Errorf("cannot read the schemas: %w", err)
	}
	switch {
	case head.Kind == "CustomResourceDefinition":
		return s.addCRD(&head.Spec)
	case head.OpenAPI != "":
		s.addDefinitions(head.Components.Schemas)
	case head.Swagger != "":
		s.addDefinitions(head.Definitions)
	default:
		return errors.New("it is neither a CustomResourceDefinition nor an OpenAPI document")
	}
	return nil
}

// crdSpec is what counts of a CustomResourceDefinition.
type crdSpec struct {
	Group string `json:"group"`
	Names struct {
		Kind   string `json:"kind"`
		Plural string `json:"plural"`
	} `json:"names"`
	PreserveUnknownFields bool `json:"preserveUnknownFields"`
	Versions              []struct {
		Name   string `json:"name"`
		Schema struct {
			OpenAPIV3Schema *spec.Schema `json:"openAPIV3Schema"`
		} `json:"schema"`
	} `json:"versions"`
}

func (s *Schemas) addCRD(crd *crdSpec) error {
	for _, version := range crd.Versions {
		if version.Schema.OpenAPIV3Schema == nil {
			return fmt.Errorf("the version %s of the CustomResourceDefinition has no schema", version.Name)
		}
		b := builder{}
		made := b.build(version.Schema.OpenAPIV3Schema)
		made.Embedded = true
		made.Open = made.Open || crd.PreserveUnknownFields
		kind := Kind{crd.Group, version.Name, crd.Names.Kind}
		s.add(kind, made)
		s.resources[Kind{crd.Group, version.Name, crd.Names.Plural}] = kind
	}
	return nil
}

// addDefinitions adds those that say of which kinds they are.
func (s *Schemas) addDefinitions(definitions map[string]spec.Schema) {
	b := builder{definitions: definitions, made: map[string]*Schema{}}
	for name := range definitions {
		definition := definitions[name]
		for _, kind := range kindsOf(&definition) {
			s.add(kind, b.named("/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name)))
		}
	}
}

func kindsOf(definition *spec.Schema) []Kind {
	list, _ := definition.Extensions["x-kubernetes-group-version-kind"].([]any)
	var kinds []Kind
	for _, item := range list {
		names, _ := item.(map[string]any)
		text := func(key string) string { value, _ := names[key].(string); return value }
		if text("kind") != "" {
			kinds = append(kinds, Kind{text("group"), text("version"), text("kind")})
		}
	}
	return kinds
}
