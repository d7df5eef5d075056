package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/binaries"
	"github.com/mixed-version-proxy/mvp/bench/lab/flock"
)

const (
	// stopTimeout is how long a server may take to stop by itself. A
	// kube-apiserver gives the requests in flight 60 seconds.
	stopTimeout = 75 * time.Second

	// killTimeout is how long the system may take to end a killed process.
	killTimeout = 10 * time.Second
)

// A Server is what is known of one server of a control plane at one moment.
type Server struct {
	Name     string // Etcd, Kubelet, or a, b, and so on
	Version  string // such as 1.31.14; empty for etcd and the kubelet
	URL      string // such as https://127.0.0.1:20100; never changes
	PID      int    // 0 when it does not run
	Log      string // path
	AuditLog string // path, empty without Config.Audit; one JSON event a line, within moments of the answer
}

// Server returns the kube-apiserver of that name, or etcd, or the kubelet.
func (c *ControlPlane) Server(name string) (Server, error) {
	if err := c.check(name); err != nil {
		return Server{}, err
	}
	s := Server{Name: name, URL: c.URL(name), Log: c.path("log", name+".log")}
	if isAPIServer(name) {
		v, err := c.version(name)
		if err != nil {
			return Server{}, err
		}
		s.Version = v.String()
		if c.lab.Audit {
			s.AuditLog = c.auditLog(name)
		}
	}
	pid, err := runningPID(c.pidFile(name))
	if err != nil {
		return Server{}, err
	}
	s.PID = pid
	return s, nil
}

// URL returns the base URL of a server, which never changes. It panics when
// there is no server of that name.
func (c *ControlPlane) URL(name string) string {
	addr := c.address(name)
	if addr == "" {
		panic(fmt.Sprintf("controlplane: no server %q", name))
	}
	return "https://" + addr
}

// address returns the host:port of a server, or "" when there is none of that
// name.
func (c *ControlPlane) address(name string) string {
	switch name {
	case Etcd:
		return c.lab.EtcdAddress
	case Kubelet:
		return c.lab.KubeletAddress
	case controllerManager:
		return c.lab.ManagerAddress
	}
	for _, s := range c.lab.Servers {
		if s.Name == name {
			return s.Address
		}
	}
	return ""
}

// Launch starts a server and does not wait for it. It does nothing when the
// server runs.
func (c *ControlPlane) Launch(ctx context.Context, name string) error {
	return c.exclusive(ctx, name, func() error {
		_, err := c.launch(ctx, name)
		return err
	})
}

// Start starts a server, unless it runs, and waits until it is ready.
func (c *ControlPlane) Start(ctx context.Context, name string) error {
	_, err := c.start(ctx, name)
	return err
}

// Stop asks a server to stop, as an upgrade does, and waits until its process is
// gone. A kube-apiserver first reports that it is not ready, then stops to listen
// and finishes what it is doing. It does nothing when the server does not run.
func (c *ControlPlane) Stop(ctx context.Context, name string) error {
	return c.exclusive(ctx, name, func() error { return c.stop(ctx, name) })
}

// Kill ends a server as a crash does and waits until its process is gone. It
// does not wait for other methods on that server, so that it can end a stop.
func (c *ControlPlane) Kill(ctx context.Context, name string) error {
	if err := c.check(name); err != nil {
		return err
	}
	if err := c.signal(name, sigKill); err != nil {
		return err
	}
	return c.waitGone(ctx, name, killTimeout)
}

// Pause makes a server hang: it keeps its connections and accepts new ones, but
// answers nothing until Resume.
func (c *ControlPlane) Pause(name string) error {
	if err := c.check(name); err != nil {
		return err
	}
	return c.signal(name, sigStop)
}

// Resume ends Pause.
func (c *ControlPlane) Resume(name string) error {
	if err := c.check(name); err != nil {
		return err
	}
	return c.signal(name, sigContinue)
}

// Restart is Stop and Start.
func (c *ControlPlane) Restart(ctx context.Context, name string) error {
	return c.exclusive(ctx, name, func() error {
		if err := c.stop(ctx, name); err != nil {
			return err
		}
		return c.launchReady(ctx, name)
	})
}

// Upgrade stops a kube-apiserver and starts another version of it at the same
// address; to an older version too. It builds that version before it stops the
// server.
func (c *ControlPlane) Upgrade(ctx context.Context, name, version string) error {
	if !isAPIServer(name) {
		return fmt.Errorf("cannot upgrade %.40s: only kube-apiservers have versions to choose from", name)
	}
	v, err := binaries.ParseVersion(version)
	if err != nil {
		return err
	}
	if err := c.check(name); err != nil {
		return err
	}
	if _, err := binaries.APIServer(ctx, v, c.logf); err != nil {
		return err
	}
	return c.exclusive(ctx, name, func() error {
		if err := c.stop(ctx, name); err != nil {
			return err
		}
		if err := c.setVersion(name, v); err != nil {
			return err
		}
		return c.launchReady(ctx, name)
	})
}

