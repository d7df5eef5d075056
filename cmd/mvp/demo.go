package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mixed-version-proxy/mvp/examples/demo"
	"github.com/mixed-version-proxy/mvp/examples/demo/tour"
	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// demoOptions are the flags of `mvp demo`.
type demoOptions struct {
	listen, adminListen string
	once                bool
}

func demoCommand(std streams) *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the main job on a control plane in memory, then stay up to be tried",
		Long: `Starts two kube-apiservers in memory, 1.31 and 1.32, and MVP before them. It shows
what fails without MVP and works with it, then stays up and prints a kubeconfig
for your own kubectl. Nothing is installed, and nothing stays after it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), std, o) },
	}
	cmd.Flags().StringVar(&o.listen, "listen", "127.0.0.1:0", "address for clients; port 0 picks a free one")
	cmd.Flags().StringVar(&o.adminListen, "admin-listen", "127.0.0.1:0", "address for the admin listener")
	cmd.Flags().BoolVar(&o.once, "once", false, "end after the steps")
	return cmd
}

func runDemo(ctx context.Context, std streams, o demoOptions) (err error) {
	dir, err := os.MkdirTemp("", "mvp-demo-")
	if err != nil {
		return fmt.Errorf("cannot make the demo's directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	plane, err := startPlane()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Close()) }()

	s, certFile, err := demoStack(o, dir, plane)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.run(serving) }()
	err = showDemo(serving, std, o, demoRun{dir: dir, certFile: certFile, plane: plane, stack: s})
	if err == nil && !o.once {
		tellReloads(ctx, std.out, s.policies)
	}
	stop()
	return errors.Join(err, <-ended)
}

// startPlane starts the servers with the CRD of the article on them.
func startPlane() (*demo.ControlPlane, error) {
	plane, err := demo.Start(demo.Options{})
	if err != nil {
		return nil, err
	}
	crd, err := fs.ReadFile(demo.Manifests, "crd.yaml")
	if err == nil {
		err = plane.Apply(crd)
	}
	if err != nil {
		return nil, errors.Join(err, plane.Close())
	}
	return plane, nil
}

// demoStack makes MVP before plane, with the article's rules.
func demoStack(o demoOptions, dir string, plane *demo.ControlPlane) (*stack, string, error) {
	rules := filepath.Join(dir, "policies")
	if err := os.CopyFS(rules, subset{demo.Manifests, "mvp-rules.yaml"}); err != nil {
		return nil, "", fmt.Errorf("cannot write the demo's rules: %w", err)
	}
	certFile, keyFile, err := front.SelfSigned(filepath.Join(dir, "certs"), nil)
	if err != nil {
		return nil, "", err
	}
	log := slog.New(slog.DiscardHandler)
	certificates, err := front.LoadCertificates(front.CertificateFiles{CertFile: certFile, KeyFile: keyFile}, log)
	if err != nil {
		return nil, "", err
	}
	cfg := stackConfig{
		policies:     policies.Options{Dirs: []string{rules}, Library: []string{"all"}},
		certificates: certificates,
		listen:       o.listen, adminListen: o.adminListen, grace: 2 * time.Second, log: log,
	}
	cfg.upstream.CAFile = plane.CAFile()
	// The demo stops servers and looks at once what becomes of it.
	cfg.upstream.ProbeInterval, cfg.upstream.DiscoveryInterval = 200*time.Millisecond, 500*time.Millisecond
	for _, server := range plane.Servers() {
		cfg.upstream.Servers = append(cfg.upstream.Servers, upstream.ServerConfig{Name: server.Name, URL: server.URL()})
	}
	s, err := newStack(cfg)
	return s, certFile, err
}

// demoRun is what the demo shows on.
type demoRun struct {
	dir, certFile string
	plane         *demo.ControlPlane
	stack         *stack
}

func showDemo(ctx context.Context, std streams, o demoOptions, run demoRun) error {
	url := "https://" + run.stack.clients.Addr().String()
	fmt.Fprintf(std.out, "Two kube-apiservers in memory, %s and %s, and MVP before them at %s.\n",
		run.plane.Servers()[0].Version, run.plane.Servers()[1].Version, url)
	ca, err := os.ReadFile(run.certFile)
	if err != nil {
		return err
	}
	if err := tour.Run(ctx, tour.Config{Plane: run.plane, URL: url, CA: ca, Synced: run.stack.proxy.Synced, Out: std.out}); err != nil {
		return err
	}
	fmt.Fprintln(std.out, "\nEverything came out as it should.")
	if o.once {
		return nil
	}
	kubeconfig := filepath.Join(run.dir, "kubeconfig")
	if err := writeKubeconfig(kubeconfig, url, ca); err != nil {
		return err
	}
	fmt.Fprintf(std.out, `
MVP stays up until you press Ctrl-C. Try it with your own kubectl:

  export KUBECONFIG=%s
  kubectl get customresources.v1alpha1.myapps.example.com -o yaml
  kubectl edit customresources.v1alpha1.myapps.example.com shop
  kubectl get pdb,deployments

  mvp status --admin %s
  curl http://%s/upstreams
  curl http://%s/policies

The rules are in %s; MVP reloads them when you edit them,
and says here what came of it.
`, kubeconfig, run.stack.admins.Addr(), run.stack.admins.Addr(), run.stack.admins.Addr(), filepath.Join(run.dir, "policies", "mvp-rules.yaml"))
	return nil
}

func writeKubeconfig(path, url string, ca []byte) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["mvp"] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: ca}
	config.AuthInfos["demo"] = &clientcmdapi.AuthInfo{Token: "demo"}
	config.Contexts["mvp"] = &clientcmdapi.Context{Cluster: "mvp", AuthInfo: "demo", Namespace: "default"}
	config.CurrentContext = "mvp"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("cannot write the demo's kubeconfig: %w", err)
	}
	return nil
}

// subset shows one file of a file system.
type subset struct {
	fs.FS
	name string
}

// ReadDir implements fs.ReadDirFS.
func (s subset) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(s.FS, name)
	var kept []fs.DirEntry
	for _, entry := range entries {
		if entry.Name() == s.name {
			kept = append(kept, entry)
		}
	}
	return kept, err
}
