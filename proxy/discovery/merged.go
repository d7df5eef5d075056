package discovery

import (
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Merged is the discovery that clients see. It never changes and may be used
// by any number of goroutines. The nil Merged is empty.
type Merged struct {
	sources     []Source     // what it was made from, newest server first
	conversions []Conversion // sorted

	groups    []apidiscoveryv2.APIGroupDiscovery
	resources map[schema.GroupVersionResource]*apidiscoveryv2.APIResourceDiscovery
	converted map[schema.GroupVersionResource]bool
	preferred map[string]string // by group
	documents map[documentKey]*document
}

// Empty reports that no server has said anything yet. The caller then answers
// discovery with 503: an empty list would make clients believe that there are no
// APIs, and forget those that they know.
func (m *Merged) Empty() bool { return m == nil || len(m.groups) == 0 }

// Has reports whether clients see resource (the plural name, without a
// subresource), served by a server, stale, or by conversion.
func (m *Merged) Has(group, version, resource string) bool {
	_, ok := m.Resource(group, version, resource)
	return ok
}

// Resource returns how clients see resource. The result must not be changed.
func (m *Merged) Resource(group, version, resource string) (*apidiscoveryv2.APIResourceDiscovery, bool) {
	if m == nil {
		return nil, false
	}
	r, ok := m.resources[schema.GroupVersionResource{Group: group, Version: version, Resource: resource}]
	return r, ok
}

// Converted reports whether resource is listed only because the proxy converts
// it: no server is known to serve it.
func (m *Merged) Converted(group, version, resource string) bool {
	return m != nil && m.converted[schema.GroupVersionResource{Group: group, Version: version, Resource: resource}]
}

// PreferredVersion returns the version of group that clients are told to prefer.
func (m *Merged) PreferredVersion(group string) (string, bool) {
	if m == nil {
		return "", false
	}
	v, ok := m.preferred[group]
	return v, ok
}

// madeOf reports whether m is the merge of just that.
func (m *Merged) madeOf(sources []Source, conversions []Conversion) bool {
	return m != nil && slices.EqualFunc(m.sources, sources, Source.same) && slices.Equal(m.conversions, conversions)
}

// newMerged makes the value that clients see from the finished groups.
func newMerged(sources []Source, conversions []Conversion, groups []*mergedGroup, previous *Merged) *Merged {
	m := &Merged{
		sources: sources, conversions: conversions,
		resources: map[schema.GroupVersionResource]*apidiscoveryv2.APIResourceDiscovery{},
		converted: map[schema.GroupVersionResource]bool{},
		preferred: map[string]string{},
	}
	for _, g := range groups {
		m.groups = append(m.groups, g.discovery())
		m.preferred[g.name] = g.versions[0].name
		for _, v := range g.versions {
			for i := range v.resources {
				r := &v.resources[i]
				gvr := schema.GroupVersionResource{Group: g.name, Version: v.name, Resource: r.Resource}
				m.resources[gvr] = r
				if v.added[r.Resource] {
					m.converted[gvr] = true
				}
			}
		}
	}
	m.documents = newDocuments(m.groups, previous)
	return m
}
