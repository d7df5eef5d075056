package upstream

import (
	"crypto/rand"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// InstanceHeader is the line by which proxies of this kind find out that requests
// would come back to them. Each sends its own name with its probes of /readyz, and
// only with those; kube-apiservers ignore it. A proxy that is asked so answers itself,
// with its own name first and then those of all proxies behind it. So a server is
// never healthy that is the proxy itself, or would send requests back to it.
const InstanceHeader = "Mvp-Instance"

// maxInstances bounds how many names of proxies are kept of one server: far more than
// anyone puts one behind the other.
const maxInstances = 64

// instance is what proxies are called for each other.
type instance string

func newInstance() instance { return instance(rand.Text()) }

// Instances are the names of this proxy, first, and of those behind it.
func (p *Pool) Instances() []string {
	names := []string{string(p.instance)}
	for _, m := range p.current() {
		behind := m.instances.Load()
		if behind == nil {
			continue
		}
		for _, name := range *behind {
			if len(names) < maxInstances && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// greeting is the header of a probe.
func (i instance) greeting() wire.Header {
	return wire.Header{{Name: InstanceHeader, Value: string(i)}}
}

// leadsBack notes which proxies a probe's answer tells of, and says in words for an
// operator when this one is among them; "" when it is not. doc may be nil.
func (m *member) leadsBack(doc *Document) (reason string) {
	if doc == nil {
		return "" // as far as anyone remembers
	}
	names := instancesOf(doc.Header)
	m.instances.Store(&names)
	switch slices.Index(names, string(m.pool.instance)) {
	case -1:
		return ""
	case 0:
		return "it is this proxy itself: take it out of its servers"
	}
	return "it is a proxy that has this one behind it, so requests would come back: take one out of the other's servers"
}

func instancesOf(h wire.Header) (names []string) {
	const maxName = 64 // bytes
	for _, value := range h.Values(InstanceHeader) {
		for name := range strings.SplitSeq(value, ",") {
			name = strings.TrimSpace(name)
			if validToken(name) && len(name) <= maxName && len(names) < maxInstances {
				names = append(names, name)
			}
		}
	}
	return names
}
