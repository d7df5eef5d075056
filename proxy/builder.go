package proxy

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/proxy/builtin"
	"github.com/mixed-version-proxy/mvp/proxy/discovery"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// builder makes a state from the policies and the view of the upstreams. It
// keeps the OpenAPI documents it has read, also of versions that no server
// serves any more. Only the goroutine of Server.Run uses it.
type builder struct {
	log       *slog.Logger
	documents map[string]remembered // by path, "apis/policy/v1"
	schemas   map[schemaKey]*discovery.Schema
	derived   map[string]derived // by path
}

// remembered is the OpenAPI v3 document of a group version.
type remembered struct {
	link string // names the content: it holds the server's hash of it
	body []byte
}

type schemaKey struct{ link, group, version, kind string }

func newBuilder(log *slog.Logger) *builder {
	return &builder{log: log, documents: map[string]remembered{}, schemas: map[schemaKey]*discovery.Schema{}, derived: map[string]derived{}}
}

func (b *builder) build(ctx context.Context, set *engine.Set, view *upstream.View, previous *state) *state {
	st := &state{view: view, cluster: clusterOf(view)}
	st.index()
	conversions := conversionsOf(set)
	st.merged = discovery.Merge(sourcesOf(view), conversions, previous.merged)
	b.read(ctx, view, conversions)
	st.set = set.WithSchemas(func(v convert.Version) convert.Schema { return b.schema(st, v) })
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

// maxOpenAPIDocument bounds one OpenAPI v3 document, in bytes; the largest of
// Kubernetes 1.37, apps/v1 and core, are below 2 MiB.
const maxOpenAPIDocument = 32 << 20

// read fetches the documents of all versions that conversions name, where their
// content changed since it was last read. A version nobody serves any more keeps
// the document it had.
func (b *builder) read(ctx context.Context, view *upstream.View, conversions []discovery.Conversion) {
	for _, c := range conversions {
		for _, path := range []string{documentPath(c.FromGroup, c.FromVersion), documentPath(c.ToGroup, c.ToVersion)} {
			if err := b.readPath(ctx, view, path); err != nil {
				b.log.Warn("cannot read an OpenAPI document; until it can be, the types of fields are not known", "path", path, "error", err)
			}
		}
	}
}

func (b *builder) readPath(ctx context.Context, view *upstream.View, path string) error {
	for _, server := range slices.Backward(oldestFirst(view.Servers)) {
		link, ok := server.OpenAPIV3[path]
		if !ok || !server.Healthy {
			continue
		}
		if b.documents[path].link == link {
			return nil
		}
		doc, err := server.Server.Get(ctx, link, wire.Header{{Name: "Accept", Value: "application/json"}}, maxOpenAPIDocument)
		if err != nil {
			return err
		}
		if doc.Status != http.StatusOK {
			return fmt.Errorf("%s answered %d to GET %s", server.Name, doc.Status, link)
		}
		b.documents[path] = remembered{link, doc.Body}
		return nil
	}
	return nil
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

// typed makes a schema what the engine asks for.
type typed struct {
	schema interface{ TypeAt(path []string) string }
}

func (t typed) TypeAt(path []string) convert.Type { return convert.Type(t.schema.TypeAt(path)) }

// schema finds the field types of one version of a kind: in the CRD, which keeps
// the schemas of versions it no longer serves; in the version's OpenAPI document;
// or, for Kubernetes' own kinds of versions that are gone, in their Go types.
// Nil: not known.
func (b *builder) schema(st *state, v convert.Version) convert.Schema {
	if raw := crdSchema(st.view, v); raw != nil {
		s, err := discovery.ParseSchema(raw)
		if err == nil {
			return typed{s}
		}
		b.log.Warn("cannot read the schema of a CustomResourceDefinition", "resource", v.Resource+"."+v.Group, "version", v.Version, "error", err)
	}
	if v.Kind == "" {
		v.Kind = st.kind(v)
	}
	if s := b.documented(v); s != nil {
		return typed{s}
	}
	if s, ok := builtin.Find(v.Group, v.Version, v.Kind); ok {
		return typed{s}
	}
	return nil
}

// documented finds a kind's schema in the OpenAPI document of its version.
func (b *builder) documented(v convert.Version) *discovery.Schema {
	doc, ok := b.documents[documentPath(v.Group, v.Version)]
	if !ok || v.Kind == "" {
		return nil
	}
	key := schemaKey{doc.link, v.Group, v.Version, v.Kind}
	s, known := b.schemas[key]
	if !known {
		var err error
		s, _, err = discovery.SchemaOf(doc.body, v.Group, v.Version, v.Kind)
		if err != nil {
			b.log.Warn("cannot read the schema of a kind", "kind", v.Kind, "version", v.APIVersion(), "error", err)
		}
		b.schemas[key] = s
	}
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
