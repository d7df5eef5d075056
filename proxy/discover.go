package proxy

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mixed-version-proxy/mvp/proxy/discovery"
	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// discover answers what clients are told of the APIs: the union of what the
// servers serve, and what is served by conversion. Nil: the request asks for
// something else, or for a document that a server answers as well.
//
// A server is asked first, with the client's own credential, so that nobody sees
// of the merged discovery what kube-apiserver would not have shown him.
func (x *exchange) discover() (*front.Response, error) {
	if x.req.IsResource || !readOnly(x.in.Method) {
		return nil, nil
	}
	if x.req.Path == "/openapi/v2" {
		return x.discoverV2()
	}
	own, err := x.ownDocument(nil)
	if own == nil || err != nil {
		return nil, err
	}
	gv, isList := groupVersionOf(x.req.Path)
	var describers []*upstream.State
	if isList {
		describers = x.describers(gv)
	}
	if resp, err := x.authorize(describers); resp != nil || err != nil {
		return resp, err
	}
	if isList && own.Status == http.StatusOK {
		if hashes := x.storageHashes(gv, describers); len(hashes) > 0 {
			if own, err = x.ownDocument(hashes); own == nil || err != nil {
				return nil, err
			}
		}
	}
	x.discardAnswer()
	return ownResponse(own, x.in.Method), nil
}

// ownDocument finds the answer in the merged discovery; nil when there is none.
func (x *exchange) ownDocument(hashes map[string]string) (*discovery.Answer, error) {
	path := x.req.Path
	isAPI := path == "/api" || path == "/apis" || strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/apis/")
	if !isAPI && !isOpenAPIPath(path) {
		return nil, nil
	}
	if x.st.merged.Empty() {
		return nil, errNothingKnown
	}
	ifNoneMatch := x.joined("If-None-Match")
	if !isAPI {
		return x.st.openapi.answer(path, ifNoneMatch), nil
	}
	answer, ok := x.st.merged.Answer(discovery.Request{
		Head:          x.in.Method == http.MethodHead,
		Path:          path,
		Accept:        x.joined("Accept"),
		IfNoneMatch:   ifNoneMatch,
		Host:          x.in.Host,
		Pretty:        pretty(x.req.Query, x.req.UserAgent),
		StorageHashes: hashes,
	})
	if !ok {
		return nil, nil
	}
	return answer, nil
}

// errNothingKnown is the answer while discovery is empty: an empty list would make
// clients forget what they know.
var errNothingKnown = unavailable("no kube-apiserver has said yet what it serves")

// joined is all lines of a header that is a list.
func (x *exchange) joined(name string) string { return strings.Join(x.in.Header.Values(name), ",") }

func isOpenAPIPath(path string) bool {
	return path == "/openapi/v2" || path == "/openapi/v3" || strings.HasPrefix(path, "/openapi/v3/")
}

// discoverV2 answers OpenAPI v2. Nobody waits for a document, or has one made, before
// a server has said that he may see it.
func (x *exchange) discoverV2() (*front.Response, error) {
	if x.st.merged.Empty() {
		return nil, errNothingKnown
	}
	if x.s.v2.serversOwn() {
		return nil, nil
	}
	if resp, err := x.authorize(nil); resp != nil || err != nil {
		return resp, err
	}
	x.discardAnswer()
	document := x.s.v2.get(x.ctx)
	if document == nil {
		return nil, nil
	}
	answer, ok := document.Answer(x.joined("Accept"), x.joined("Accept-Encoding"), x.joined("If-None-Match"))
	if !ok {
		return nil, nil
	}
	return ownResponse(answer, x.in.Method), nil
}

// pretty reports whether kube-apiserver would indent JSON: the query says so, or,
// where it says nothing, the client is one that people use.
func pretty(query, userAgent string) bool {
	if values, err := url.ParseQuery(query); err == nil && values.Get("pretty") != "" {
		asked, _ := strconv.ParseBool(values.Get("pretty"))
		return asked
	}
	return slices.ContainsFunc([]string{"curl", "Wget", "Mozilla/5.0"}, func(prefix string) bool {
		return strings.HasPrefix(userAgent, prefix)
	})
}

// authorize asks a server for the same document in its smallest form: the first of
// describers where there are any and no policy routes. It returns the server's answer
// where that is a refusal, and nil where the client may see the document.
func (x *exchange) authorize(describers []*upstream.State) (*front.Response, error) {
	if len(describers) > 0 && !x.decision.Routes() {
		x.server = describers[0]
	} else if err := x.choose(); err != nil {
		return nil, err
	}
	if err := x.ask(x.in.Method); err != nil {
		return nil, err
	}
	switch status := x.answer.Status; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden,
		status == http.StatusTooManyRequests, status >= 500:
		return x.pass(), nil
	}
	return nil, nil
}

