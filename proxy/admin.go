package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// UpstreamStatus is what /upstreams says of one kube-apiserver.
type UpstreamStatus struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	Healthy bool   `json:"healthy"`
	// Reason is why the server is not healthy, in words.
	Reason string `json:"reason,omitempty"`
	// Synced says that it is known what the server serves, Stale that this may be
	// out of date.
	Synced bool `json:"synced"`
	Stale  bool `json:"stale,omitempty"`
	// Problem is why what the server serves could not be read the last time.
	Problem   string `json:"problem,omitempty"`
	Version   string `json:"version,omitempty"`
	Emulation string `json:"emulationVersion,omitempty"`
	// Resources counts what the server serves, over all versions; Only lists the
	// versions that no other server serves.
	Resources int      `json:"resources"`
	Only      []string `json:"only,omitempty"`
	Inflight  int      `json:"inflight"`
	Streams   int      `json:"streams"`
	// LatencyMillis is the moving average of its /readyz.
	LatencyMillis float64   `json:"latencyMillis"`
	LastProbe     time.Time `json:"lastProbe"`
}

// Upstreams describes the kube-apiservers as they are seen now.
func (s *Server) Upstreams() []UpstreamStatus {
	st := s.state.Load()
	view := s.cfg.Upstreams.View()
	list := make([]UpstreamStatus, 0, len(view.Servers))
	for _, server := range view.Servers {
		status := UpstreamStatus{
			Name: server.Name, URL: server.URL,
			Healthy: server.Healthy, Reason: server.Reason, Synced: server.Synced, Stale: server.Stale, Problem: server.Problem,
			Version: server.GitVersion, Inflight: server.Inflight(), Streams: server.Streams(),
			LatencyMillis: float64(server.Latency.Microseconds()) / 1000, LastProbe: server.LastProbe,
		}
		if e := server.Emulation; e.Minor != 0 {
			status.Emulation = fmt.Sprintf("%d.%d", e.Major, e.Minor)
		}
		status.Resources, status.Only = st.share(server)
		list = append(list, status)
	}
	return list
}

// share counts the resources of a server and lists the group versions that only
// it serves.
func (st *state) share(server *upstream.State) (resources int, only []string) {
	for i := range server.Groups {
		group := &server.Groups[i]
		for j := range group.Versions {
			version := &group.Versions[j]
			resources += len(version.Resources)
			alone := len(version.Resources) > 0
			for k := range version.Resources {
				alone = alone && len(st.known[resource{group.Name, version.Version, version.Resources[k].Resource}]) == 1
			}
			if alone && len(st.view.Servers) > 1 {
				only = append(only, strings.TrimPrefix(group.Name+"/"+version.Version, "/"))
			}
		}
	}
	slices.Sort(only)
	return resources, only
}

// AdminConfig says what the admin listener tells beside what the proxy knows.
type AdminConfig struct {
	// Policies is what /policies answers, encoded as JSON. Required.
	Policies func() any
	// Metrics answers /metrics. Required.
	Metrics http.Handler
	// Ready adds to the proxy's own readiness; nil adds nothing.
	Ready func() error
}

// Admin returns the handler of the admin listener: /healthz, /readyz, /metrics,
// /policies and /upstreams. It authenticates nobody, so it belongs on a loopback
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
	})
	mux.Handle("GET /metrics", cfg.Metrics)
	mux.HandleFunc("GET /policies", func(w http.ResponseWriter, _ *http.Request) { s.writeJSON(w, cfg.Policies()) })
	mux.HandleFunc("GET /upstreams", func(w http.ResponseWriter, _ *http.Request) { s.writeJSON(w, s.Upstreams()) })
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
