package upstream

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"time"
)

// newsPatience is how long a server's documents are read often after an event, in the
// hope that they show what it announced. Those of discovery follow an event by tens to
// hundreds of milliseconds, OpenAPI's by a second or two.
const newsPatience = 5 * time.Second

// news is what the watches of a server have announced and its documents do not show
// yet. It is safe for concurrent use.
type news struct {
	mu    sync.Mutex
	items map[newsKey]*announcement
}

// newsKey names an object: a CRD ("widgets.example.com") or an APIService
// ("v1.example.com").
type newsKey struct{ resource, name string }

// announcement is the news of one object.
type announcement struct {
	at time.Time // of the last event

	// crd says what a CRD is expected to change; nil for an APIService.
	crd *crdNews

	// An APIService's group version, and whether discovery must show it or not. With
	// touched, it is not known what will change, if anything.
	group, version string
	listed         bool
	touched        bool
}

// crdNews compares a CRD before an event with what it is now.
type crdNews struct {
	object  *followedObject // as announced; nil: it is gone
	unread  bool            // and not in the state yet
	touched bool            // more than its status changed
	old     *CRD            // nil: there was none
	openAPI map[string]string
}

// crdEvent takes in an event of a CRD. s is the state of the server.
func (n *news) crdEvent(e event, s *State) {
	touched := e.old == nil || e.new == nil || e.old.generation != e.new.generation
	n.mu.Lock()
	defer n.mu.Unlock()
	key := newsKey{crdResource.Resource, e.name}
	a := n.items[key]
	if a == nil { // else what was before the first of the events counts
		a = &announcement{crd: &crdNews{old: s.CRDs[e.name], openAPI: s.OpenAPIV3}}
		n.put(key, a)
	}
	a.at, a.crd.object, a.crd.unread = time.Now(), e.new, true
	a.crd.touched = a.crd.touched || touched
}

// apiServiceEvent takes in an event of an APIService. Changes of those that the server
// manages itself say nothing.
func (n *news) apiServiceEvent(e event) {
	version, group, ok := strings.Cut(e.name, ".")
	touched := e.old != nil && e.new != nil
	if !ok || touched && e.new.managed {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.put(newsKey{apiServiceResource.Resource, e.name}, &announcement{
		at: time.Now(), group: group, version: version, listed: e.new != nil, touched: touched,
	})
}

func (n *news) put(key newsKey, a *announcement) {
	if n.items == nil {
		n.items = map[newsKey]*announcement{}
	}
	n.items[key] = a
}

// unread returns the CRDs that are announced and not read, by name; nil: it is gone.
func (n *news) unread() map[string]*followedObject {
	n.mu.Lock()
	defer n.mu.Unlock()
	var objects map[string]*followedObject
	for key, a := range n.items {
		if a.crd == nil || !a.crd.unread {
			continue
		}
		if objects == nil {
			objects = map[string]*followedObject{}
		}
		objects[key.name] = a.crd.object
	}
	return objects
}

// read takes note that the state has the CRDs as the events announced them that unread
// returned.
func (n *news) read(objects map[string]*followedObject) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, object := range objects {
		if a := n.items[newsKey{crdResource.Resource, name}]; a != nil && a.crd.object == object {
			a.crd.unread = false
		}
	}
}

// waiting is what is still awaited of a server's documents: when the last event came
// for each sort; the zero time: nothing.
type waiting struct{ discovery, details time.Time }

// waiting compares the news with s and forgets what it shows, and what it does not show
// in time.
func (n *news) waiting(s *State) waiting {
	n.mu.Lock()
	defer n.mu.Unlock()
	var w waiting
	for key, a := range n.items {
		discovery, details := a.shown(s, key.name)
		if discovery && details || time.Since(a.at) > newsPatience {
			delete(n.items, key)
			continue
		}
		if !discovery && a.at.After(w.discovery) {
			w.discovery = a.at
		}
		if !details && a.at.After(w.details) {
			w.details = a.at
		}
	}
	return w
}

// shown reports whether s shows what was announced, in discovery and in the rest.
func (a *announcement) shown(s *State, name string) (discovery, details bool) {
	if a.crd != nil {
		return a.crd.shown(s, s.CRDs[name])
	}
	listed := findVersion(s.Groups, a.group, a.version) != nil
	return listed == a.listed && !a.touched, true
}

func (c *crdNews) shown(s *State, now *CRD) (discovery, details bool) {
	if c.unread {
		return false, false
	}
	crd := now
	if now == nil {
		crd = c.old
	}
	versions := affected(c.old, now)
	if len(versions) == 0 { // perhaps its names or subresources have changed
		return !c.touched || c.old == nil || !now.ready(), true
	}
	discovery, details = true, true
	for _, v := range versions {
		path := "apis/" + crd.Group + "/" + v
		discovery = discovery && s.Serves(crd.Group, v, crd.Plural) == now.serves(v)
		details = details && (s.OpenAPIV3 == nil || s.OpenAPIV3[path] != c.openAPI[path])
	}
	return discovery, details
}

// affected are the versions of a CRD that began or ceased to be served, or changed
// their schema.
func affected(before, after *CRD) []string {
	var versions []string
	for _, crd := range []*CRD{before, after} {
		if crd == nil {
			continue
		}
		for name := range crd.Versions {
			if !slices.Contains(versions, name) && !sameVersion(before, after, name) {
				versions = append(versions, name)
			}
		}
	}
	return versions
}

func sameVersion(before, after *CRD, version string) bool {
	was, is := before.serves(version), after.serves(version)
	return was == is && (!is || bytes.Equal(before.Versions[version].Schema, after.Versions[version].Schema))
}

// serves reports whether a server will serve that version.
func (c *CRD) serves(version string) bool { return c.ready() && c.Versions[version].Served }

// ready reports whether a server will serve anything of it. A nil CRD is not ready.
func (c *CRD) ready() bool { return c != nil && c.established }
