package kubeconfig

import (
	"errors"
	"fmt"

	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// resolve gives the servers of the contexts, each under its context's name, or every
// mistake in them.
func (s *Source) resolve(config *api.Config) ([]upstream.ServerConfig, error) {
	var servers []upstream.ServerConfig
	var errs []error
	urls := map[string]string{} // the context that has a URL
	for _, name := range s.contexts {
		server, err := s.server(config, name)
		if other, twice := urls[server.URL]; err == nil && twice {
			err = fmt.Errorf("contexts %q and %q of kubeconfig %s lead to the same kube-apiserver, %s: name one of them", other, name, s.file, server.URL)
		}
		urls[server.URL] = name
		servers, errs = append(servers, server), append(errs, err)
	}
	return servers, errors.Join(errs...)
}

func (s *Source) server(config *api.Config, name string) (upstream.ServerConfig, error) {
	ctx := config.Contexts[name]
	if ctx == nil {
		return upstream.ServerConfig{}, fmt.Errorf("kubeconfig %s has no context %q; its contexts: %s", s.file, name, contextsOf(config))
	}
	cluster, user := config.Clusters[ctx.Cluster], config.AuthInfos[ctx.AuthInfo]
	if cluster == nil {
		return upstream.ServerConfig{}, fmt.Errorf("context %q of kubeconfig %s names the cluster %q, which is not in it", name, s.file, ctx.Cluster)
	}
	if user == nil {
		if ctx.AuthInfo != "" {
			return upstream.ServerConfig{}, fmt.Errorf("context %q of kubeconfig %s names the user %q, which is not in it", name, s.file, ctx.AuthInfo)
		}
		user = &api.AuthInfo{}
	}
	if err := errors.Join(checkCluster(cluster), checkUser(user)); err != nil {
		return upstream.ServerConfig{}, fmt.Errorf("cannot use context %q of kubeconfig %s: %w", name, s.file, err)
	}
	return upstream.ServerConfig{Name: name, URL: cluster.Server, Access: access(cluster, user)}, nil
}

func access(cluster *api.Cluster, user *api.AuthInfo) *upstream.Access {
	return &upstream.Access{
		CAFile: cluster.CertificateAuthority, CAData: cluster.CertificateAuthorityData,
		ServerName: cluster.TLSServerName, InsecureSkipTLSVerify: cluster.InsecureSkipTLSVerify,
		ClientCertFile: user.ClientCertificate, ClientCertData: user.ClientCertificateData,
		ClientKeyFile: user.ClientKey, ClientKeyData: user.ClientKeyData,
		TokenFile: user.TokenFile, Token: user.Token,
	}
}

func checkCluster(c *api.Cluster) error {
	switch {
	case c.Server == "":
		return errors.New("its cluster has no server")
	case c.ProxyURL != "":
		return errors.New("its cluster has a proxy-url, and MVP connects to kube-apiservers directly: give a cluster without one")
	case c.InsecureSkipTLSVerify && (c.CertificateAuthority != "" || len(c.CertificateAuthorityData) > 0):
		return errors.New("its cluster has a certificate authority and insecure-skip-tls-verify: give one of them")
	}
	return nil
}

// checkUser refuses what MVP cannot present. It runs no programs for a credential.
func checkUser(u *api.AuthInfo) error {
	const want = "give a token, a tokenFile or a client certificate"
	switch {
	case u.Exec != nil:
		return fmt.Errorf("its user's credential comes from the program %q (exec), which MVP does not run: %s", u.Exec.Command, want)
	case u.AuthProvider != nil:
		return fmt.Errorf("its user's credential comes from the auth-provider %q, which MVP does not have: %s", u.AuthProvider.Name, want)
	case u.Username != "" || u.Password != "":
		return errors.New("its user has a user name and a password, which kube-apiservers no longer take: " + want)
	case u.Impersonate != "" || u.ImpersonateUID != "" || len(u.ImpersonateGroups) > 0 || len(u.ImpersonateUserExtra) > 0:
		return errors.New("its user impersonates another one, which MVP does not do for its own requests: " + want + " of the user that MVP shall be")
	}
	return nil
}
