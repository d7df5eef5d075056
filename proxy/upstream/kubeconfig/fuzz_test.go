package kubeconfig

import (
	"log/slog"
	"testing"
)

// Whatever the file holds, it is refused or gives one named server for each context.
func FuzzResolve(f *testing.F) {
	f.Add([]byte(document("https://10.0.0.1:6443", "tls-server-name: x", "token: t")), "main")
	f.Add([]byte(`{"contexts":[{"name":"a"}]}`), "a")
	f.Add([]byte(`{"contexts":[{"name":"","context":{"cluster":""}}],"clusters":[{"name":""}]}`), "")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		s := &Source{file: "/config", contexts: []string{name}, log: slog.New(slog.DiscardHandler)}
		config, err := s.parse(data)
		if err != nil {
			return
		}
		servers, err := s.resolve(config)
		if err != nil {
			return
		}
		if len(servers) != 1 || servers[0].Name != name || servers[0].URL == "" || servers[0].Access == nil {
			t.Errorf("servers are %+v", servers)
		}
	})
}
