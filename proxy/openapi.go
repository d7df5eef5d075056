package proxy

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/proxy/discovery"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// openAPI is what MVP answers itself of OpenAPI v3 (KEP-2896): the index of all
// servers' documents, and the documents of versions that only conversion serves.
type openAPI struct {
	index     *discovery.OpenAPIIndex
	documents map[string][]byte // by path, "apis/policy/v1beta1"

	// differs says of which group versions the servers' documents are not the
	// same, so that an older server may know fewer fields.
	differs map[string]bool
}

// openAPIPath gives the path of a document as the index names it
// ("apis/apps/v1"), and whether the request is for one.
func openAPIPath(path string) (string, bool) {
	name, ok := strings.CutPrefix(path, "/openapi/v3/")
	name = strings.TrimSuffix(name, "/")
	return name, ok && name != ""
}

// answer finds the request's document among MVP's own; nil: a server answers.
func (o *openAPI) answer(path, ifNoneMatch string) *discovery.Answer {
	if path == "/openapi/v3" {
		return o.index.Answer(ifNoneMatch)
	}
	name, ok := openAPIPath(path)
	if !ok {
		return nil
	}
	hash, ok := o.index.Own(name)
	if !ok {
		return nil
	}
	etag := `"` + hash + `"`
	if ifNoneMatch == etag {
		return &discovery.Answer{Status: http.StatusNotModified, ETag: etag}
	}
	return &discovery.Answer{
		Status: http.StatusOK, ContentType: "application/json", ETag: etag, Vary: "Accept", Body: o.documents[name],
	}
}

// serversOf gives the healthy servers that have the document that the request
// names, under the client's hash where one has; listed is false for a document
// that no server has.
func (o *openAPI) serversOf(healthy []*upstream.State, path, query string) (servers []*upstream.State, listed bool) {
	if o.index == nil {
		return nil, false
	}
	hash := ""
	if values, err := url.ParseQuery(query); err == nil {
		hash = values.Get("hash")
	}
	names := o.index.Servers(path, hash)
	for _, name := range names {
		i := slices.IndexFunc(healthy, func(s *upstream.State) bool { return s.Name == name })
		if i >= 0 {
			servers = append(servers, healthy[i])
		}
	}
	return servers, len(names) > 0
}

// differing lists the group versions that the servers describe differently, by
// the hashes in their links.
func differing(view *upstream.View) map[string]bool {
	differs, first := map[string]bool{}, map[string]string{}
	for _, server := range view.Servers {
		for path, link := range server.OpenAPIV3 {
			gv := strings.TrimPrefix(strings.TrimPrefix(path, "apis/"), "api/")
			if known, ok := first[gv]; ok && known != link {
				differs[gv] = true
			}
			first[gv] = link
		}
	}
	return differs
}

// openAPI makes the documents of the versions that only conversion serves, and
// the index of all.
func (b *builder) openAPI(st *state, conversions []discovery.Conversion) openAPI {
	result := openAPI{documents: map[string][]byte{}, differs: differing(st.view)}
	hashes := map[string]string{}
	converted := undescribed(st, conversions)
	for path := range converted {
		body, err := b.convertedDocument(st, path, converted)
		if err != nil {
			b.log.Warn("cannot make the OpenAPI document of a converted version; clients take it without a schema", "path", path, "error", err)
		}
		if body != nil {
			result.documents[path] = body
			hashes[path] = discovery.Hash(body)
		}
	}
	var sources []discovery.OpenAPISource
	for _, server := range st.view.Servers {
		sources = append(sources, discovery.OpenAPISource{
			Server: server.Name, Version: server.GitVersion, Reachable: server.Healthy, Paths: server.OpenAPIV3,
		})
	}
	result.index = discovery.MergeOpenAPI(sources, hashes)
	return result
}

// undescribed groups by their document's path the conversions whose client's
// version no server can describe now.
func undescribed(st *state, conversions []discovery.Conversion) map[string][]discovery.Conversion {
	paths := map[string][]discovery.Conversion{}
	for _, c := range conversions {
		path := documentPath(c.FromGroup, c.FromVersion)
		described := slices.ContainsFunc(st.view.Servers, func(s *upstream.State) bool {
			return s.Healthy && s.OpenAPIV3[path] != ""
		})
		if !described && st.merged.Has(c.FromGroup, c.FromVersion, c.FromResource) {
			paths[path] = append(paths[path], c)
		}
	}
	return paths
}

// convertedDocument is the document of a version that no server describes now:
// the one remembered from when a server did, or one derived from that of the
// version it is converted to, which may be one of converted itself. Nil: that one is not
// known either.
func (b *builder) convertedDocument(st *state, path string, converted map[string][]discovery.Conversion) ([]byte, error) {
	if doc, ok := b.docs.get(path); ok {
		return doc.body, nil
	}
	conversions := converted[path]
	target := documentPath(conversions[0].ToGroup, conversions[0].ToVersion)
	doc, ok := b.docs.get(target)
	if !ok && len(converted[target]) > 0 {
		rest := maps.Clone(converted) // without path: conversions may lead back to it
		delete(rest, path)
		body, err := b.convertedDocument(st, target, rest)
		if err != nil {
			return nil, err
		}
		doc.body, doc.link, ok = body, discovery.Hash(body), body != nil
	}
	if !ok {
		return nil, nil
	}
	sameTarget := conversions[:0:0]
	for _, c := range conversions {
		if documentPath(c.ToGroup, c.ToVersion) == target && st.merged.Has(c.ToGroup, c.ToVersion, c.ToResource) {
			sameTarget = append(sameTarget, c) // a document holds one target's; the others go without a schema
		}
	}
	opts := convertOptions(st, sameTarget)
	key := derivedKey{path, doc.link, fmt.Sprintf("%v %s", sameTarget, opts.Schemas)}
	if b.derived[path].key == key {
		return b.derived[path].body, nil
	}
	body, err := discovery.ConvertV3(doc.body, sameTarget, opts)
	if err != nil {
		return nil, err
	}
	b.derived[path] = derived{key, body}
	return body, nil
}

// derived is a document made by conversion and what it was made from: it is made
// anew only when that changed.
type derived struct {
	key  derivedKey
	body []byte
}

type derivedKey struct{ path, link, conversions string }
