package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/proxy"
	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// serveOptions are the flags of `mvp serve`. Names follow kube-apiserver where
// it has one.
type serveOptions struct {
	policies         policies.Options
	objects          objectOptions
	upstreams        upstreamOptions
	upstream         upstream.Config
	front            front.Config
	identity         identityOptions
	maxBody, maxHeld int64
	resumeWatches    bool
	resumeTime       time.Duration

	listen, adminListen string
	certFile, keyFile   string
	certDir             string
	certHosts           []string
	delay, grace        time.Duration
	logFormat, logLevel string
	accessLog           bool
}

func serveCommand(std streams) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve [--upstream URL... | --kubeconfig FILE | --upstream-endpoints] [--policies DIR]... [--library NAME]...",
		Short: "Serve as the one endpoint before several kube-apiservers",
		Long: `Serves as the one endpoint before several kube-apiservers of different versions.

The kube-apiservers are named by --upstream, once for each, or by a kubeconfig; in a
cluster MVP finds them itself, in the EndpointSlices of the service
default/kubernetes.

MVP needs a credential of its own to see what each kube-apiserver serves
(--upstream-token-file or --upstream-client-cert-file, the kubeconfig's user, the
pod's service account). What clients send is forwarded with their own bearer tokens,
never with MVP's.

A client certificate ends at MVP. With --client-ca-file MVP verifies it, and tells
the kube-apiservers who the client is: as a front proxy (--proxy-client-cert-file),
or by impersonation (--impersonate).`,
		Example: `  mvp serve --upstream https://10.0.0.1:6443 --upstream https://10.0.0.2:6443 \
    --upstream-ca-file ca.crt --upstream-token-file token --policies /etc/mvp/policies`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), std, o) },
	}
	f := cmd.Flags()
	o.upstreams.flags(cmd)
	f.StringVar(&o.upstream.CAFile, "upstream-ca-file", "", "PEM file of the CA that signed the kube-apiservers' certificates (default: the system's)")
	f.StringVar(&o.upstream.ServerName, "upstream-server-name", "", "name that the kube-apiservers' certificates must have (default: the URL's host)")
	f.StringVar(&o.upstream.TokenFile, "upstream-token-file", "", "file with MVP's own bearer token, for discovery and health")
	f.StringVar(&o.upstream.ClientCertFile, "upstream-client-cert-file", "", "MVP's own client certificate, instead of a token")
	f.StringVar(&o.upstream.ClientKeyFile, "upstream-client-key-file", "", "the key of --upstream-client-cert-file")
	f.DurationVar(&o.upstream.ProbeInterval, "upstream-probe-interval", time.Second, "time between two looks at a kube-apiserver's /readyz")
	f.DurationVar(&o.upstream.DiscoveryInterval, "upstream-discovery-interval", 2*time.Second, "time between two looks at what a kube-apiserver serves")
	f.DurationVar(&o.upstream.DialTimeout, "upstream-dial-timeout", 5*time.Second, "time to connect to a kube-apiserver")
	f.DurationVar(&o.upstream.HandshakeTimeout, "upstream-handshake-timeout", 5*time.Second, "time for the TLS handshake with a kube-apiserver")
	f.IntVar(&o.upstream.MaxConnsPerServer, "upstream-max-connections", 2048, "requests at once to one kube-apiserver, without watches and upgrades; more wait, then 503")
	f.DurationVar(&o.upstream.HeaderTimeout, "upstream-header-timeout", 75*time.Second, "time a kube-apiserver may take until the head of its answer; bodies have no limit")
	f.IntVar(&o.upstream.MaxHeadBytes, "upstream-max-header-bytes", upstream.DefaultMaxHeadBytes, "largest head of a kube-apiserver's answer, in bytes; above it 502")
	f.StringArrayVar(&o.policies.Dirs, "policies", nil, "policy directory or file; may be repeated")
	o.objects.flags(cmd)
	f.StringSliceVar(&o.policies.Library, "library", nil, "shipped policies: kubernetes-1.N (what servers of that release do not serve), kubernetes-all, or a name of 'mvp library'")
	f.Uint64Var(&o.policies.Limits.ExpressionCost, "policy-expression-cost", engine.MaxExpressionCost, "what one CEL expression may cost, in CEL's units; above it the request fails")
	f.DurationVar(&o.policies.Limits.Bodies.JQTime, "policy-program-timeout", convert.MaxJQTime, "time one jq program may take on one object")
	f.BoolVar(&o.policies.Limits.Bodies.UnboundedJQ, "allow-unbounded-jq", false, "let jq programs loop, recurse and use regular expressions, within the time and output limits; only for policies whose authors you trust with MVP's processor and memory")
	f.IntVar(&o.policies.Limits.Bodies.JQOutputBytes, "policy-program-output-bytes", convert.MaxJQOutputBytes, "size of what one jq program may make of one object, in bytes")
	f.StringVar(&o.listen, "listen", ":6443", "address for clients")
	f.StringVar(&o.adminListen, "admin-listen", "127.0.0.1:9090", "address for /healthz, /readyz, /metrics, /policies and /upstreams, which ask for no credential")
	f.StringVar(&o.certFile, "tls-cert-file", "", "certificate for clients (default: a self-signed one in --cert-dir)")
	f.StringVar(&o.keyFile, "tls-private-key-file", "", "the key of --tls-cert-file")
	f.StringVar(&o.certDir, "cert-dir", "mvp-certs", "where a self-signed certificate is kept: mvp.crt and mvp.key")
	f.StringSliceVar(&o.certHosts, "cert-hosts", nil, "names and addresses of the self-signed certificate, beside localhost")
	o.identity.flags(cmd, &o.upstream)
	f.IntVar(&o.front.MaxHeadBytes, "max-header-bytes", front.DefaultMaxHeadBytes, "largest head of a client's request, in bytes; above it 431")
	f.Int64Var(&o.maxBody, "max-body-bytes", proxy.DefaultMaxBody, "largest body that a policy converts or looks into, in bytes; above it 413")
	f.Int64Var(&o.maxHeld, "max-held-body-bytes", proxy.DefaultMaxHeldBodies, "memory that the bodies held at one moment may take together, in bytes; above it 429")
	f.BoolVar(&o.resumeWatches, "resume-watches", true, "let a watch whose kube-apiserver goes away go on with another one, where it is certain how")
	f.DurationVar(&o.resumeTime, "watch-resume-timeout", proxy.DefaultResumeTime, "time such a watch waits for a kube-apiserver until it is ended")
	f.DurationVar(&o.front.HandshakeTimeout, "handshake-timeout", front.DefaultHandshakeTimeout, "time a client may take for its TLS handshake")
	f.DurationVar(&o.front.HeadTimeout, "header-timeout", front.DefaultHeadTimeout, "time a client may take for the head of a request")
	f.DurationVar(&o.front.IdleTimeout, "idle-timeout", front.DefaultIdleTimeout, "time a client's connection may wait for its next request; streams have no limit")
	f.DurationVar(&o.front.BodyTimeout, "body-timeout", front.DefaultBodyTimeout, "time a client may send nothing of a body")
	f.DurationVar(&o.front.WriteTimeout, "write-timeout", front.DefaultWriteTimeout, "time a client may read nothing of an answer")
	f.IntVar(&o.front.MaxConnections, "max-connections", front.DefaultMaxConnections, "clients' connections at once")
	f.IntVar(&o.front.MaxConnectionsPerAddress, "max-connections-per-address", 0, "clients' connections at once from one address; 0: no limit")
	f.DurationVar(&o.delay, "shutdown-delay-duration", 0, "time after SIGTERM in which MVP still serves but says on /readyz that it is not ready")
	f.DurationVar(&o.grace, "shutdown-grace-period", 30*time.Second, "time that requests may take to finish after SIGTERM")
	f.StringVar(&o.logFormat, "log-format", "json", "json or text")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	f.BoolVar(&o.accessLog, "access-log", true, "log one line a request")
	return cmd
}

