package proxy

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/proxy/discovery"
)

// merge makes the document anew. An error says what it lacks; it is answered
// nevertheless.
func (r *readersV2) merge(wanted wantedV2) (*discovery.OpenAPIV2Document, error) {
	var failed []error
	parsed := map[string]*discovery.OpenAPIV2{}
	for etag, body := range r.bodies {
		document, err := discovery.ParseOpenAPIV2(body)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		parsed[etag] = document
	}
	var sources []discovery.OpenAPIV2Source
	for _, server := range wanted.view.Servers {
		if document := parsed[r.servers[server.Name].etag]; document != nil {
			sources = append(sources, discovery.OpenAPIV2Source{Server: server.Name, Version: server.GitVersion, Document: document})
		}
	}
	if len(sources) == 0 {
		return nil, errors.Join(failed...)
	}
	if len(parsed) == 1 { // all the same
		sources = sources[:1]
	}
	union := discovery.MergeOpenAPIV2(sources)
	whole, err := union.WithConversions(r.withRemembered(wanted.derived, parsed))
	failed = append(failed, err)
	if whole == sources[0].Document {
		return nil, errors.Join(failed...)
	}
	document, err := whole.Write()
	return document, errors.Join(append(failed, err)...)
}

// withRemembered remembers how servers describe the versions that conversions are
// from, and adds it to the conversions: a version that no server has any more is
// described as it was, not as derived.
func (r *readersV2) withRemembered(derived []discovery.DerivedV2, parsed map[string]*discovery.OpenAPIV2) []discovery.DerivedV2 {
	derived = slices.Clone(derived)
	used := map[string]bool{}
	for i := range derived {
		path, resources := clientResources(derived[i].Conversions)
		for _, etag := range slices.Sorted(maps.Keys(parsed)) {
			if part := parsed[etag].Part(derived[i].Conversions[0].FromGroup, derived[i].Conversions[0].FromVersion, resources); part != nil {
				r.remembered[path] = part
			}
		}
		derived[i].Remembered = r.remembered[path]
		used[path] = true
	}
	maps.DeleteFunc(r.remembered, func(path string, _ *discovery.OpenAPIV2) bool { return !used[path] })
	return derived
}

// clientResources names what clients ask for by conversions of one group version.
func clientResources(list []discovery.Conversion) (key string, resources []string) {
	for _, c := range list {
		resources = append(resources, cmp.Or(c.FromResource, c.ToResource))
	}
	return documentPath(list[0].FromGroup, list[0].FromVersion) + " " + strings.Join(resources, " "), resources
}

// derivedV2 groups the conversions that clients see by the two versions between which
// they are, with what is known of the client's schemas.
func derivedV2(st *state, conversions []discovery.Conversion) []discovery.DerivedV2 {
	type between struct{ fromGroup, fromVersion, toGroup, toVersion string }
	groups := map[between][]discovery.Conversion{}
	for _, c := range conversions {
		if st.merged.Has(c.FromGroup, c.FromVersion, cmp.Or(c.FromResource, c.ToResource)) {
			key := between{c.FromGroup, c.FromVersion, c.ToGroup, c.ToVersion}
			groups[key] = append(groups[key], c)
		}
	}
	var list []discovery.DerivedV2
	for _, group := range groups {
		list = append(list, discovery.DerivedV2{Conversions: group, Options: convertOptions(st, group)})
	}
	slices.SortFunc(list, func(a, b discovery.DerivedV2) int {
		x, y := a.Conversions[0], b.Conversions[0]
		return cmp.Or(
			strings.Compare(x.FromGroup, y.FromGroup), strings.Compare(x.FromVersion, y.FromVersion),
			strings.Compare(x.ToGroup, y.ToGroup), strings.Compare(x.ToVersion, y.ToVersion),
		)
	})
	return list
}
