// Package controlplane runs a Kubernetes control plane on loopback: one etcd and
// several real kube-apiservers, of the same or of different versions, with TLS,
// RBAC and a front proxy's credentials. There are no controllers, no scheduler
// and no nodes, or with Config.Kubelet one that is only a kubelet.
//
// A control plane lives in a directory, where another process can open it again.
// Its servers can be stopped, killed, hung, started and upgraded one by one; each
// keeps its name, its address and its credentials. All methods may be called from
// any goroutine and process at the same time; those on one server wait for each
// other.
//
// Everything here is for tests: keys lie about in files, and etcd does not wait
// for the disk.
package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/mixed-version-proxy/mvp/bench/lab/binaries"
	"github.com/mixed-version-proxy/mvp/bench/lab/cache"
	"github.com/mixed-version-proxy/mvp/bench/lab/flock"
)

// The names among the servers of those that are no kube-apiservers.
const (
	Etcd    = "etcd"
	Kubelet = "kubelet" // only with Config.Kubelet
)

// Config says what control plane to start.
type Config struct {
	// Dir is the directory of the control plane. If it has one already, Start
	// continues it: addresses, credentials and data are kept. Empty means a
	// temporary directory, which Close removes.
	Dir string

	// Versions are the Kubernetes versions of the kube-apiservers, in full, such
	// as 1.31.14. The first server is named a, the second b, and so on. A version
	// may occur more than once. Empty means DefaultVersions, or whatever an
	// existing control plane has.
	Versions []string

	// Audit makes every kube-apiserver write an audit log with the metadata of
	// each request; see Server.AuditLog. It costs each request some time.
	// Counts only for a new control plane.
	Audit bool

	// Kubelet adds a node with one running pod, so that logs, exec, attach,
	// port-forward, cp and the proxy subresources work; see package kubelet.
	// Counts only for a new control plane.
	Kubelet bool

	// Detach lets the servers outlive this process. Without it they are killed
	// when the process ends, however it ends (on Linux; elsewhere only Close kills
	// them). Counts only for a new control plane.
	Detach bool

	// APIServerArgs are appended to the flags of every kube-apiserver, where they
	// win over ours. Counts only for a new control plane.
	APIServerArgs []string

	// VersionArgs are appended to the flags of kube-apiservers of one version, in
	// full, such as a feature gate that others do not know. Counts only for a new
	// control plane.
	VersionArgs map[string][]string

	// Logf reports progress, like log.Printf. Nil is silent.
	Logf func(format string, args ...any)
}

// A ControlPlane is one etcd and its kube-apiservers.
type ControlPlane struct {
	dir       string
	temporary bool // Close removes dir
	lab       labFile
	logf      binaries.Logf
}

// labFile is the part of a control plane that never changes, as lab.json.
type labFile struct {
	EtcdAddress     string
	EtcdPeerAddress string
	KubeletAddress  string // empty without a kubelet
	ManagerAddress  string // of kube-controller-manager, when it runs
	Servers         []labServer
	UID             bool // all servers were new enough for takesUID at the beginning
	Audit           bool
	Detach          bool
	APIServerArgs   []string
	VersionArgs     map[string][]string
	Tokens          map[string]string // by user
}

type labServer struct {
	Name    string
	Address string // host:port
}

// Build builds the binaries of the given Kubernetes versions, etcd, the kubelet and the
// kube-controller-manager, unless they are there. Start does that too, but a first build takes minutes: more
// than a test has.
func Build(ctx context.Context, logf func(format string, args ...any), versions ...string) error {
	parsed, err := parseVersions(versions)
	if err != nil {
		return err
	}
	if _, err := binaries.Etcd(ctx, logf); err != nil {
		return err
	}
	if _, err := binaries.Kubelet(ctx, logf); err != nil {
		return err
	}
	for _, v := range parsed {
		if _, err := binaries.APIServer(ctx, v, logf); err != nil {
			return err
		}
	}
	_, err = controllerManagerBinary(ctx, logf)
	return err
}

