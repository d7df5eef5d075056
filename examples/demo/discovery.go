package demo

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const discoveryGroup = "apidiscovery.k8s.io"

// aggregatedType is the content type of aggregated discovery in a version of it.
func aggregatedType(version string) string {
	return jsonType + ";g=" + discoveryGroup + ";v=" + version + ";as=APIGroupDiscoveryList"
}

// serveDiscovery answers for /api, /api/VERSION, /apis, /apis/GROUP and
// /apis/GROUP/VERSION, which parts are the elements of.
func (s *Server) serveDiscovery(w http.ResponseWriter, r *http.Request, parts []string) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return errNotFound
	}
	kinds := s.kinds()
	legacy := parts[0] == "api"
	var body any
	switch {
	case len(parts) == 1:
		return s.serveRoot(w, r, kinds, legacy)
	case legacy:
		body = resourceList(kinds, "", parts[1])
	case len(parts) == 2:
		body = apiGroup(kinds, parts[1])
	default:
		body = resourceList(kinds, parts[1], parts[2])
	}
	if body == nil {
		return errNotFound
	}
	return writeJSON(w, http.StatusOK, body)
}

// serveRoot answers for /api and /apis, in the first form of the Accept header.
func (s *Server) serveRoot(w http.ResponseWriter, r *http.Request, kinds []*kind, legacy bool) error {
	w.Header().Set("Vary", "Accept")
	version, err := discoveryVersion(r.Header.Get("Accept"))
	if err != nil {
		return err
	}
	switch {
	case version != "":
		data, err := json.Marshal(aggregated(kinds, version, legacy))
		if err != nil {
			return fmt.Errorf("cannot encode the discovery document: %w", err)
		}
		return writeTagged(w, r, aggregatedType(version), data)
	case legacy:
		return writeJSON(w, http.StatusOK, s.apiVersions())
	}
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, name := range groups(kinds) {
		if name != "" {
			list.Groups = append(list.Groups, *groupOf(kinds, name))
		}
	}
	return writeJSON(w, http.StatusOK, list)
}

// discoveryVersion returns the version of aggregated discovery that a client
// prefers, empty for the unaggregated form.
func discoveryVersion(accept string) (string, error) {
	if accept == "" {
		return "", nil
	}
	for clause := range strings.SplitSeq(accept, ",") {
		mediaType, params, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		switch mediaType {
		case jsonType, "application/*", "*/*":
		default:
			continue
		}
		version := params["v"]
		switch {
		case params["as"] == "":
			return "", nil
		case params["as"] == "APIGroupDiscoveryList" && params["g"] == discoveryGroup && (version == "v2" || version == "v2beta1"):
			return version, nil
		}
	}
	return "", notAcceptable(jsonType + ", " + aggregatedType("v2") + ", " + aggregatedType("v2beta1"))
}

// writeTagged answers with an ETag, and with 304 to a client that has this answer.
func writeTagged(w http.ResponseWriter, r *http.Request, contentType string, data []byte) error {
	etag := `"` + hashOf(data) + `"`
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "public")
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(data)
	return wrapWrite(err)
}

func hashOf(data []byte) string { return fmt.Sprintf("%X", sha256.Sum256(data)) }

func (s *Server) apiVersions() *metav1.APIVersions {
	address := s.URL()
	if u, err := url.Parse(address); err == nil {
		address = u.Host
	}
	return &metav1.APIVersions{
		TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
		Versions:                   []string{"v1"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: address}},
	}
}

// apiGroup answers for /apis/GROUP; nil: there is no such group.
func apiGroup(kinds []*kind, name string) any {
	group := groupOf(kinds, name)
	if group == nil {
		return nil
	}
	group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
	return group
}

func groupOf(kinds []*kind, name string) *metav1.APIGroup {
	names := versions(kinds, name)
	if len(names) == 0 || name == "" {
		return nil
	}
	group := &metav1.APIGroup{Name: name}
	for _, v := range names {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + v, Version: v})
	}
	group.PreferredVersion = group.Versions[0]
	return group
}

// verbs are those of every resource here.
var verbs = metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// A subresource is one of a kind, as discovery lists it.
type subresource struct {
	name     string
	verbs    metav1.Verbs
	response metav1.GroupVersionKind
}

func (k *kind) subresources() []subresource {
	own := metav1.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
	var list []subresource
	if k.logs {
		list = append(list, subresource{"log", metav1.Verbs{"get"}, own})
	}
	if k.scale != nil {
		scale := metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
		list = append(list, subresource{"scale", metav1.Verbs{"get", "patch", "update"}, scale})
	}
	if k.status {
		list = append(list, subresource{"status", metav1.Verbs{"get", "patch", "update"}, own})
	}
	return list
}

// storageHash tells clients, in discovery, which resources are the same in store.
func (k *kind) storageHash() string { return hashOf([]byte(k.Group + "/" + k.plural))[:12] }

// resourceList answers for a group and version; nil: it is not served.
func resourceList(kinds []*kind, group, version string) any {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}}
	for _, k := range kinds {
		if k.Group != group || k.Version != version {
			continue
		}
		list.GroupVersion = k.GroupVersion().String()
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: k.plural, SingularName: k.singular, Namespaced: k.namespaced, Kind: k.Kind,
			Verbs: verbs, ShortNames: k.shortNames, Categories: k.categories, StorageVersionHash: k.storageHash(),
		})
		for _, sub := range k.subresources() {
			r := metav1.APIResource{Name: k.plural + "/" + sub.name, Namespaced: k.namespaced, Kind: sub.response.Kind, Verbs: sub.verbs}
			if sub.response.Group != k.Group {
				r.Group, r.Version = sub.response.Group, sub.response.Version
			}
			list.APIResources = append(list.APIResources, r)
		}
	}
	if list.GroupVersion == "" {
		return nil
	}
	if group != "" {
		list.APIVersion = "v1"
	}
	return list
}

// aggregated is the list of all groups of /api (legacy) or /apis. Its versions v2
// and v2beta1 differ in their name only.
func aggregated(kinds []*kind, version string, legacy bool) *apidiscovery.APIGroupDiscoveryList {
	list := &apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: discoveryGroup + "/" + version},
	}
	for _, name := range groups(kinds) {
		if (name == "") != legacy {
			continue
		}
		group := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, v := range versions(kinds, name) {
			group.Versions = append(group.Versions, aggregatedVersion(kinds, name, v))
		}
		list.Items = append(list.Items, group)
	}
	return list
}

func aggregatedVersion(kinds []*kind, group, version string) apidiscovery.APIVersionDiscovery {
	out := apidiscovery.APIVersionDiscovery{Version: version, Freshness: apidiscovery.DiscoveryFreshnessCurrent}
	for _, k := range kinds {
		if k.Group != group || k.Version != version {
			continue
		}
		r := apidiscovery.APIResourceDiscovery{
			Resource:         k.plural,
			ResponseKind:     &metav1.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind},
			Scope:            apidiscovery.ScopeCluster,
			SingularResource: k.singular,
			Verbs:            verbs,
			ShortNames:       k.shortNames,
			Categories:       k.categories,
		}
		if k.namespaced {
			r.Scope = apidiscovery.ScopeNamespace
		}
		for _, sub := range k.subresources() {
			response := sub.response
			r.Subresources = append(r.Subresources, apidiscovery.APISubresourceDiscovery{
				Subresource: sub.name, ResponseKind: &response, Verbs: sub.verbs,
			})
		}
		out.Resources = append(out.Resources, r)
	}
	return out
}
