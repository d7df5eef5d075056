package discovery

import (
	"encoding/json"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxStorageHashes bounds how many resources of one group version are looked at.
// The core group, the largest, has 60 with their subresources.
const maxStorageHashes = 10_000

// StorageHashes reads the storageVersionHash of each resource out of an
// APIResourceList in JSON, as a server answers for one group version. Aggregated
// discovery, of which documents are made otherwise, does not have them. What is no
// such list has none.
func StorageHashes(list []byte) map[string]string {
	var in struct {
		Kind      string `json:"kind"`
		Resources []struct {
			Name string `json:"name"`
			Hash string `json:"storageVersionHash"`
		} `json:"resources"`
	}
	if json.Unmarshal(list, &in) != nil || in.Kind != "APIResourceList" || len(in.Resources) > maxStorageHashes {
		return nil
	}
	hashes := map[string]string{}
	for _, r := range in.Resources {
		if r.Hash != "" {
			hashes[r.Name] = r.Hash
		}
	}
	return hashes
}

// Resources lists the resources of one group version that servers, not conversions,
// serve; their hashes are to be had from those servers.
func (m *Merged) Resources(group, version string) []string {
	if m == nil {
		return nil
	}
	var names []string
	for _, g := range m.groups {
		if g.Name != group {
			continue
		}
		for _, v := range g.Versions {
			for i := range v.Resources {
				if name := v.Resources[i].Resource; v.Version == version && !m.Converted(group, version, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// withStorageHashes returns the document of one group version with the hashes that
// are known. Servers say the same nearly always, so the last one made is kept.
func (d *document) withStorageHashes(hashes map[string]string) *document {
	list, ok := d.object.(*metav1.APIResourceList)
	if !ok {
		return d
	}
	if last := d.hashed.Load(); last != nil && maps.Equal(last.hashes, hashes) {
		return last.document
	}
	withHashes := *list
	withHashes.APIResources = append([]metav1.APIResource{}, list.APIResources...)
	for i := range withHashes.APIResources {
		r := &withHashes.APIResources[i]
		if !strings.Contains(r.Name, "/") {
			r.StorageVersionHash = hashes[r.Name]
		}
	}
	next := &hashedDocument{maps.Clone(hashes), &document{object: &withHashes}}
	d.hashed.Store(next)
	return next.document
}

// A hashedDocument is a document with the storage hashes that were put into it.
type hashedDocument struct {
	hashes   map[string]string
	document *document
}