// Start starts a control plane, or what does not run of an existing one, and
// returns when all of it is ready. When it fails, what it started is gone again.
func Start(ctx context.Context, cfg Config) (_ *ControlPlane, err error) {
	c := &ControlPlane{dir: cfg.Dir, logf: cfg.Logf}
	if c.dir == "" {
		if c.dir, err = os.MkdirTemp("", "mvp-lab-"); err != nil {
			return nil, fmt.Errorf("cannot make directory for the control plane: %w", err)
		}
		c.temporary = true
	}
	defer func() {
		if err != nil && c.temporary {
			_ = os.RemoveAll(c.dir)
		}
	}()
	if c.dir, err = filepath.Abs(c.dir); err != nil {
		return nil, fmt.Errorf("cannot find directory of the control plane: %w", err)
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make directory of the control plane: %w", err)
	}
	lock, err := flock.Acquire(ctx, c.path("lab.lock"), nil)
	if err != nil {
		return nil, err
	}
	defer lock.Release()

	if err := c.loadOrCreate(cfg); err != nil {
		return nil, err
	}
	if err := c.startAll(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// ErrNoLab is the error of Open for a directory without a control plane.
var ErrNoLab = errors.New("no control plane here")

// Open returns the control plane in a directory, whether it runs or not. It is
// ErrNoLab when there is none. logf may be nil.
func Open(dir string, logf func(format string, args ...any)) (*ControlPlane, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot find directory of the control plane: %w", err)
	}
	c := &ControlPlane{dir: abs, logf: logf}
	if err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

// Close kills all servers, those another process started too, and removes a
// temporary directory. In another directory everything is kept for the next
// Start.
func (c *ControlPlane) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	err := c.each(c.All(), func(name string) error { return c.Kill(ctx, name) })
	err = errors.Join(err, c.KillControllerManager(ctx))
	if c.temporary {
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	return err
}

// Remove closes the control plane and deletes its data, logs and credentials.
func (c *ControlPlane) Remove() error {
	if err := c.Close(); err != nil {
		return err
	}
	for _, name := range []string{"etcd", "kubeconfig", "log", "pki", "run", "kubelet", "audit-policy.json", "egress-selector.json", "tokens.csv", "lab.json", "lab.lock"} {
		if err := os.RemoveAll(c.path(name)); err != nil {
			return fmt.Errorf("cannot remove control plane: %w", err)
		}
	}
	_ = os.Remove(c.dir) // stays when it has files of others
	return nil
}

// Dir returns the directory of the control plane.
func (c *ControlPlane) Dir() string { return c.dir }

// Names returns the names of the kube-apiservers in order: a, b, and so on.
func (c *ControlPlane) Names() []string {
	var names []string
	for _, s := range c.lab.Servers {
		names = append(names, s.Name)
	}
	return names
}

// All returns the names of all servers: etcd, the kubelet if there is one, and
// the kube-apiservers.
func (c *ControlPlane) All() []string { return append(c.others(), c.Names()...) }

// others returns the names of the servers that are no kube-apiservers, etcd
// first.
func (c *ControlPlane) others() []string {
	if c.lab.KubeletAddress == "" {
		return []string{Etcd}
	}
	return []string{Etcd, Kubelet}
}

func (c *ControlPlane) path(elem ...string) string {
	return filepath.Join(append([]string{c.dir}, elem...)...)
}

func (c *ControlPlane) loadOrCreate(cfg Config) error {
	err := c.load()
	if errors.Is(err, ErrNoLab) {
		return c.create(cfg)
	}
	if err != nil || len(cfg.Versions) == 0 {
		return err
	}
	if len(cfg.Versions) != len(c.lab.Servers) {
		return fmt.Errorf("%s has a control plane of %d kube-apiservers, not %d: take it down first", c.dir, len(c.lab.Servers), len(cfg.Versions))
	}
	want, err := parseVersions(cfg.Versions)
	if err != nil {
		return err
	}
	for i, name := range c.Names() {
		has, err := c.version(name)
		if err != nil {
			return err
		}
		if has != want[i] {
			return fmt.Errorf("server %s in %s is of version %s, not %s: upgrade it, or take the control plane down first", name, c.dir, has, want[i])
		}
	}
	return nil
}

func (c *ControlPlane) load() error {
	data, err := os.ReadFile(c.path("lab.json"))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %w", c.dir, ErrNoLab)
	}
	if err != nil {
		return fmt.Errorf("cannot read control plane: %w", err)
	}
	if err := json.Unmarshal(data, &c.lab); err != nil {
		return fmt.Errorf("cannot read %s: %w", c.path("lab.json"), err)
	}
	return nil
}

// create lays out a new control plane. It writes lab.json last, so that what is
// half laid out is laid out anew.
func (c *ControlPlane) create(cfg Config) error {
	if len(cfg.Versions) == 0 {
		cfg.Versions = DefaultVersions()
	}
	versions, err := parseVersions(cfg.Versions)
	if err != nil {
		return err
	}
	addrs, err := freeAddresses(4 + len(versions))
	if err != nil {
		return err
	}
	for _, dir := range []string{"etcd", "kubeconfig", "log", "pki", "run"} {
		if err := os.MkdirAll(c.path(dir), 0o700); err != nil {
			return fmt.Errorf("cannot lay out control plane: %w", err)
		}
	}
	c.lab = labFile{
		EtcdAddress:     addrs[0],
		EtcdPeerAddress: addrs[1],
		ManagerAddress:  addrs[2],
		UID:             takesUID(versions),
		Audit:           cfg.Audit,
		Detach:          cfg.Detach,
		APIServerArgs:   cfg.APIServerArgs,
		VersionArgs:     cfg.VersionArgs,
	}
	if cfg.Kubelet {
		c.lab.KubeletAddress = addrs[3]
	}
	for i, v := range versions {
		s := labServer{Name: string(rune('a' + i)), Address: addrs[4+i]}
		c.lab.Servers = append(c.lab.Servers, s)
		if err := c.setVersion(s.Name, v); err != nil {
			return err
		}
	}
	if err := c.makeCredentials(); err != nil {
		return err
	}
	if err := cache.WriteFile(c.path("audit-policy.json"), []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	if cfg.Kubelet {
		if err := c.layOutKubelet(); err != nil {
			return err
		}
	}
	data, err := json.MarshalIndent(c.lab, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode control plane: %w", err)
	}
	return cache.WriteFile(c.path("lab.json"), data, 0o600)
}

// startAll starts what does not run and waits until all is ready.
func (c *ControlPlane) startAll(ctx context.Context) error {
	var started []string
	var mu sync.Mutex
	start := func(name string) error {
		fresh, err := c.start(ctx, name)
		mu.Lock()
		defer mu.Unlock()
		if fresh {
			started = append(started, name)
		}
		return err
	}

	err := c.buildAll(ctx)
	if err == nil {
		err = start(Etcd)
	}
	if err == nil {
		err = c.each(c.All()[1:], start)
	}
	if err == nil {
		err = c.grantAlice(ctx)
	}
	if err == nil && c.lab.KubeletAddress != "" {
		err = c.registerNode(ctx)
	}
	if err != nil {
		// Not ctx: it may be what ended the start.
		kill, cancel := context.WithTimeout(context.Background(), killTimeout)
		defer cancel()
		_ = c.each(started, func(name string) error { return c.Kill(kill, name) })
	}
	return err
}

func (c *ControlPlane) buildAll(ctx context.Context) error {
	for _, name := range c.All() {
		if _, err := c.binary(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// each calls f for all names at the same time and joins the errors.
func (c *ControlPlane) each(names []string, f func(name string) error) error {
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { errs[i] = f(name) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
