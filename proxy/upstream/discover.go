package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

const (
	// documentTimeout bounds reading one document of a server.
	documentTimeout = 30 * time.Second

	// maxDiscoveryBytes bounds one discovery document. A cluster with 2,000 CRDs has
	// about 3 MB.
	maxDiscoveryBytes = 32 << 20

	// maxVersionBytes bounds /version, which is half a kilobyte.
	maxVersionBytes = 64 << 10

	// maxLegacyVersions bounds how many documents unaggregated discovery may take.
	maxLegacyVersions = 5000

	// legacyPolls is how many polls unaggregated discovery, which has no ETag and
	// takes a request for each group version, is read once in; also when the list of
	// groups changed or something was missing.
	legacyPolls = 5
)

// acceptDiscovery asks for aggregated discovery of the server itself: without
// profile=nopeer a server of 1.36 and later lists its peers' resources as its own.
// Older servers ignore the parameter, or take one of the next types.
const acceptDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer," +
	"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList," +
	"application/json"

// discovery reads what one server serves.
type discovery struct {
	get func(ctx context.Context, target string, header wire.Header, limit int64) (*Document, error)

	mu        sync.Mutex // held while polling
	core, all source
	problem   string        // as last logged
	last      serverVersion // as last read
	whole     time.Time     // when version and both documents were last read
	suspect   atomic.Bool   // they are to be read again
}

// source is one of the two discovery entry points, and what it last said.
type source struct {
	etag   string
	digest [sha256.Size]byte
	groups []apidiscoveryv2.APIGroupDiscovery

	legacy  bool // the last answer was unaggregated
	age     int  // polls since it was read whole
	partial bool // some of it could not be read
}

// watchAPIs polls version and discovery while the server is healthy, at its interval
// and often while an event's effect is awaited. A server that is not would say too
// little while it starts; what was known of it stays, as stale.
func (m *member) watchAPIs(ctx context.Context) {
	paced(ctx, m.apisNow, func() pause {
		start := time.Now()
		if m.state().Healthy {
			m.read(ctx, m.discovery.due(m.pool.cfg.DiscoveryInterval))
		}
		return pauseAfter(time.Since(start), m.pool.cfg.DiscoveryInterval, m.news.waiting(m.state()).discovery)
	})
}

// depth is how much of version and discovery a poll reads.
type depth byte

const (
	// pollUsual reads all, but unaggregated documents of group versions only now and
	// then.
	pollUsual depth = iota

	// pollGroups reads, all of it, what CRDs and APIServices can change.
	pollGroups

	// pollAll reads all.
	pollAll
)

// due is what to read now, if interval is the one at which all is read.
func (d *discovery) due(interval time.Duration) depth {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.suspect.Swap(false):
		return pollAll
	case time.Since(d.whole) >= interval:
		return pollUsual
	}
	return pollGroups
}

// discover reads all of the server's version and discovery once and updates its state.
// It reports whether that succeeded.
func (m *member) discover(ctx context.Context) bool { return m.read(ctx, pollAll) }

// read reads the server's version and discovery once and updates its state. It reports
// whether that succeeded. What an unhealthy server serves stays marked as stale, since
// it is not polled any more.
func (m *member) read(ctx context.Context, deep depth) bool {
	m.discovery.mu.Lock()
	defer m.discovery.mu.Unlock()
	version, changed, err := m.discovery.poll(ctx, deep)
	if err != nil {
		m.discoveryFailed(ctx, err)
		return false
	}
	m.discovery.problem = ""
	groups := append(append([]apidiscoveryv2.APIGroupDiscovery(nil), m.discovery.core.groups...), m.discovery.all.groups...)
	m.update(func(s *State) bool {
		changed = changed || !s.Synced
		significant := changed || s.Problem != "" || s.Stale != !s.Healthy || version.differs(s)
		version.apply(s)
		s.Synced, s.Stale, s.Problem, s.LastDiscovery = true, !s.Healthy, "", time.Now()
		if changed {
			s.Groups, s.index = groups, indexGroups(groups)
		}
		return significant
	})
	if changed {
		m.log.Info("upstream capabilities changed", "version", version.gitVersion, "groups", len(groups), "resources", len(m.state().index))
		if !m.watchesCRDs() {
			m.details.relist.Store(true)
		}
		wake(m.detailsNow)
	}
	return true
}

// discoveryFailed keeps what is known, as stale.
func (m *member) discoveryFailed(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return // the pool ends
	}
	m.update(func(s *State) bool {
		changed := s.Synced && !s.Stale || s.Problem != err.Error()
		s.Stale, s.Problem = s.Synced, err.Error()
		return changed
	})
	if problem := err.Error(); problem != m.discovery.problem {
		m.discovery.problem = problem
		m.log.Warn("cannot read what the upstream serves, what is known of it stays", "error", err)
	}
}

