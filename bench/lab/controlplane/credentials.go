package controlplane

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/mixed-version-proxy/mvp/bench/lab/cache"
	"github.com/mixed-version-proxy/mvp/bench/lab/pki"
)

// Users that have a token.
const (
	// Admin may do everything: it is in system:masters.
	Admin = "admin"

	// Alice may get, list and watch configmaps in namespace default, and what any
	// authenticated user may.
	Alice = "alice"

	// Discovery may do only what any authenticated user may: read discovery,
	// OpenAPI, /version and the health endpoints.
	Discovery = "mvp-discovery"
)

// users are those of the token file, with their groups.
var users = []struct{ name, groups string }{
	{Admin, "system:masters"},
	{Alice, ""},
	{Discovery, ""},
}

// frontProxyName is the common name that kube-apiservers accept as front proxy.
const frontProxyName = "front-proxy-client"

// Files are paths of PEM files.
type Files struct {
	// CA signed the serving certificates of the kube-apiservers, and those that
	// ServingCert makes.
	CA string

	// ClientCA signs client certificates that are credentials of users.
	ClientCA string

	// AdminCert and AdminKey are a client certificate of Admin.
	AdminCert, AdminKey string

	// RequestHeaderCA signed the certificate of the front proxy, which a
	// kube-apiserver believes who a request comes from (X-Remote-User,
	// X-Remote-Group, X-Remote-Extra-, and from 1.32 on X-Remote-Uid).
	RequestHeaderCA string

	// FrontProxyCert and FrontProxyKey are the client certificate of that proxy.
	FrontProxyCert, FrontProxyKey string
}

// Files returns the paths of the lab's certificates and keys.
func (c *ControlPlane) Files() Files {
	return Files{
		CA:              c.pki("ca.crt"),
		ClientCA:        c.pki("client-ca.crt"),
		AdminCert:       c.pki("admin.crt"),
		AdminKey:        c.pki("admin.key"),
		RequestHeaderCA: c.pki("request-header-ca.crt"),
		FrontProxyCert:  c.pki("front-proxy.crt"),
		FrontProxyKey:   c.pki("front-proxy.key"),
	}
}

// Token returns the bearer token of a user: Admin, Alice or Discovery. All
// kube-apiservers take it. It is empty for others.
func (c *ControlPlane) Token(user string) string { return c.lab.Tokens[user] }

// ServingCert makes a serving certificate that clients of the lab trust, for a
// proxy before it, and returns the paths of the certificate and of its key.
// Hosts are names and IP addresses.
func (c *ControlPlane) ServingCert(name string, hosts ...string) (certFile, keyFile string, err error) {
	return c.issueFromFile("ca", "serving-"+name, pki.Leaf{CommonName: name, Hosts: hosts})
}

// ClientCert makes a client certificate that is the credential of a user, who
// need not have a token, and returns the paths of the certificate and of its key.
func (c *ControlPlane) ClientCert(user string, groups ...string) (certFile, keyFile string, err error) {
	return c.issueFromFile("client-ca", "client-"+user, pki.Leaf{CommonName: user, Groups: groups})
}

func (c *ControlPlane) issueFromFile(caName, name string, leaf pki.Leaf) (certFile, keyFile string, err error) {
	if strings.ContainsAny(name, `/\`) {
		return "", "", fmt.Errorf("cannot name a file %q", name)
	}
	ca, err := pki.LoadCA(c.pki(caName+".crt"), c.pki(caName+".key"))
	if err != nil {
		return "", "", err
	}
	return c.pki(name + ".crt"), c.pki(name + ".key"), c.issue(ca, name, leaf)
}

func (c *ControlPlane) pki(name string) string { return c.path("pki", name) }

// makeCredentials writes the keys, certificates, tokens and kubeconfigs of a new
// control plane.
func (c *ControlPlane) makeCredentials() error {
	serving, err := c.newCA("ca")
	if err != nil {
		return err
	}
	client, err := c.newCA("client-ca")
	if err != nil {
		return err
	}
	requestHeader, err := c.newCA("request-header-ca")
	if err != nil {
		return err
	}
	etcd, err := c.newCA("etcd-ca")
	if err != nil {
		return err
	}

	leaves := []struct {
		ca   *pki.CA
		name string
		leaf pki.Leaf
	}{
		{client, "admin", pki.Leaf{CommonName: Admin, Groups: []string{"system:masters"}}},
		{requestHeader, "front-proxy", pki.Leaf{CommonName: frontProxyName}},
		{etcd, "etcd", pki.Leaf{CommonName: Etcd, Hosts: []string{"localhost", "127.0.0.1"}}},
		{etcd, "etcd-client", pki.Leaf{CommonName: "kube-apiserver"}},
	}
	for _, l := range leaves {
		if err := c.issue(l.ca, l.name, l.leaf); err != nil {
			return err
		}
	}
	for _, name := range c.Names() {
		hosts := []string{"localhost", "127.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.0.0.1"}
		if err := c.issue(serving, name, pki.Leaf{CommonName: "kube-apiserver-" + name, Hosts: hosts}); err != nil {
			return err
		}
	}
	if err := c.makeKubeletCredentials(); err != nil {
		return err
	}
	serviceAccount, err := pki.NewKey()
	if err != nil {
		return err
	}
	if err := serviceAccount.Save(c.pki("service-account.pub"), c.pki("service-account.key")); err != nil {
		return err
	}
	if err := c.makeTokens(); err != nil {
		return err
	}
	return c.writeKubeconfigs()
}

func (c *ControlPlane) newCA(name string) (*pki.CA, error) {
	ca, err := pki.NewCA("lab " + name)
	if err != nil {
		return nil, err
	}
	return ca, ca.Save(c.pki(name+".crt"), c.pki(name+".key"))
}

func (c *ControlPlane) issue(ca *pki.CA, name string, leaf pki.Leaf) error {
	pair, err := ca.Issue(leaf)
	if err != nil {
		return err
	}
	return pair.Save(c.pki(name+".crt"), c.pki(name+".key"))
}

// makeTokens writes the token file of the kube-apiservers.
func (c *ControlPlane) makeTokens() error {
	c.lab.Tokens = make(map[string]string)
	var file strings.Builder
	for _, u := range users {
		random := make([]byte, 16)
		if _, err := rand.Read(random); err != nil {
			return fmt.Errorf("cannot make token: %w", err)
		}
		token := hex.EncodeToString(random)
		c.lab.Tokens[u.name] = token
		// Token, user, UID, groups.
		fmt.Fprintf(&file, "%s,%s,uid-%s,%q\n", token, u.name, u.name, u.groups)
	}
	return cache.WriteFile(c.path("tokens.csv"), []byte(file.String()), 0o600)
}