// exclusive runs f while no other process or goroutine changes that server.
func (c *ControlPlane) exclusive(ctx context.Context, name string, f func() error) error {
	if err := c.check(name); err != nil {
		return err
	}
	lock, err := flock.Acquire(ctx, c.path("run", name+".lock"), nil)
	if err != nil {
		return err
	}
	defer lock.Release()
	return f()
}

// start reports whether it is the one that started the server, also when it then
// fails.
func (c *ControlPlane) start(ctx context.Context, name string) (fresh bool, err error) {
	err = c.exclusive(ctx, name, func() error {
		if fresh, err = c.launch(ctx, name); err != nil {
			return err
		}
		return c.WaitReady(ctx, name)
	})
	return fresh, err
}

func (c *ControlPlane) launchReady(ctx context.Context, name string) error {
	if _, err := c.launch(ctx, name); err != nil {
		return err
	}
	return c.WaitReady(ctx, name)
}

// launch reports whether it started the server; if not, it was running.
func (c *ControlPlane) launch(ctx context.Context, name string) (bool, error) {
	if pid, err := runningPID(c.pidFile(name)); err != nil || pid != 0 {
		return false, err
	}
	bin, err := c.binary(ctx, name)
	if err != nil {
		return false, err
	}
	args, err := c.args(name)
	if err != nil {
		return false, err
	}
	err = startProcess(process{
		bin:     bin,
		args:    args,
		dir:     c.dir,
		log:     c.path("log", name+".log"),
		pidFile: c.pidFile(name),
		detach:  c.lab.Detach,
	})
	if err != nil {
		return false, fmt.Errorf("cannot start %s: %w", name, err)
	}
	return true, nil
}

// args returns the flags of a server.
func (c *ControlPlane) args(name string) ([]string, error) {
	switch name {
	case Etcd:
		return c.etcdArgs(), nil
	case Kubelet:
		return c.kubeletArgs(), nil
	}
	versions, err := c.versions()
	if err != nil {
		return nil, err
	}
	v, err := c.version(name)
	if err != nil {
		return nil, err
	}
	return c.apiServerArgs(name, v, c.lab.UID && takesUID(versions)), nil
}

func (c *ControlPlane) stop(ctx context.Context, name string) error {
	if err := c.signal(name, sigTerminate); err != nil {
		return err
	}
	// A paused process takes no notice of the request to stop.
	if err := c.signal(name, sigContinue); err != nil {
		return err
	}
	err := c.waitGone(ctx, name, stopTimeout)
	if err != nil && ctx.Err() == nil {
		return errors.Join(err, c.Kill(ctx, name))
	}
	return err
}

func (c *ControlPlane) signal(name string, sig signal) error {
	pid, err := runningPID(c.pidFile(name))
	if err != nil || pid == 0 {
		return err
	}
	if err := sendSignal(pid, sig); err != nil {
		return fmt.Errorf("cannot signal %s, process %d: %w", name, pid, err)
	}
	return nil
}

// waitGone waits until the process of a server has ended.
func (c *ControlPlane) waitGone(ctx context.Context, name string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it still runs after %s", timeout))
	defer cancel()
	for {
		held, err := flock.Held(c.pidFile(name))
		if err != nil {
			return err
		}
		// A process that ends closes its files one by one, the lock among the
		// first, so its port may be open for another moment.
		if !held && !listening(ctx, c.address(name)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not end, see %s: %w", name, c.path("log", name+".log"), context.Cause(ctx))
		case <-time.After(pollInterval):
		}
	}
}

func (c *ControlPlane) check(name string) error {
	names := append(c.Names(), c.others()...)
	if slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("no server %.40q: want one of %s", name, strings.Join(names, ", "))
}

// isAPIServer is of a name that check has passed.
func isAPIServer(name string) bool { return name != Etcd && name != Kubelet }

func (c *ControlPlane) binary(ctx context.Context, name string) (string, error) {
	switch name {
	case Etcd:
		return binaries.Etcd(ctx, c.logf)
	case Kubelet:
		return binaries.Kubelet(ctx, c.logf)
	}
	v, err := c.version(name)
	if err != nil {
		return "", err
	}
	return binaries.APIServer(ctx, v, c.logf)
}

func (c *ControlPlane) pidFile(name string) string { return c.path("run", name+".pid") }

func (c *ControlPlane) auditLog(name string) string { return c.path("log", name+"-audit.log") }