// poll reads version and entry points. Nothing is taken over unless all could be read.
func (d *discovery) poll(ctx context.Context, deep depth) (v serverVersion, changed bool, err error) {
	v, core := d.last, d.core
	start, coreChanged := time.Now(), false
	if deep != pollGroups {
		if v, err = d.version(ctx); err != nil {
			return v, false, err
		}
		if core, coreChanged, err = d.read(ctx, "/api", d.core, deep); err != nil {
			return v, false, err
		}
	}
	all, allChanged, err := d.read(ctx, "/apis", d.all, deep)
	if err != nil {
		return v, false, err
	}
	d.last, d.core, d.all = v, core, all
	if deep != pollGroups {
		d.whole = start
	}
	return v, coreChanged || allChanged, nil
}

// root is any document that an entry point may answer with.
type root struct {
	Kind     string                             `json:"kind"`
	Items    []apidiscoveryv2.APIGroupDiscovery `json:"items"`    // APIGroupDiscoveryList, v2 or v2beta1
	Versions []string                           `json:"versions"` // APIVersions, of /api
	Groups   []metav1.APIGroup                  `json:"groups"`   // APIGroupList, of /apis
}

// read polls one entry point and returns its new state.
func (d *discovery) read(ctx context.Context, target string, old source, deep depth) (source, bool, error) {
	header := wire.Header{{Name: "Accept", Value: acceptDiscovery}}
	if old.etag != "" {
		header.Add("If-None-Match", old.etag)
	}
	doc, err := d.document(ctx, target, header)
	switch {
	case err != nil:
		return old, false, err
	case doc.Status == 304 && old.etag != "":
		return old, false, nil
	case doc.Status == 404: // an API server without this half
		return source{}, len(old.groups) > 0, nil
	case doc.Status != 200:
		return old, false, fmt.Errorf("GET %s answered %d", target, doc.Status)
	}
	next := source{etag: doc.Header.Get("ETag"), digest: sha256.Sum256(doc.Body), age: old.age + 1}
	same := next.digest == old.digest
	if same && (!old.legacy || (deep == pollUsual && next.age < legacyPolls && !old.partial)) {
		old.age = next.age
		if !old.legacy {
			old.etag = next.etag
		}
		return old, false, nil
	}
	return d.parse(ctx, target, doc.Body, next, old)
}

func (d *discovery) parse(ctx context.Context, target string, body []byte, next, old source) (source, bool, error) {
	var r root
	if err := json.Unmarshal(body, &r); err != nil {
		return old, false, fmt.Errorf("cannot parse the answer to GET %s: %w", target, err)
	}
	next.age = 0
	switch r.Kind {
	case "APIGroupDiscoveryList":
		next.groups = r.Items
		keepStale(next.groups, old.groups)
		return next, true, nil
	case "APIVersions", "APIGroupList":
		next.legacy, next.etag = true, "" // a 304 would say nothing of the group versions
		if err := d.readLegacy(ctx, &r, &next, old.groups); err != nil {
			return old, false, err
		}
		return next, !reflect.DeepEqual(next.groups, old.groups), nil
	}
	return old, false, fmt.Errorf("GET %s answered with kind %q: want APIGroupDiscoveryList, APIGroupList or APIVersions", target, preview(r.Kind))
}

func (d *discovery) document(ctx context.Context, target string, header wire.Header) (*Document, error) {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	return d.get(ctx, target, header, maxDiscoveryBytes)
}

// keepStale gives the group versions that the server itself calls stale the resources
// that they were last seen with: an aggregated API that is down for a moment is not
// gone.
func keepStale(groups, old []apidiscoveryv2.APIGroupDiscovery) {
	for g := range groups {
		for v := range groups[g].Versions {
			version := &groups[g].Versions[v]
			if version.Freshness != apidiscoveryv2.DiscoveryFreshnessStale {
				continue
			}
			if known := findVersion(old, groups[g].Name, version.Version); known != nil {
				version.Resources = known.Resources
			}
		}
	}
}

// findVersion returns a group version of groups, or nil.
func findVersion(groups []apidiscoveryv2.APIGroupDiscovery, group, version string) *apidiscoveryv2.APIVersionDiscovery {
	for g := range groups {
		if groups[g].Name != group {
			continue
		}
		for v := range groups[g].Versions {
			if groups[g].Versions[v].Version == version {
				return &groups[g].Versions[v]
			}
		}
	}
	return nil
}
