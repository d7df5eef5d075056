package policies

import (
	"slices"
	"time"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// told says that the status may have changed.
func (s *Store) told() {
	select {
	case s.changes <- struct{}{}:
	default:
	}
}

// logWarnings logs what is likely not meant in policies that become live.
func (s *Store) logWarnings(warnings source.Errors) {
	for _, w := range warnings[:min(len(warnings), maxLogged)] {
		s.log.Warn("a policy likely does not do what is meant", "at", w.Pos.String(), "warning", w.Msg)
	}
}

// judged notes what became of the objects where that changes nothing of what is live.
func (s *Store) judged(objects []ObjectStatus) {
	next := *s.live.Load()
	s.logObjects(next.status.Objects, objects)
	next.status.Objects = objects
	s.live.Store(&next)
}

// logObjects logs which objects are, and are not any more, accepted, and why.
func (s *Store) logObjects(before, now []ObjectStatus) {
	wrong := map[string]string{}
	for _, o := range before {
		wrong[o.Name] = o.Err.Error()
	}
	for _, o := range now {
		if o.Err.Error() == wrong[o.Name] {
			continue
		}
		if o.Accepted() {
			s.log.Info("the policy object is accepted", "object", o.Name, "policies", o.Policies)
			continue
		}
		for _, e := range o.Err[:min(len(o.Err), maxLogged)] {
			s.log.Error("cannot accept the policy object", "object", o.Name, "reason", o.Reason, "at", e.Pos.String(), "error", e.Msg, "live", o.Policies)
		}
	}
}

// recovered notes that the files are again those that are live.
func (s *Store) recovered() {
	old := s.live.Load()
	if old.status.Err == nil {
		return
	}
	next := *old
	next.status.Err, next.status.ErrTime = nil, time.Time{}
	s.live.Store(&next)
	s.log.Info("the policy files are again as loaded", "generation", next.status.Generation)
}

// failed notes what is wrong with the files; what was live stays. The log has it
// before the status does, so that whoever sees a failure there finds its reasons.
func (s *Store) failed(errs source.Errors) {
	next := *s.live.Load()
	for _, e := range errs[:min(len(errs), maxLogged)] {
		s.log.Error("cannot reload policies, the last good ones stay", "at", e.Pos.String(), "error", e.Msg)
	}
	s.log.Error("policies not reloaded", "mistakes", len(errs), "generation", next.status.Generation)
	next.status.Failures++
	next.status.Err, next.status.ErrTime = slices.Clone(errs), time.Now()
	s.live.Store(&next)
}
