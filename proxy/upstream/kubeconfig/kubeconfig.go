// Package kubeconfig takes the kube-apiservers from a kubeconfig file: one for each of
// its contexts that are named. What a context's user presents is MVP's own credential;
// no client's request is ever made with it.
package kubeconfig

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

const (
	// followInterval is how often the file is looked at.
	followInterval = 2 * time.Second

	// maxFileBytes bounds the file. With all certificates inline, one of a hundred
	// clusters has about 600 KB.
	maxFileBytes = 4 << 20
)

// Source is the servers of a kubeconfig file. Its methods are for one goroutine.
type Source struct {
	file     string
	contexts []string
	log      *slog.Logger
	interval time.Duration

	used    []byte // the content that the servers come from
	servers []upstream.ServerConfig
	problem string // of the content there is now, as last logged
}

// Open reads the file. Without contexts it takes the current one, and keeps to that
// also when another one becomes current: somebody's kubectl must not move MVP to
// another cluster.
func Open(file string, contexts []string, log *slog.Logger) (*Source, error) {
	s := &Source{file: file, contexts: contexts, log: log, interval: followInterval}
	data, err := read(file)
	if err != nil {
		return nil, err
	}
	config, err := s.parse(data)
	if err != nil {
		return nil, err
	}
	if len(contexts) == 0 {
		if config.CurrentContext == "" {
			return nil, fmt.Errorf("kubeconfig %s has no current context: name one of its contexts: %s", file, contextsOf(config))
		}
		s.contexts = []string{config.CurrentContext}
	}
	if s.servers, err = s.resolve(config); err != nil {
		return nil, err
	}
	s.used = data
	return s, nil
}

// Servers are those that the file named when it could last be used.
func (s *Source) Servers() []upstream.ServerConfig { return s.servers }

// Run follows the file and gives the pool its servers when it changed, until ctx is
// done. A file that cannot be used changes nothing.
func (s *Source) Run(ctx context.Context, pool *upstream.Pool) error {
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			s.follow(pool)
		}
	}
}

func (s *Source) follow(pool *upstream.Pool) {
	changed, err := s.reload(pool)
	switch {
	case err != nil && err.Error() != s.problem:
		s.problem = err.Error()
		s.log.Error("cannot reload the kubeconfig, the kube-apiservers and credentials that are known stay", "error", err)
	case err == nil:
		s.problem = ""
	}
	if changed {
		s.log.Info("kubeconfig reloaded", "file", s.file)
	}
}

func (s *Source) reload(pool *upstream.Pool) (changed bool, err error) {
	data, err := read(s.file)
	if err != nil || bytes.Equal(data, s.used) {
		return false, err
	}
	config, err := s.parse(data)
	if err != nil {
		return false, err
	}
	servers, err := s.resolve(config)
	if err != nil {
		return false, err
	}
	if err := pool.SetServers(servers); err != nil {
		return false, fmt.Errorf("kubeconfig %s: %w", s.file, err)
	}
	s.servers, s.used = servers, data
	return true, nil
}

// read reads the file whole.
func read(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("cannot use kubeconfig %s: it is larger than %d bytes", name, maxFileBytes)
	}
	return data, nil
}

// parse decodes a kubeconfig. Its files are found from where it is.
func (s *Source) parse(data []byte) (*api.Config, error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("cannot parse kubeconfig %s: %w", s.file, err)
	}
	for _, cluster := range config.Clusters {
		cluster.LocationOfOrigin = s.file
	}
	for _, user := range config.AuthInfos {
		user.LocationOfOrigin = s.file
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, fmt.Errorf("cannot find the files of kubeconfig %s: %w", s.file, err)
	}
	return config, nil
}

// contextsOf lists the contexts for a message.
func contextsOf(config *api.Config) string {
	if len(config.Contexts) == 0 {
		return "it has none"
	}
	var names []string
	for name := range config.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
