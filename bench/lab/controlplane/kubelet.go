package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/mixed-version-proxy/mvp/bench/lab/cache"
	"github.com/mixed-version-proxy/mvp/bench/lab/kubelet"
	"github.com/mixed-version-proxy/mvp/bench/lab/pki"
)

// makeKubeletCredentials writes the certificates by which kube-apiservers and
// the kubelet know each other. It is harmless without a kubelet.
func (c *ControlPlane) makeKubeletCredentials() error {
	ca, err := c.newCA("kubelet-ca")
	if err != nil {
		return err
	}
	if err := c.issue(ca, "kubelet", pki.Leaf{CommonName: "system:node:" + kubelet.Node, Hosts: []string{"127.0.0.1", kubelet.NodeIP}}); err != nil {
		return err
	}
	return c.issue(ca, "kubelet-client", pki.Leaf{CommonName: "kube-apiserver-kubelet-client"})
}

// layOutKubelet writes what the kubelet and its clients read.
func (c *ControlPlane) layOutKubelet() error {
	if err := os.MkdirAll(c.path("kubelet"), 0o700); err != nil {
		return fmt.Errorf("cannot lay out kubelet: %w", err)
	}
	pods, err := kubelet.Pods()
	if err != nil {
		return err
	}
	if err := cache.WriteFile(c.path("kubelet", "pods.json"), pods, 0o600); err != nil {
		return err
	}
	selector, err := json.MarshalIndent(c.egressSelector(), "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode egress selector: %w", err)
	}
	return cache.WriteFile(c.path("egress-selector.json"), selector, 0o600)
}

// egressSelector sends all that a kube-apiserver sends to nodes, pods and
// services over the kubelet.
func (c *ControlPlane) egressSelector() any {
	return map[string]any{
		"apiVersion": "apiserver.k8s.io/v1beta1",
		"kind":       "EgressSelectorConfiguration",
		"egressSelections": []any{map[string]any{
			"name": "cluster",
			"connection": map[string]any{
				"proxyProtocol": "HTTPConnect",
				"transport": map[string]any{"tcp": map[string]any{
					"url": c.URL(Kubelet),
					"tlsConfig": map[string]any{
						"caBundle":   c.pki("kubelet-ca.crt"),
						"clientCert": c.pki("kubelet-client.crt"),
						"clientKey":  c.pki("kubelet-client.key"),
					},
				}},
			},
		}},
	}
}

func (c *ControlPlane) kubeletArgs() []string {
	return []string{
		"--address=" + c.lab.KubeletAddress,
		"--node-ip=" + kubelet.NodeIP,
		"--pod-ip=" + kubelet.PodIP,
		"--tls-cert-file=" + c.pki("kubelet.crt"),
		"--tls-private-key-file=" + c.pki("kubelet.key"),
		"--client-ca-file=" + c.pki("kubelet-ca.crt"),
		"--pods=" + c.path("kubelet", "pods.json"),
		"--root-dir=" + c.path("kubelet"),
	}
}

// kubeletClientArgs are flags of a kube-apiserver.
func (c *ControlPlane) kubeletClientArgs() []string {
	return []string{
		"--kubelet-client-certificate=" + c.pki("kubelet-client.crt"),
		"--kubelet-client-key=" + c.pki("kubelet-client.key"),
		"--kubelet-certificate-authority=" + c.pki("kubelet-ca.crt"),
		"--kubelet-preferred-address-types=InternalIP",
		"--egress-selector-config-file=" + c.path("egress-selector.json"),
	}
}

// registerNode writes the node and its pods by the first kube-apiserver.
func (c *ControlPlane) registerNode(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("waited %s", readyTimeout))
	defer cancel()
	_, portText, _ := net.SplitHostPort(c.lab.KubeletAddress) // we wrote it
	port, err := strconv.Atoi(portText)
	if err != nil {
		return fmt.Errorf("bad address of the kubelet: %w", err)
	}
	objects, err := kubelet.Objects(port)
	if err != nil {
		return err
	}
	client, err := c.HTTPClient(Admin)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	for _, o := range objects {
		paths := []string{o.Path}
		if o.Status {
			paths = append(paths, o.Path+"/status")
		}
		for _, path := range paths {
			url := c.URL(c.Names()[0]) + path + "?fieldManager=mvp-lab&force=true"
			if err := applyWhenPossible(ctx, client, url, string(bytes.TrimSpace(o.JSON))); err != nil {
				return fmt.Errorf("cannot register the node: %w", err)
			}
		}
	}
	return nil
}