// ask sends the request to the chosen server, to learn what the server says of it.
func (x *exchange) ask(method string) error {
	header := x.header.Clone(3)
	header.DelName("If-None-Match")
	header.DelName("Range")
	header.Set("Accept", "application/json")
	header.Set("Accept-Encoding", "identity")
	if isOpenAPIPath(x.req.Path) {
		header.Set("If-None-Match", "*") // 304 instead of megabytes, once authorized
	}
	return x.forward(&upstream.Request{Method: method, Target: x.in.Target, Host: x.in.Host, Header: header})
}

// maxAuthorizeBody is how much of a server's own document is read: the unaggregated
// form of a busy cluster's largest group is less. The rest of a small document is
// cheaper to read than its connection is to make anew; what a larger one leaves
// unread takes the connection with it.
const maxAuthorizeBody = 256 << 10

// discardAnswer is done with the server's own document.
func (x *exchange) discardAnswer() {
	_, _ = io.CopyN(io.Discard, x.answer.Body, maxAuthorizeBody)
	_ = x.answer.Body.Close()
}

// groupVersionOf takes apart the path of a list of resources: /api/V or /apis/G/V.
func groupVersionOf(path string) (gv resource, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) == 2 && parts[0] == "api":
		return resource{version: parts[1]}, true
	case len(parts) == 3 && parts[0] == "apis":
		return resource{group: parts[1], version: parts[2]}, true
	}
	return resource{}, false
}

// describers are the servers that serve some of a group version and can be asked now,
// the newest first: the same whoever asks, so that all are told the same.
func (x *exchange) describers(gv resource) []*upstream.State {
	var servers []*upstream.State
	for _, name := range x.st.merged.Resources(gv.group, gv.version) {
		for _, s := range x.reachable(x.st.healthy[resource{gv.group, gv.version, name}]) {
			if !slices.Contains(servers, s) {
				servers = append(servers, s)
			}
		}
	}
	servers = oldestFirst(servers)
	slices.Reverse(servers)
	return servers
}

// storageHashes reads the storage versions of the resources of a group version, which
// aggregated discovery does not have, out of the servers' own lists: the one that the
// chosen server has just answered, and those of others for resources that only they
// have. Whom this fails, the document says nothing.
func (x *exchange) storageHashes(gv resource, describers []*upstream.State) map[string]string {
	hashes := map[string]string{}
	open := x.addHashes(hashes, gv, x.st.merged.Resources(gv.group, gv.version))
	asked := x.server
	for _, server := range describers {
		if server == asked || !servesAny(server, gv, open) {
			continue
		}
		x.discardAnswer()
		x.server = server
		if x.ask(http.MethodGet) != nil {
			break
		}
		open = x.addHashes(hashes, gv, open)
	}
	return hashes
}

func servesAny(server *upstream.State, gv resource, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return server.Serves(gv.group, gv.version, name) })
}

// addHashes takes the hashes out of the server's answer, and returns which of the
// resources in open another server must be asked for.
func (x *exchange) addHashes(hashes map[string]string, gv resource, open []string) []string {
	if x.answer.Status != http.StatusOK {
		return open
	}
	known := x.readHashes()
	return slices.DeleteFunc(open, func(name string) bool {
		served := x.server.Serves(gv.group, gv.version, name)
		if hash := known[name]; served && hash != "" {
			hashes[name] = hash
		}
		return served
	})
}

// readHashes reads the server's list; of one that breaks off nothing is taken.
func (x *exchange) readHashes() map[string]string {
	list, err := io.ReadAll(io.LimitReader(x.answer.Body, maxAuthorizeBody))
	if err != nil {
		return nil
	}
	return discovery.StorageHashes(list)
}

// ownResponse sends a document of MVP's own.
func ownResponse(d *discovery.Answer, method string) *front.Response {
	h := wire.Header{}
	for _, field := range []wire.Field{
		{Name: "Cache-Control", Value: d.CacheControl},
		{Name: "Content-Encoding", Value: d.Encoding},
		{Name: "Content-Type", Value: d.ContentType},
		{Name: "Etag", Value: d.ETag},
		{Name: "Vary", Value: d.Vary},
	} {
		if field.Value != "" {
			h = append(h, field)
		}
	}
	if method == http.MethodHead {
		h.Add("Content-Length", strconv.Itoa(len(d.Body)))
	}
	return &front.Response{
		Status: d.Status, Header: h, Bytes: d.Body,
		NoBody: method == http.MethodHead || d.Status == http.StatusNotModified,
	}
}
