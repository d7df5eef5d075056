package discovery

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
)

// An OpenAPISource is one kube-apiserver's /openapi/v3.
type OpenAPISource struct {
	Server    string            // as in [Source]
	Version   string            // as in [Source]
	Reachable bool              // an unreachable server's documents cannot be asked for now
	Paths     map[string]string // "apis/apps/v1" to its serverRelativeURL
}

// An OpenAPIIndex is the /openapi/v3 that clients see. It never changes and may be
// used by any number of goroutines.
type OpenAPIIndex struct {
	body    []byte
	etag    string
	servers map[string][]documentOf // by path, newest server first
	own     map[string]string       // path to hash
}

// A documentOf is the document that one server has for a path.
type documentOf struct {
	server, hash string
}

// MergeOpenAPI returns the index of all documents. own has the documents that the proxy
// answers itself, each with its [Hash]: those of converted group versions. A document
// that a reachable server has wins over an own one, and that over one that only
// unreachable servers have, which is listed as discovery lists its kinds, though it cannot
// be had now. Of several servers the newest one's hash is listed.
func MergeOpenAPI(sources []OpenAPISource, own map[string]string) *OpenAPIIndex {
	sources = slices.Clone(sources)
	slices.SortStableFunc(sources, func(a, b OpenAPISource) int {
		return compareServers(a.Version, a.Server, b.Version, b.Server)
	})
	x := &OpenAPIIndex{servers: map[string][]documentOf{}, own: map[string]string{}}
	x.add(sources, true)
	for path, hash := range own {
		if len(x.servers[path]) == 0 {
			x.own[path] = hash
		}
	}
	x.add(sources, false)
	x.render()
	return x
}

// add lists the documents of the sources that are reachable, or of those that are not
// as far as nothing else is listed.
func (x *OpenAPIIndex) add(sources []OpenAPISource, reachable bool) {
	listed := map[string]bool{}
	if !reachable {
		for path := range x.servers {
			listed[path] = true
		}
		for path := range x.own {
			listed[path] = true
		}
	}
	for _, s := range sources {
		if s.Reachable != reachable {
			continue
		}
		for path, link := range s.Paths {
			if !listed[path] {
				x.servers[path] = append(x.servers[path], documentOf{s.Server, hashOf(link)})
			}
		}
	}
}

// hashOf returns the hash in a serverRelativeURL, "" if there is none.
func hashOf(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return ""
	}
	return u.Query().Get("hash")
}

func (x *OpenAPIIndex) render() {
	type entry struct {
		ServerRelativeURL string `json:"serverRelativeURL"`
	}
	paths := map[string]entry{}
	for path, docs := range x.servers {
		paths[path] = entry{documentURL(path, docs[0].hash)}
	}
	for path, hash := range x.own {
		paths[path] = entry{documentURL(path, hash)}
	}
	x.body, _ = json.Marshal(map[string]any{"paths": paths}) // strings only
	x.etag = quotedHash(x.body)
}

// documentURL writes the URL anew rather than repeat what a server said, so that
// no server can send clients elsewhere.
func documentURL(path, hash string) string {
	u := url.URL{Path: "/openapi/v3/" + path}
	if hash != "" {
		u.RawQuery = url.Values{"hash": {hash}}.Encode()
	}
	return u.String()
}

// Answer answers GET and HEAD of /openapi/v3.
func (x *OpenAPIIndex) Answer(ifNoneMatch string) *Answer {
	if matchesETag(ifNoneMatch, x.etag) {
		return &Answer{Status: http.StatusNotModified, ETag: x.etag}
	}
	return &Answer{Status: http.StatusOK, ContentType: "application/json", ETag: x.etag, Body: x.body}
}

// Servers returns the servers to ask for the document of path ("apis/apps/v1"):
// those whose document has that hash (the hash= of the request, may be empty), or
// all that have the document where none has that hash. Clients keep a document for
// ever under its hash, so a server that has another one must not answer for it;
// asked nevertheless, a kube-apiserver redirects to the hash that it has. None: the
// path is not listed, or is the proxy's own.
func (x *OpenAPIIndex) Servers(path, hash string) []string {
	var same, all []string
	for _, d := range x.servers[path] {
		all = append(all, d.server)
		if d.hash == hash {
			same = append(same, d.server)
		}
	}
	if len(same) > 0 {
		return same
	}
	return all
}

// Own returns the hash of the document of path if the proxy answers it itself.
func (x *OpenAPIIndex) Own(path string) (hash string, ok bool) {
	hash, ok = x.own[path]
	return hash, ok
}
