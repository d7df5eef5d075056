package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/clients"
	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
)

// A command is one word of the command line.
type command struct {
	synopsis         string
	help             string
	flags            []string
	minArgs, maxArgs int
	run              func(context.Context, *input) error
}

// many is a number of arguments that is no limit in practice.
const many = 100

var commands = map[string]command{
	"up": {
		"up [--versions V,V...] [--kubelet] [--audit] [--apiserver-arg ARG]...", "start a control plane, or what does not run of it",
		[]string{"dir", "versions", "kubelet", "audit", "apiserver-arg"},
		0, 0, up,
	},
	"down": {
		"down [--keep]", "kill all servers and delete their data (or keep it)",
		[]string{"dir", "keep"},
		0, 0, down,
	},
	"status": {"status", "print the servers", []string{"dir"}, 0, 0, status},
	"start": {
		"start NAME...", "start servers and wait until they are ready",
		[]string{"dir"},
		1, many, onEach((*controlplane.ControlPlane).Start),
	},
	"stop": {
		"stop NAME...", "stop servers as an upgrade does",
		[]string{"dir"},
		1, many, onEach((*controlplane.ControlPlane).Stop),
	},
	"restart": {
		"restart NAME...", "stop servers and start them",
		[]string{"dir"},
		1, many, onEach((*controlplane.ControlPlane).Restart),
	},
	"kill": {
		"kill NAME...", "end servers as a crash does",
		[]string{"dir"},
		1, many, onEach((*controlplane.ControlPlane).Kill),
	},
	"pause":  {"pause NAME...", "make servers hang", []string{"dir"}, 1, many, onEach(pause)},
	"resume": {"resume NAME...", "end pause", []string{"dir"}, 1, many, onEach(resume)},
	"upgrade": {
		"upgrade NAME VERSION", "stop a server and start another version at its address",
		[]string{"dir"},
		2, 2, upgrade,
	},
	"build":   {"build [VERSION...]", "build servers and start none", nil, 0, many, build},
	"clients": {"clients", "fetch kubectl and helm of several versions, print their paths", nil, 0, 0, fetchClients},
	"env":     {"env", "print paths, URLs and tokens as shell variables", []string{"dir"}, 0, 0, env},
}

// order is that of the usage text.
var order = []string{"up", "status", "env", "stop", "start", "restart", "kill", "pause", "resume", "upgrade", "down", "build", "clients"}

func usageText() string {
	var b strings.Builder
	b.WriteString("Usage: go run ./bench/lab COMMAND [--dir DIR]\n\n")
	for _, name := range order {
		fmt.Fprintf(&b, "  %s\n        %s\n", commands[name].synopsis, commands[name].help)
	}
	fmt.Fprintf(&b, `
NAME is etcd, kubelet or that of a kube-apiserver: a, b, and so on, in the order of
--versions, which is %s when it is not given. DIR keeps the control
plane; the default is in the user's cache directory.
`, strings.Join(controlplane.DefaultVersions(), ","))
	return b.String()
}

func up(ctx context.Context, in *input) error {
	start := time.Now()
	c, err := controlplane.Start(ctx, controlplane.Config{
		Dir:           in.dir,
		Versions:      in.versions,
		Audit:         in.audit,
		Kubelet:       in.kubelet,
		Detach:        true,
		APIServerArgs: in.apiServerArgs,
		Logf:          in.logf,
	})
	if err != nil {
		return err
	}
	in.logf("ready after %s", time.Since(start).Round(100*time.Millisecond))
	return printStatus(ctx, in.stdout, c)
}

func down(_ context.Context, in *input) error {
	c, err := controlplane.Open(in.dir, in.logf)
	if errors.Is(err, controlplane.ErrNoLab) {
		in.logf("%v: nothing to do", err)
		return nil
	}
	if err != nil {
		return err
	}
	if in.keep {
		return c.Close()
	}
	return c.Remove()
}

func status(ctx context.Context, in *input) error {
	c, err := open(in)
	if err != nil {
		return err
	}
	return printStatus(ctx, in.stdout, c)
}

