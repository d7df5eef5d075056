package upstream

import (
	"context"
	"fmt"
	"slices"
)

// follow runs the watches of the objects whose changes change what the server serves,
// while it is healthy and as far as it has them, and says in the state which it does
// not allow.
func (m *member) follow(ctx context.Context) {
	s := m.state()
	var unwatched []string
	for i, f := range m.followers {
		r := f.resource
		err := f.tend(ctx, s.Healthy && s.ServesVerb(r.Group, r.Version, r.Resource, "", "watch"), s.Since)
		if err != nil {
			unwatched = append(unwatched, r.GroupResource().String())
			err = fmt.Errorf("grant list and watch of %s to MVP's own credential: %w", r.GroupResource(), err)
		}
		m.report(2+i, "cannot watch what changes the upstream's capabilities, only polls show the changes", err)
	}
	if !slices.Equal(unwatched, s.Unwatched) {
		m.update(func(s *State) bool { s.Unwatched = unwatched; return true })
	}
}

func (m *member) unfollow() {
	for _, f := range m.followers {
		f.stop()
	}
}

// watchesCRDs reports whether events tell of all changes of CRDs.
func (m *member) watchesCRDs() bool { return m.followers[0].live.Load() }

// crdEvent is called by a follower.
func (m *member) crdEvent(e event) {
	if e == (event{}) { // what changed before the first list, nobody told
		m.details.relist.Store(true)
	} else {
		m.news.crdEvent(e, m.state())
		wake(m.apisNow)
	}
	wake(m.detailsNow)
}

// apiServiceEvent is called by a follower.
func (m *member) apiServiceEvent(e event) {
	if e != (event{}) {
		m.news.apiServiceEvent(e)
	}
	wake(m.apisNow)
}
