package proxy

import (
	"log/slog"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// maxMissingLogged is how many missing fields of one change are logged, a record each.
const maxMissingLogged = 20

// MissingFields returns the paths in rules that cannot mean any field, as far as the
// schemas of the versions are known now: see [engine.Set.MissingFields]. The policies are
// in use all the same: a schema is known late, may change, and an old one knows no new
// field. The caller must not change it.
func (s *Server) MissingFields() source.Errors { return s.state.Load().missing }

// logMissing logs those that were not there before.
func logMissing(log *slog.Logger, before, now source.Errors) {
	known := map[string]bool{}
	for _, e := range before {
		known[e.Error()] = true
	}
	logged := 0
	for _, e := range now {
		if known[e.Error()] {
			continue
		}
		if logged++; logged > maxMissingLogged {
			log.Warn("more rules name fields that there are not, see /policies", "all", len(now))
			return
		}
		log.Warn("a rule names a field that there is not", "at", e.Pos.String(), "error", e.Msg)
	}
}
