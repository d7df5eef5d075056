package proxy

import (
	"cmp"
	"encoding/json"

	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/proxy/builtin"
	"github.com/mixed-version-proxy/mvp/proxy/discovery"
)

// anyFields is the schema of a kind of which only that is known that it is an object.
var anyFields = json.RawMessage(`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`)

// convertOptions finds the schemas of the clients' versions: those that CRDs keep, and
// those of Kubernetes' own kinds.
func convertOptions(st *state, conversions []discovery.Conversion) discovery.ConvertOptions {
	opts := discovery.ConvertOptions{Schemas: map[string]json.RawMessage{}}
	for _, c := range conversions {
		from := convert.Version{Group: c.FromGroup, Version: c.FromVersion, Resource: cmp.Or(c.FromResource, c.ToResource), Kind: c.FromKind}
		to := convert.Version{Group: c.ToGroup, Version: c.ToVersion, Resource: c.ToResource, Kind: c.ToKind}
		from.Kind = cmp.Or(from.Kind, st.kind(from))
		if raw := crdSchema(st.view, from); raw != nil {
			opts.Schemas[from.Kind] = raw
		} else if raw := ownSchema(st, from, to); raw != nil {
			opts.Schemas[from.Kind] = raw
		}
	}
	return opts
}

// ownSchema returns the schema of one of Kubernetes' own kinds in a version that is gone.
// Nil: it is that of the servers' version, which tells more, or not known to be another.
func ownSchema(st *state, from, to convert.Version) json.RawMessage {
	old, known := builtin.Find(from.Group, from.Version, from.Kind)
	if known {
		if current, ok := builtin.Find(to.Group, to.Version, cmp.Or(to.Kind, from.Kind)); ok && old.SameFields(current) {
			return nil
		}
		return old.OpenAPI()
	}
	// A program may make anything of fields that the servers' version does not have: a
	// client that checks by its schema would refuse them.
	if crdSchema(st.view, to) == nil && isProgrammed(st, from) {
		return anyFields
	}
	return nil
}

// isProgrammed reports whether a jq program of the library takes part in the conversion
// from a version.
func isProgrammed(st *state, from convert.Version) bool {
	for _, c := range st.set.Conversions() {
		if c.Library && c.UsesJQ() && c.From.Group == from.Group && c.From.Version == from.Version && c.From.Resource == from.Resource {
			return true
		}
	}
	return false
}
