package main

import (
	"encoding/json"

	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
	"github.com/mixed-version-proxy/mvp/proxy/builtin"
	"github.com/mixed-version-proxy/mvp/proxy/discovery"
)

// offlineSchemas knows the fields' types without a server: of custom resources
// from the CustomResourceDefinitions among the manifests, of Kubernetes' own
// kinds from their Go types.
func offlineSchemas(manifests []dryrun.Manifest) func(convert.Version) convert.Schema {
	custom := map[convert.Version]convert.Schema{}
	for i := range manifests {
		if manifests[i].Kind == "CustomResourceDefinition" {
			addCRD(custom, manifests[i].JSON)
		}
	}
	return func(v convert.Version) convert.Schema {
		kind := v.Kind
		v.Kind = ""
		if s, ok := custom[v]; ok {
			return s
		}
		if s, ok := builtin.Find(v.Group, v.Version, kind); ok {
			return convert.Named{Types: s}
		}
		if s, ok := builtin.FindResource(v.Group, v.Version, v.Resource); ok {
			return convert.Named{Types: s}
		}
		return nil
	}
}

// addCRD adds the versions of a CustomResourceDefinition. One that cannot be
// read tells nothing, as an object that is applied to a server would not either.
func addCRD(custom map[convert.Version]convert.Schema, object []byte) {
	var crd struct {
		Spec struct {
			Group string `json:"group"`
			Names struct {
				Plural string `json:"plural"`
			} `json:"names"`
			Versions []struct {
				Name   string `json:"name"`
				Schema struct {
					OpenAPIV3Schema json.RawMessage `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if json.Unmarshal(object, &crd) != nil {
		return
	}
	for _, version := range crd.Spec.Versions {
		if schema, err := discovery.ParseSchema(version.Schema.OpenAPIV3Schema); err == nil {
			custom[convert.Version{Group: crd.Spec.Group, Version: version.Name, Resource: crd.Spec.Names.Plural}] = convert.Named{Types: customSchema{schema}}
		}
	}
}

// customSchema is the schema of a custom resource.
type customSchema struct{ *discovery.Schema }

// Unknown implements [convert.UnknownFields].
func (s customSchema) Unknown(object []byte) (paths []string) {
	var decoded map[string]any
	if json.Unmarshal(object, &decoded) != nil {
		return nil // the conversion says what is wrong with it
	}
	for _, f := range s.Schema.Unknown(decoded) {
		paths = append(paths, f.Path)
	}
	return paths
}
