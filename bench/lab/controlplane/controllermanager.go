package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/mixed-version-proxy/mvp/bench/lab/binaries"
	"github.com/mixed-version-proxy/mvp/bench/lab/cache"
	"github.com/mixed-version-proxy/mvp/bench/lab/flock"
)

// ControllerManagerVersion is the version of kube-controller-manager, whatever the
// versions of the kube-apiservers are.
const ControllerManagerVersion = "1.32.13"

// controllerManager is the name of its files; it is no name for other methods.
const controllerManager = "controller-manager"

// controllerManagerUser is whom Kubernetes' own roles take it for.
const controllerManagerUser = "system:kube-controller-manager"

// StartControllerManager starts a kube-controller-manager as a client of what
// serves the Kubernetes API at url: a server of the control plane, or a proxy
// before it that takes client certificates. It returns when it is healthy, which
// is before its controllers have done anything. Close and KillControllerManager
// end it.
//
// It presents a client certificate, and gets tokens of service accounts for its
// controllers, as it does in a cluster that kubeadm has made.
func (c *ControlPlane) StartControllerManager(ctx context.Context, url string) (Server, error) {
	lock, err := flock.Acquire(ctx, c.path("run", controllerManager+".lock"), nil)
	if err != nil {
		return Server{}, err
	}
	defer lock.Release()
	if pid, err := runningPID(c.pidFile(controllerManager)); err != nil || pid != 0 {
		return Server{}, errors.Join(err, fmt.Errorf("kube-controller-manager runs already, as process %d", pid))
	}
	bin, err := controllerManagerBinary(ctx, c.logf)
	if err != nil {
		return Server{}, err
	}
	args, err := c.controllerManagerArgs(url)
	if err != nil {
		return Server{}, err
	}
	err = startProcess(process{
		bin:     bin,
		args:    args,
		dir:     c.dir,
		log:     c.path("log", controllerManager+".log"),
		pidFile: c.pidFile(controllerManager),
		detach:  c.lab.Detach,
	})
	if err != nil {
		return Server{}, fmt.Errorf("cannot start kube-controller-manager: %w", err)
	}
	if err := c.waitReady(ctx, controllerManager); err != nil {
		return Server{}, err
	}
	return c.ControllerManager()
}

// ControllerManager is what is known of the kube-controller-manager now.
func (c *ControlPlane) ControllerManager() (Server, error) {
	pid, err := runningPID(c.pidFile(controllerManager))
	return Server{
		Name:    controllerManager,
		Version: ControllerManagerVersion,
		URL:     "https://" + c.lab.ManagerAddress,
		PID:     pid,
		Log:     c.path("log", controllerManager+".log"),
	}, err
}

// KillControllerManager ends it as a crash does. It does nothing when it does not
// run.
func (c *ControlPlane) KillControllerManager(ctx context.Context) error {
	if err := c.signal(controllerManager, sigKill); err != nil {
		return err
	}
	return c.waitGone(ctx, controllerManager, killTimeout)
}

func controllerManagerBinary(ctx context.Context, logf binaries.Logf) (string, error) {
	v, err := binaries.ParseVersion(ControllerManagerVersion)
	if err != nil {
		return "", err
	}
	return binaries.ControllerManager(ctx, v, logf)
}

// controllerManagerArgs writes what the flags name and returns them.
func (c *ControlPlane) controllerManagerArgs(url string) ([]string, error) {
	kubeconfig, err := c.controllerManagerKubeconfig(url)
	if err != nil {
		return nil, err
	}
	cert, key, err := c.ServingCert(controllerManager, "127.0.0.1")
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(c.lab.ManagerAddress) // we wrote it
	return []string{
		"--bind-address=" + host,
		"--secure-port=" + port,
		"--tls-cert-file=" + cert,
		"--tls-private-key-file=" + key,
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + c.pki("service-account.key"),
		"--root-ca-file=" + c.pki("ca.crt"),
		"--cluster-signing-cert-file=" + c.pki("client-ca.crt"),
		"--cluster-signing-key-file=" + c.pki("client-ca.key"),

		// One that is killed gives way soon, and one that cannot renew notices soon.
		"--leader-elect=true",
		"--leader-elect-lease-duration=15s",
		"--leader-elect-renew-deadline=10s",
		"--leader-elect-retry-period=2s",

		// Tests delete many namespaces at once and wait for them.
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--concurrent-namespace-syncs=10",
		"--concurrent-gc-syncs=10",
	}, nil
}

// controllerManagerKubeconfig writes the kubeconfig with its certificate.
func (c *ControlPlane) controllerManagerKubeconfig(url string) (string, error) {
	cert, key, err := c.ClientCert(controllerManagerUser)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: lab
clusters: [{name: lab, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: manager, user: {client-certificate: %q, client-key: %q}}]
contexts: [{name: lab, context: {cluster: lab, user: manager}}]
`, url, c.Files().CA, cert, key)
	path := c.path("kubeconfig", controllerManager+".kubeconfig")
	return path, cache.WriteFile(path, []byte(text), 0o600)
}
