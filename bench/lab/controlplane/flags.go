package controlplane

import (
	"net"

	"github.com/mixed-version-proxy/mvp/bench/lab/binaries"
)

// auditPolicy logs every request once, without bodies.
const auditPolicy = `{
  "apiVersion": "audit.k8s.io/v1",
  "kind": "Policy",
  "omitStages": ["RequestReceived"],
  "rules": [{"level": "Metadata"}]
}
`

func (c *ControlPlane) etcdArgs() []string {
	client := "https://" + c.lab.EtcdAddress
	peer := "https://" + c.lab.EtcdPeerAddress
	return []string{
		"--name=lab",
		"--data-dir=" + c.path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=lab=" + peer,
		"--cert-file=" + c.pki("etcd.crt"),
		"--key-file=" + c.pki("etcd.key"),
		"--client-cert-auth",
		"--trusted-ca-file=" + c.pki("etcd-ca.crt"),
		"--peer-cert-file=" + c.pki("etcd.crt"),
		"--peer-key-file=" + c.pki("etcd.key"),
		"--peer-client-cert-auth",
		"--peer-trusted-ca-file=" + c.pki("etcd-ca.crt"),
		"--experimental-watch-progress-notify-interval=5s", // as kubeadm sets it: bookmarks of a quiet kind are as fresh
		"--unsafe-no-fsync",                                // survives a kill of etcd, not of the machine
		"--log-level=warn",
	}
}

// minorWithUID is the first minor version that takes a user's UID from a front
// proxy.
const minorWithUID = 32

// takesUID reports whether kube-apiservers of these versions can be told to take
// a user's UID from the front proxy. One that is told so and one that is too old
// for it would overwrite each other's configmap extension-apiserver-authentication
// in an endless loop, hundreds of times a second.
func takesUID(versions []binaries.Version) bool {
	for _, v := range versions {
		if v.Minor < minorWithUID {
			return false
		}
	}
	return true
}

func (c *ControlPlane) apiServerArgs(name string, v binaries.Version, withUID bool) []string {
	host, port, _ := net.SplitHostPort(c.address(name)) // we wrote it
	args := []string{
		"--bind-address=" + host,
		"--secure-port=" + port,
		"--advertise-address=" + host,
		"--tls-cert-file=" + c.pki(name+".crt"),
		"--tls-private-key-file=" + c.pki(name+".key"),

		"--etcd-servers=https://" + c.lab.EtcdAddress,
		"--etcd-cafile=" + c.pki("etcd-ca.crt"),
		"--etcd-certfile=" + c.pki("etcd-client.crt"),
		"--etcd-keyfile=" + c.pki("etcd-client.key"),

		"--client-ca-file=" + c.pki("client-ca.crt"),
		"--token-auth-file=" + c.path("tokens.csv"),
		"--authorization-mode=RBAC",
		"--requestheader-client-ca-file=" + c.pki("request-header-ca.crt"),
		"--requestheader-allowed-names=" + frontProxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.pki("front-proxy.crt"),
		"--proxy-client-key-file=" + c.pki("front-proxy.key"),

		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.pki("service-account.pub"),
		"--service-account-signing-key-file=" + c.pki("service-account.key"),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--allow-privileged",

		// Several servers with one address and no way to reach them by the service.
		"--endpoint-reconciler-type=none",

		// What operators give a load balancer that polls /readyz each second. Then
		// watches end at once; by default they would hold up each stop for 60 seconds.
		"--shutdown-delay-duration=3s",
		"--shutdown-watch-termination-grace-period=5s",
	}
	if withUID {
		args = append(args, "--requestheader-uid-headers=X-Remote-Uid", "--feature-gates=RemoteRequestHeaderUID=true")
	}
	if c.lab.KubeletAddress != "" {
		args = append(args, c.kubeletClientArgs()...)
	}
	if c.lab.Audit {
		args = append(args, "--audit-policy-file="+c.path("audit-policy.json"), "--audit-log-path="+c.auditLog(name))
	}
	args = append(args, c.lab.APIServerArgs...)
	return append(args, c.lab.VersionArgs[v.String()]...)
}
