package proxy

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/proxy/builtin"
	"github.com/mixed-version-proxy/mvp/proxy/discovery"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// builder makes a state from the policies and the view of the upstreams, without
// any I/O. It keeps what was costly to make. Only the goroutine of Server.Run uses
// it.
type builder struct {
	log     *slog.Logger
	docs    *documents
	schemas map[schemaKey]*discovery.Schema
	derived map[string]derived // by path
}

type schemaKey struct{ link, group, version, kind string }

func newBuilder(log *slog.Logger, docs *documents) *builder {
	return &builder{log: log, docs: docs, schemas: map[schemaKey]*discovery.Schema{}, derived: map[string]derived{}}
}

func (b *builder) build(set *engine.Set, view *upstream.View, previous *state) *state {
	view = withoutDeleted(view)
	st := &state{view: view, replaced: make(chan struct{}), cluster: clusterOf(view)}
	st.index()
	st.spread = spreadOf(view, previous.spread)
	conversions := conversionsOf(set)
	st.merged = discovery.Merge(sourcesOf(view), conversions, previous.merged)
	known := b.schemas
	b.schemas = map[schemaKey]*discovery.Schema{} // what is not used again goes
	schemas := map[convert.Version]convert.Schema{}
	schema := func(v convert.Version) convert.Schema {
		s, found := schemas[v]
		if !found {
			s = st.rememberFields(v, b.schema(st, known, v))
			schemas[v] = s
		}
		return s
	}
	st.set, st.missing = set.WithSchemas(schema), set.MissingFields(schema)
	logMissing(b.log, previous.missing, st.missing)
	st.openapi = b.openAPI(st, conversions)
	return st
}

// kind is the kind of a resource as discovery has it, or "".
func (st *state) kind(v convert.Version) string {
	r, ok := st.merged.Resource(v.Group, v.Version, v.Resource)
	if !ok || r.ResponseKind == nil {
		return ""
	}
	return r.ResponseKind.Kind
}

func sourcesOf(view *upstream.View) []discovery.Source {
	sources := make([]discovery.Source, 0, len(view.Servers))
	for _, server := range view.Servers {
		sources = append(sources, discovery.Source{
			Server: server.Name, Version: server.GitVersion,
			Reachable: server.Healthy && !server.Stale, Groups: server.Groups,
		})
	}
	return sources
}

func conversionsOf(set *engine.Set) []discovery.Conversion {
	var list []discovery.Conversion
	for _, c := range set.Conversions() {
		list = append(list, discovery.Conversion{
			FromGroup: c.From.Group, FromVersion: c.From.Version, FromResource: c.From.Resource, FromKind: c.From.Kind,
			ToGroup: c.To.Group, ToVersion: c.To.Version, ToResource: c.To.Resource, ToKind: c.To.Kind,
		})
	}
	return list
}

// documentsOf lists the documents that conversions need: of both versions.
func documentsOf(set *engine.Set) []string {
	var paths []string
	for _, c := range set.Conversions() {
		for _, v := range []convert.Version{c.From, c.To} {
			if path := documentPath(v.Group, v.Version); !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// documentPath is the path of a group version in an OpenAPI v3 index.
func documentPath(group, version string) string {
	if group == "" {
		return "api/" + version
	}
	return "apis/" + group + "/" + version
}

func oldestFirst(servers []*upstream.State) []*upstream.State {
	return slices.SortedStableFunc(slices.Values(servers), func(a, b *upstream.State) int {
		return cmp.Or(effectiveVersion(a).Compare(effectiveVersion(b)), strings.Compare(a.Name, b.Name))
	})
}

// schema finds the field types of one version of a kind: in the CRD, which keeps
// the schemas of versions it no longer serves; in the version's OpenAPI document;
// or, for Kubernetes' own kinds of versions that are gone, in their Go types.
// Nil: not known.
func (b *builder) schema(st *state, known map[schemaKey]*discovery.Schema, v convert.Version) convert.Schema {
	if raw := crdSchema(st.view, v); raw != nil {
		s, err := discovery.ParseSchema(raw)
		if err == nil {
			return convert.Named{Types: s}
		}
		b.log.Warn("cannot read the schema of a CustomResourceDefinition", "resource", v.Resource+"."+v.Group, "version", v.Version, "error", err)
	}
	if v.Kind == "" {
		v.Kind = st.kind(v)
	}
	if s := b.documented(known, v); s != nil {
		return convert.Named{Types: s}
	}
	if s, ok := builtin.Find(v.Group, v.Version, v.Kind); ok {
		return convert.Named{Types: s}
	}
	return nil
}

// documented finds a kind's schema in the OpenAPI document of its version; known
// are those that were read before.
func (b *builder) documented(known map[schemaKey]*discovery.Schema, v convert.Version) *discovery.Schema {
	doc, ok := b.docs.get(documentPath(v.Group, v.Version))
	if !ok || v.Kind == "" {
		return nil
	}
	key := schemaKey{doc.link, v.Group, v.Version, v.Kind}
	s, ok := known[key]
	if !ok {
		var err error
		s, _, err = discovery.SchemaOf(doc.body, v.Group, v.Version, v.Kind)
		if err != nil {
			b.log.Warn("cannot read the schema of a kind", "kind", v.Kind, "version", v.APIVersion(), "error", err)
		}
	}
	b.schemas[key] = s
	return s
}

// crdSchema is the schema of a version as a CRD of any server has it.
func crdSchema(view *upstream.View, v convert.Version) []byte {
	for _, server := range slices.Backward(oldestFirst(view.Servers)) {
		if crd, ok := server.CRDs[v.Resource+"."+v.Group]; ok {
			if version, ok := crd.Versions[v.Version]; ok && len(version.Schema) > 0 {
				return version.Schema
			}
		}
	}
	return nil
}
