package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	Status struct {
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

// readCRDs brings the state's CRDs up to date: all of them, or those that events have
// announced.
func (m *member) readCRDs(ctx context.Context, all bool) error {
	announced := m.news.unread()
	crds, err := m.state().CRDs, error(nil)
	switch {
	case all, crds == nil:
		crds, err = m.listedCRDs(ctx)
	case len(announced) > 0:
		crds, err = m.announcedCRDs(ctx, crds, announced)
	}
	if err != nil {
		if errors.Is(err, errCRDsForbidden) {
			m.forbidCRDs()
		}
		return err
	}
	m.setCRDs(crds)
	m.news.read(announced)
	return nil
}

func (m *member) forbidCRDs() {
	m.update(func(s *State) bool {
		changed := !s.CRDsForbidden
		s.CRDsForbidden = true
		return changed
	})
}

// setCRDs takes over the CRDs. That they have other resourceVersions is not
// significant: each change of a status gives them one.
func (m *member) setCRDs(crds map[string]*CRD) {
	if s := m.state(); !s.CRDsForbidden && s.CRDs != nil && maps.Equal(s.CRDs, crds) {
		return
	}
	m.update(func(s *State) bool {
		changed := s.CRDsForbidden || s.CRDs == nil || !maps.EqualFunc(s.CRDs, crds, (*CRD).equal)
		s.CRDs, s.CRDsForbidden = crds, false
		return changed
	})
}

// equal reports whether conversions see no difference.
func (c *CRD) equal(other *CRD) bool {
	return c == other || c.Group == other.Group && c.Plural == other.Plural && c.Kind == other.Kind &&
		maps.EqualFunc(c.Versions, other.Versions, CRDVersion.equal)
}

func (v CRDVersion) equal(other CRDVersion) bool {
	return v.Served == other.Served && v.Storage == other.Storage && bytes.Equal(v.Schema, other.Schema)
}

// listedCRDs reads all CRDs.
func (m *member) listedCRDs(ctx context.Context) (map[string]*CRD, error) {
	list, err := m.listCRDs(ctx)
	if err != nil {
		return nil, err
	}
	crds := make(map[string]*CRD, len(list))
	for i := range list {
		if err := m.readCRD(ctx, &list[i], crds); err != nil {
			return nil, err
		}
	}
	return crds, nil
}

// announcedCRDs is known with the announced CRDs as they are now.
func (m *member) announcedCRDs(ctx context.Context, known map[string]*CRD, announced map[string]*followedObject) (map[string]*CRD, error) {
	crds := maps.Clone(known)
	for name, object := range announced {
		delete(crds, name)
		if object == nil {
			continue
		}
		var o crdObject
		o.Metadata.Name, o.Metadata.UID, o.Metadata.ResourceVersion = name, object.uid, object.resourceVersion
		if err := m.readCRD(ctx, &o, crds); err != nil {
			return nil, err
		}
	}
	return crds, nil
}

// readCRD puts the CRD that a list or an event names into crds, unless it is gone.
func (m *member) readCRD(ctx context.Context, listed *crdObject, crds map[string]*CRD) error {
	crd, err := m.crd(ctx, listed)
	if err == nil && crd != nil {
		crds[listed.Metadata.Name] = crd
	}
	return err
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
	for _, c := range o.Status.Conditions {
		crd.established = crd.established || c.Type == "Established" && c.Status == "True"
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
