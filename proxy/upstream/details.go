package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// maxOpenAPIIndexBytes bounds /openapi/v3, a line for each group version.
const maxOpenAPIIndexBytes = 4 << 20

// details reads what is needed of a server beside discovery: the index of its OpenAPI
// v3 documents and its CRDs.
type details struct {
	indexETag string
	problems  [2]string // of OpenAPI and of CRDs, as last logged
}

// watchDetails reads the details while the server is healthy, at its interval and at
// once when discovery changed. OpenAPI and CRDs lag behind discovery or run ahead of
// it, so that the interval is needed.
func (m *member) watchDetails(ctx context.Context) {
	every(ctx, m.pool.cfg.CRDInterval, m.detailsNow, func() {
		if !m.state().Healthy {
			return
		}
		m.report(0, "cannot read the OpenAPI index", m.readOpenAPI(ctx))
		m.report(1, "cannot read CustomResourceDefinitions, schemas of converted kinds stay unknown", m.readCRDs(ctx))
		if ctx.Err() == nil {
			m.firstRoundDone()
		}
	})
}

// report logs a problem when it is new, and remembers it.
func (m *member) report(which int, message string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != m.details.problems[which] {
		m.log.Warn(message, "error", err)
	}
	m.details.problems[which] = text
}

func (m *member) readOpenAPI(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	header := wire.Header{{Name: "Accept", Value: "application/json"}}
	if m.details.indexETag != "" {
		header.Add("If-None-Match", m.details.indexETag)
	}
	doc, err := m.server.Get(ctx, "/openapi/v3", header, maxOpenAPIIndexBytes)
	switch {
	case err != nil:
		return err
	case doc.Status == 304:
		return nil
	case doc.Status != 200:
		return fmt.Errorf("GET /openapi/v3 answered %d", doc.Status)
	}
	paths, err := parseOpenAPIIndex(doc.Body)
	if err != nil {
		return err
	}
	m.details.indexETag = doc.Header.Get("ETag")
	if !maps.Equal(paths, m.state().OpenAPIV3) {
		m.update(func(s *State) bool { s.OpenAPIV3 = paths; return true })
	}
	return nil
}

func parseOpenAPIIndex(body []byte) (map[string]string, error) {
	var index struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(body, &index); err != nil {
		return nil, fmt.Errorf("cannot parse the answer to GET /openapi/v3: %w", err)
	}
	paths := make(map[string]string, len(index.Paths))
	for path, item := range index.Paths {
		paths[path] = item.ServerRelativeURL
	}
	return paths, nil
}