// onEach makes a command of a method on one server. It does one after another.
func onEach(f func(*controlplane.ControlPlane, context.Context, string) error) func(context.Context, *input) error {
	return func(ctx context.Context, in *input) error {
		c, err := open(in)
		if err != nil {
			return err
		}
		for _, name := range in.args {
			if err := f(c, ctx, name); err != nil {
				return err
			}
		}
		return nil
	}
}

func pause(c *controlplane.ControlPlane, _ context.Context, name string) error { return c.Pause(name) }

func resume(c *controlplane.ControlPlane, _ context.Context, name string) error {
	return c.Resume(name)
}

func upgrade(ctx context.Context, in *input) error {
	c, err := open(in)
	if err != nil {
		return err
	}
	return c.Upgrade(ctx, in.args[0], in.args[1])
}

func build(ctx context.Context, in *input) error {
	versions := in.args
	if len(versions) == 0 {
		versions = controlplane.DefaultVersions()
	}
	return controlplane.Build(ctx, in.logf, versions...)
}

func fetchClients(ctx context.Context, in *input) error {
	set, err := clients.Fetch(ctx, in.logf)
	if err != nil {
		return err
	}
	for _, v := range clients.KubectlVersions() {
		fmt.Fprintf(in.stdout, "kubectl %-5s %s\n", v, set.Kubectl(v))
	}
	for _, v := range clients.HelmVersions() {
		fmt.Fprintf(in.stdout, "helm    %-5s %s\n", v, set.Helm(v))
	}
	return nil
}

func env(_ context.Context, in *input) error {
	c, err := open(in)
	if err != nil {
		return err
	}
	files := c.Files()
	vars := [][2]string{
		{"MVP_LAB_DIR", c.Dir()},
		{"MVP_LAB_CA", files.CA},
		{"MVP_LAB_CLIENT_CA", files.ClientCA},
		{"MVP_LAB_ADMIN_CERT", files.AdminCert},
		{"MVP_LAB_ADMIN_KEY", files.AdminKey},
		{"MVP_LAB_REQUEST_HEADER_CA", files.RequestHeaderCA},
		{"MVP_LAB_FRONT_PROXY_CERT", files.FrontProxyCert},
		{"MVP_LAB_FRONT_PROXY_KEY", files.FrontProxyKey},
		{"MVP_LAB_TOKEN_ADMIN", c.Token(controlplane.Admin)},
		{"MVP_LAB_TOKEN_ALICE", c.Token(controlplane.Alice)},
		{"MVP_LAB_TOKEN_DISCOVERY", c.Token(controlplane.Discovery)},
		{"MVP_LAB_KUBECONFIG_ALICE", c.KubeconfigPath(controlplane.Alice)},
		{"MVP_LAB_KUBECONFIG_DISCOVERY", c.KubeconfigPath(controlplane.Discovery)},
	}
	for _, name := range c.Names() {
		upper := strings.ToUpper(name)
		vars = append(vars,
			[2]string{"MVP_LAB_URL_" + upper, c.URL(name)},
			[2]string{"MVP_LAB_KUBECONFIG_" + upper, c.KubeconfigPath(controlplane.Admin, name)})
	}
	vars = append(vars, clientVars()...)
	vars = append(vars, [2]string{"KUBECONFIG", c.KubeconfigPath(controlplane.Admin)})
	for _, v := range vars {
		fmt.Fprintf(in.stdout, "export %s=%s\n", v[0], shellQuote(v[1]))
	}
	return nil
}

// clientVars is empty before the clients have been fetched.
func clientVars() [][2]string {
	set, ok := clients.Fetched()
	if !ok {
		return nil
	}
	var vars [][2]string
	for _, v := range clients.KubectlVersions() {
		vars = append(vars, [2]string{"KUBECTL_" + strings.ReplaceAll(v, ".", "_"), set.Kubectl(v)})
	}
	for _, v := range clients.HelmVersions() {
		vars = append(vars, [2]string{"HELM_" + strings.ReplaceAll(v, ".", "_"), set.Helm(v)})
	}
	return vars
}

// open opens the control plane in the directory of in.
func open(in *input) (*controlplane.ControlPlane, error) {
	c, err := controlplane.Open(in.dir, in.logf)
	if errors.Is(err, controlplane.ErrNoLab) {
		return nil, fmt.Errorf("%w: run \"up\" first", err)
	}
	return c, err
}
