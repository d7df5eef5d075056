package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

const (
	crdsTarget = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

	// acceptMetadata asks for the metadata of the CRDs only, which tells cheaply which
	// of them changed: their schemas are most of their bytes.
	acceptMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

	// crdPage is how many CRDs one page of the list has; maxCRDPages bounds the list.
	crdPage     = 500
	maxCRDPages = 40

	// maxCRDListBytes bounds one page: metadata is a few kilobytes a CRD.
	maxCRDListBytes = 64 << 20

	// maxCRDBytes bounds one CRD. etcd takes 1.5 MiB by default.
	maxCRDBytes = 16 << 20
)

var errCRDsForbidden = errors.New("the server does not let MVP's own credential list them: " +
	"grant get and list of customresourcedefinitions.apiextensions.k8s.io")

// crdObject is what is read of a CustomResourceDefinition. Everything else in it is
// ignored, whatever it is.
type crdObject struct {
	Metadata struct {
		Name            string `json:"name"`
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Spec *struct {
		Group string `json:"group"`
		Names struct {
			Plural string `json:"plural"`
			Kind   string `json:"kind"`
		} `json:"names"`
		Versions []struct {
			Name    string `json:"name"`
			Served  bool   `json:"served"`
			Storage bool   `json:"storage"`
			Schema  struct {
				OpenAPIV3Schema json.RawMessage `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

// readCRDs brings the state's CRDs up to date.
func (m *member) readCRDs(ctx context.Context) error {
	list, err := m.listCRDs(ctx)
	if errors.Is(err, errCRDsForbidden) {
		m.update(func(s *State) bool {
			changed := !s.CRDsForbidden
			s.CRDsForbidden = true
			return changed
		})
		return err
	}
	if err != nil {
		return err
	}
	old := m.state().CRDs
	crds, changed := make(map[string]*CRD, len(list)), old == nil || len(list) != len(old)
	for i := range list {
		crd, err := m.crd(ctx, &list[i])
		if err != nil {
			return err
		}
		if crd == nil {
			continue
		}
		name := list[i].Metadata.Name
		crds[name] = crd
		changed = changed || crd != old[name]
	}
	if changed || m.state().CRDsForbidden {
		m.update(func(s *State) bool { s.CRDs, s.CRDsForbidden = crds, false; return true })
	}
	return nil
}

// listCRDs lists the metadata of all CRDs. A server without them has none.
func (m *member) listCRDs(ctx context.Context) ([]crdObject, error) {
	var all []crdObject
	next := ""
	for range maxCRDPages {
		var page struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []crdObject `json:"items"`
		}
		target := fmt.Sprintf("%s?limit=%d", crdsTarget, crdPage)
		if next != "" {
			target += "&continue=" + url.QueryEscape(next)
		}
		found, err := m.getJSON(ctx, target, acceptMetadata, maxCRDListBytes, &page)
		if err != nil || !found {
			return nil, err
		}
		all = append(all, page.Items...)
		if next = page.Metadata.Continue; next == "" {
			return all, nil
		}
	}
	return nil, fmt.Errorf("the server has more than %d CustomResourceDefinitions", crdPage*maxCRDPages)
}

// crd returns the CRD that a list names: the one that is known, of this server or of
// another one on the same etcd, or a new one. Nil if it is gone.
func (m *member) crd(ctx context.Context, listed *crdObject) (*CRD, error) {
	for _, s := range m.pool.View().Servers {
		known := s.CRDs[listed.Metadata.Name]
		if known.is(listed) {
			return known, nil
		}
	}
	if listed.Spec != nil { // the server gives whole objects
		return newCRD(listed), nil
	}
	var o crdObject
	found, err := m.getJSON(ctx, crdsTarget+"/"+url.PathEscape(listed.Metadata.Name), "application/json", maxCRDBytes, &o)
	if err != nil || !found || o.Spec == nil {
		return nil, err
	}
	return newCRD(&o), nil
}

// is reports whether c is what listed names, unchanged.
func (c *CRD) is(listed *crdObject) bool {
	return c != nil && c.resourceVersion != "" &&
		c.uid == listed.Metadata.UID && c.resourceVersion == listed.Metadata.ResourceVersion
}

func newCRD(o *crdObject) *CRD {
	crd := &CRD{
		Group: o.Spec.Group, Plural: o.Spec.Names.Plural, Kind: o.Spec.Names.Kind,
		Versions: make(map[string]CRDVersion, len(o.Spec.Versions)),
		uid:      o.Metadata.UID, resourceVersion: o.Metadata.ResourceVersion,
	}
	for _, v := range o.Spec.Versions {
		crd.Versions[v.Name] = CRDVersion{Served: v.Served, Storage: v.Storage, Schema: v.Schema.OpenAPIV3Schema}
	}
	return crd
}

// getJSON reads a JSON document into out. It reports false for 404.
func (m *member) getJSON(ctx context.Context, target, accept string, limit int64, out any) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	doc, err := m.server.Get(ctx, target, wire.Header{{Name: "Accept", Value: accept}}, limit)
	switch {
	case err != nil:
		return false, err
	case doc.Status == 404:
		return false, nil
	case doc.Status == 401 || doc.Status == 403:
		return false, errCRDsForbidden
	case doc.Status != 200:
		return false, fmt.Errorf("GET %s answered %d", target, doc.Status)
	}
	if err := json.Unmarshal(doc.Body, out); err != nil {
		return false, fmt.Errorf("cannot parse the answer to GET %s: %w", target, err)
	}
	return true, nil
}