func serve(ctx context.Context, std streams, o serveOptions) error {
	log, err := newLogger(std.err, o.logFormat, o.logLevel)
	if err != nil {
		return err
	}
	servers, err := o.upstreams.source(&o.upstream, log)
	if err != nil {
		return err
	}
	identity, err := o.identity.config(&o.upstream, servers.own, log)
	if err != nil {
		return err
	}
	objects, err := o.objects.config(servers.own)
	if err != nil {
		return err
	}
	certificates, err := o.certificates(log)
	if err != nil {
		return err
	}
	o.policies.Limits.Bodies.ObjectBytes = int(o.maxBody)
	cfg := stackConfig{
		policies: o.policies, objects: objects, upstream: o.upstream, follow: servers.follow, certificates: certificates, front: o.front, identity: identity, maxBody: o.maxBody, maxHeld: o.maxHeld,
		passWatches: !o.resumeWatches, resumeTime: o.resumeTime,
		listen: o.listen, adminListen: o.adminListen, delay: o.delay, grace: o.grace, log: log,
	}
	if o.accessLog {
		cfg.accessLog = log
	}
	s, err := newStack(cfg)
	if err != nil {
		return err
	}
	log.Info("serving", "clients", s.clients.Addr().String(), "admin", s.admins.Addr().String(),
		"upstreams", len(s.pool.View().Servers), "policies", s.policies.Status().Policies, "version", buildVersion())
	return s.run(ctx)
}

func (o *serveOptions) certificates(log *slog.Logger) (*front.Certificates, error) {
	if (o.certFile == "") != (o.keyFile == "") {
		return nil, usageError("--tls-cert-file and --tls-private-key-file go together")
	}
	certFile, keyFile := o.certFile, o.keyFile
	if certFile == "" {
		var err error
		if certFile, keyFile, err = front.SelfSigned(o.certDir, o.selfSignedHosts()); err != nil {
			return nil, err
		}
		log.Info("using a self-signed certificate", "file", certFile)
	}
	return front.LoadCertificates(front.CertificateFiles{CertFile: certFile, KeyFile: keyFile, ClientCAFile: o.identity.clientCAFile}, log)
}

// selfSignedHosts are the names a self-signed certificate is good for: those
// asked for, the machine's and the one it listens on.
func (o *serveOptions) selfSignedHosts() []string {
	hosts := append([]string{}, o.certHosts...)
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	if host, _, err := net.SplitHostPort(o.listen); err == nil && host != "" {
		hosts = append(hosts, host)
	}
	return hosts
}

func newLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, usageError("cannot use --log-level %q: want debug, info, warn or error", level)
	}
	opts := &slog.HandlerOptions{Level: l}
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	}
	return nil, usageError("cannot use --log-format %q: want json or text", format)
}

// isUsage reports whether cobra refused the arguments before any command ran.
func isUsage(err error) bool {
	return strings.HasPrefix(err.Error(), "unknown command") || strings.HasPrefix(err.Error(), "unknown flag") ||
		strings.HasPrefix(err.Error(), "accepts ") || strings.HasPrefix(err.Error(), "required flag")
}
