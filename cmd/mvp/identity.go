package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/mixed-version-proxy/mvp/proxy"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// identityOptions are the flags of `mvp serve` about who clients are. Names are
// kube-apiserver's where it has one.
type identityOptions struct {
	clientCAFile string
	impersonate  bool
	headers      proxy.RequestHeaders
	tokenReview  bool
}

func (o *identityOptions) flags(cmd *cobra.Command, up *upstream.Config) {
	f := cmd.Flags()
	names := proxy.DefaultRequestHeaders()
	f.StringVar(&o.clientCAFile, "client-ca-file", "", "PEM file of the CAs that sign clients' certificates (default: none is asked for)")
	f.StringVar(&up.FrontProxyCertFile, "proxy-client-cert-file", "", "front-proxy certificate, with which MVP tells the kube-apiservers who presented a client certificate")
	f.StringVar(&up.FrontProxyKeyFile, "proxy-client-key-file", "", "the key of --proxy-client-cert-file")
	f.BoolVar(&o.impersonate, "impersonate", false, "tell the kube-apiservers who presented a client certificate by impersonation, with MVP's own credential")
	f.BoolVar(&o.tokenReview, "authentication-token-review", false, "let policies know the user of a bearer token, by a TokenReview with MVP's own credential")
	f.StringSliceVar(&o.headers.Username, "requestheader-username-headers", names.Username, "the kube-apiservers' flag of that name: taken from clients' requests, the first is written")
	f.StringSliceVar(&o.headers.Group, "requestheader-group-headers", names.Group, "the same for groups")
	f.StringSliceVar(&o.headers.UID, "requestheader-uid-headers", names.UID, "the same for UIDs")
	f.StringSliceVar(&o.headers.ExtraPrefix, "requestheader-extra-headers-prefix", names.ExtraPrefix, "the same for prefixes of extra attributes")
}

// config checks what the flags mean together. own says that MVP has a credential of its
// own.
func (o *identityOptions) config(up *upstream.Config, own bool, log *slog.Logger) (proxy.Identity, error) {
	frontProxy := up.FrontProxyCertFile != "" || up.FrontProxyKeyFile != ""
	identity := proxy.Identity{RequestHeaders: o.headers, TokenReview: o.tokenReview}
	switch {
	case (up.FrontProxyCertFile == "") != (up.FrontProxyKeyFile == ""):
		return identity, usageError("--proxy-client-cert-file and --proxy-client-key-file go together")
	case frontProxy && o.impersonate:
		return identity, usageError("--proxy-client-cert-file and --impersonate are two ways of the same: give one")
	case (frontProxy || o.impersonate) && o.clientCAFile == "":
		return identity, usageError("no client certificate can be verified: give --client-ca-file")
	case o.impersonate && !own:
		return identity, usageError("--impersonate needs a credential of MVP's own: give --upstream-token-file or --upstream-client-cert-file")
	case o.tokenReview && !own:
		return identity, usageError("--authentication-token-review needs a credential of MVP's own: give --upstream-token-file or --upstream-client-cert-file")
	case frontProxy:
		identity.Certificates = proxy.CertificatesAsRequestHeaders
	case o.impersonate:
		identity.Certificates = proxy.CertificatesImpersonated
	case o.clientCAFile != "":
		log.Warn("client certificates are verified, but then answered 401: give --proxy-client-cert-file or --impersonate")
	}
	return identity, nil
}
