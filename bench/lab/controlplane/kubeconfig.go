package controlplane

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/mixed-version-proxy/mvp/bench/lab/cache"
)

// An Endpoint is something that speaks the Kubernetes API: a kube-apiserver, or
// a proxy before it.
type Endpoint struct {
	Name string // of the context in the kubeconfig
	URL  string
}

// Kubeconfig writes a kubeconfig for a user that has a token, with one context
// per endpoint, the first of which is current, and returns its path. Clients
// trust the lab's CA only; see ServingCert. The file needs no other file.
//
// For the kube-apiservers it is written at the start already: see
// KubeconfigPath.
func (c *ControlPlane) Kubeconfig(user string, endpoints ...Endpoint) (string, error) {
	token := c.Token(user)
	if token == "" {
		return "", fmt.Errorf("no token for user %.40q", user)
	}
	if len(endpoints) == 0 {
		return "", errors.New("cannot write a kubeconfig without an endpoint")
	}
	ca, err := os.ReadFile(c.Files().CA)
	if err != nil {
		return "", fmt.Errorf("cannot write kubeconfig: %w", err)
	}
	var names []string
	for _, e := range endpoints {
		if e.Name == "" || strings.ContainsAny(e.Name, `/\`) {
			return "", fmt.Errorf("cannot name a kubeconfig for endpoint %q", e.Name)
		}
		names = append(names, e.Name)
	}
	path := c.KubeconfigPath(user, names...)
	return path, cache.WriteFile(path, []byte(kubeconfig(user, token, ca, endpoints)), 0o600)
}

// KubeconfigPath returns the path of a kubeconfig: of a user on all
// kube-apiservers, with a context for each, or on those named only.
func (c *ControlPlane) KubeconfigPath(user string, names ...string) string {
	return c.path("kubeconfig", strings.Join(append([]string{user}, names...), "-")+".kubeconfig")
}

// writeKubeconfigs writes those of every user: one per server and one for all.
func (c *ControlPlane) writeKubeconfigs() error {
	var all []Endpoint
	for _, name := range c.Names() {
		all = append(all, Endpoint{Name: name, URL: c.URL(name)})
	}
	for _, u := range users {
		// The one for all first: where there is one server only, both have one name.
		path, err := c.Kubeconfig(u.name, all...)
		if err != nil {
			return err
		}
		if err := os.Rename(path, c.KubeconfigPath(u.name)); err != nil {
			return fmt.Errorf("cannot write kubeconfig: %w", err)
		}
		for _, e := range all {
			if _, err := c.Kubeconfig(u.name, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func kubeconfig(user, token string, ca []byte, endpoints []Endpoint) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Config\ncurrent-context: %q\nclusters:\n", endpoints[0].Name)
	for _, e := range endpoints {
		fmt.Fprintf(&b, "- name: %q\n  cluster:\n    server: %q\n    certificate-authority-data: %q\n",
			e.Name, e.URL, base64.StdEncoding.EncodeToString(ca))
	}
	b.WriteString("contexts:\n")
	for _, e := range endpoints {
		fmt.Fprintf(&b, "- name: %q\n  context:\n    cluster: %q\n    user: %q\n", e.Name, e.Name, user)
	}
	fmt.Fprintf(&b, "users:\n- name: %q\n  user:\n    token: %q\n", user, token)
	return b.String()
}
