package main

import (
	"context"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
	"github.com/mixed-version-proxy/mvp/proxy/upstream/endpoints"
	"github.com/mixed-version-proxy/mvp/proxy/upstream/kubeconfig"
)

// upstreamOptions are the flags of `mvp serve` about where the kube-apiservers are.
type upstreamOptions struct {
	urls       []string
	kubeconfig string
	contexts   []string
	endpoints  bool
}

func (o *upstreamOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&o.urls, "upstream", nil, "kube-apiserver, as URL or NAME=URL; repeated for each")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "take the kube-apiserver and MVP's own credential from this file, and follow it")
	f.StringArrayVar(&o.contexts, "context", nil, "context of --kubeconfig (default: the one that is current when MVP starts); repeated for each kube-apiserver")
	f.BoolVar(&o.endpoints, "upstream-endpoints", false, "follow the kube-apiservers of the cluster that MVP runs in, with its service account (default there when neither --upstream nor --kubeconfig is given)")
}

// follow keeps the servers of a pool up to date until ctx is done.
type follow func(ctx context.Context) error

// serverSource is where the servers of a pool come from.
type serverSource struct {
	// follow makes what follows the source; nil where the servers stay as they are.
	follow func(*upstream.Pool) (follow, error)

	// own says that MVP has a credential of its own for every server.
	own bool
}

// source fills in cfg what the flags say of the servers.
func (o *upstreamOptions) source(cfg *upstream.Config, log *slog.Logger) (serverSource, error) {
	inCluster := o.endpoints || len(o.urls) == 0 && o.kubeconfig == "" && endpoints.InCluster()
	own := upstream.Access{TokenFile: cfg.TokenFile, ClientCertFile: cfg.ClientCertFile}
	switch {
	case len(o.urls) > 0 && o.kubeconfig != "":
		return serverSource{}, usageError("--upstream and --kubeconfig are two ways to name the kube-apiservers: give one")
	case o.endpoints && (len(o.urls) > 0 || o.kubeconfig != ""):
		return serverSource{}, usageError("--upstream-endpoints finds the kube-apiservers: give it without --upstream and --kubeconfig")
	case len(o.contexts) > 0 && o.kubeconfig == "":
		return serverSource{}, usageError("--context is one of a kubeconfig: give --kubeconfig")
	case o.kubeconfig != "":
		return o.fromKubeconfig(cfg, log)
	case inCluster:
		return fromEndpoints(cfg, log)
	case len(o.urls) == 0:
		return serverSource{}, usageError("no kube-apiservers: give --upstream URL for each, or --kubeconfig FILE; in a cluster MVP finds them itself, if its pod has a service account")
	}
	cfg.Servers = parseUpstreams(o.urls)
	return serverSource{own: own.HasCredential()}, nil
}

// parseUpstreams reads URL and NAME=URL.
func parseUpstreams(args []string) []upstream.ServerConfig {
	servers := make([]upstream.ServerConfig, 0, len(args))
	for _, arg := range args {
		name, url, named := strings.Cut(arg, "=")
		if !named || strings.Contains(name, "/") {
			name, url = "", arg
		}
		servers = append(servers, upstream.ServerConfig{Name: name, URL: url})
	}
	return servers
}

func (o *upstreamOptions) fromKubeconfig(cfg *upstream.Config, log *slog.Logger) (serverSource, error) {
	if cfg.CAFile+cfg.ServerName+cfg.TokenFile+cfg.ClientCertFile+cfg.ClientKeyFile != "" {
		return serverSource{}, usageError("a kubeconfig says itself whom to trust and what to present: give --kubeconfig without " +
			"--upstream-ca-file, --upstream-server-name, --upstream-token-file, --upstream-client-cert-file and --upstream-client-key-file")
	}
	file, err := kubeconfig.Open(o.kubeconfig, o.contexts, log)
	if err != nil {
		return serverSource{}, &exitError{exitUsage, err}
	}
	cfg.Servers = file.Servers()
	s := serverSource{own: true, follow: func(pool *upstream.Pool) (follow, error) {
		return func(ctx context.Context) error { return file.Run(ctx, pool) }, nil
	}}
	for _, server := range cfg.Servers {
		s.own = s.own && server.Access.HasCredential()
	}
	return s, nil
}

// fromEndpoints takes from the pod what the flags do not say.
func fromEndpoints(cfg *upstream.Config, log *slog.Logger) (serverSource, error) {
	found, err := endpoints.PodConfig(upstream.Access{
		CAFile: cfg.CAFile, ServerName: cfg.ServerName,
		TokenFile: cfg.TokenFile, ClientCertFile: cfg.ClientCertFile, ClientKeyFile: cfg.ClientKeyFile,
	})
	if err != nil {
		return serverSource{}, usageError("cannot find the kube-apiservers of the cluster: %w; give --upstream URL for each, or --kubeconfig FILE", err)
	}
	found.Log = log
	cfg.Dynamic = true
	cfg.CAFile, cfg.ServerName, cfg.TokenFile = found.Access.CAFile, found.Access.ServerName, found.Access.TokenFile
	return serverSource{own: true, follow: func(pool *upstream.Pool) (follow, error) {
		s, err := endpoints.New(found, pool)
		if err != nil {
			return nil, err
		}
		return s.Run, nil
	}}, nil
}
