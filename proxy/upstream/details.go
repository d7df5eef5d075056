package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// maxOpenAPIIndexBytes bounds /openapi/v3, a line for each group version.
const maxOpenAPIIndexBytes = 4 << 20

// listRounds is how many intervals the list of all CRDs is read once in while a watch
// tells of their changes.
const listRounds = 12

// details reads what is needed of a server beside discovery: the index of its OpenAPI
// v3 documents and its CRDs.
type details struct {
	indexETag string
	listed    time.Time   // when all CRDs were read
	relist    atomic.Bool // they are to be read again
	problems  [4]string   // of OpenAPI, of CRDs and of the watches, as last logged
}

// watchDetails reads the details while the server is healthy, at its interval and at
// once when discovery changed or an event announced something. OpenAPI and CRDs lag
// behind discovery or run ahead of it, so that the interval is needed. It also runs the
// watches that the events come from.
func (m *member) watchDetails(ctx context.Context) {
	defer m.unfollow()
	paced(ctx, m.detailsNow, func() pause {
		start := time.Now()
		m.follow(ctx)
		if m.state().Healthy {
			m.readDetails(ctx)
		}
		return pauseAfter(time.Since(start), m.pool.cfg.CRDInterval, m.news.waiting(m.state()).details)
	})
}

func (m *member) readDetails(ctx context.Context) {
	all := m.details.relist.Swap(false) || m.listDue()
	start := time.Now()
	err := m.readCRDs(ctx, all)
	switch {
	case err != nil:
		m.details.listed = time.Time{}
	case all:
		m.details.listed = start
	}
	m.report(1, "cannot read CustomResourceDefinitions, schemas of converted kinds stay unknown", err)
	m.report(0, "cannot read the OpenAPI index", m.readOpenAPI(ctx))
	if ctx.Err() == nil {
		m.firstRoundDone()
	}
}

// listDue reports whether all CRDs are to be read, not only those that were announced.
func (m *member) listDue() bool {
	age := time.Since(m.details.listed)
	if m.watchesCRDs() {
		return age >= listRounds*m.pool.cfg.CRDInterval
	}
	return age >= m.pool.cfg.CRDInterval
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
