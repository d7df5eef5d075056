package proxy

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/pprof"
)

// AdminConfig says what the admin listener tells beside what the proxy knows.
type AdminConfig struct {
	// Policies is what /policies answers, encoded as JSON. Required.
	Policies func() any
	// Metrics answers /metrics. Required.
	Metrics http.Handler
	// Ready adds to the proxy's own readiness; nil adds nothing.
	Ready func() error
	// Notes are lines that /readyz adds to its answer when MVP is ready, which
	// probes do not read and people do; nil adds nothing.
	Notes func() []string
}

// Admin returns the handler of the admin listener: /healthz, /readyz, /metrics,
// /policies, /upstreams and /debug/pprof. It authenticates nobody, so it belongs on a loopback
// or cluster-internal address.
func (s *Server) Admin(cfg AdminConfig) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		err := s.Ready()
		if err == nil && cfg.Ready != nil {
			err = cfg.Ready()
		}
		if err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
		if cfg.Notes != nil {
			for _, line := range cfg.Notes() {
				_, _ = io.WriteString(w, line+"\n")
			}
		}
	})
	mux.Handle("GET /metrics", cfg.Metrics)
	mux.HandleFunc("GET /policies", func(w http.ResponseWriter, _ *http.Request) { s.writeJSON(w, cfg.Policies()) })
	mux.HandleFunc("GET /upstreams", func(w http.ResponseWriter, _ *http.Request) { s.writeJSON(w, s.Upstreams()) })
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

func (s *Server) writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		s.cfg.Log.Debug("cannot write an admin answer", "error", err)
	}
}
