package proxy

import (
	"hash/maphash"
	"strings"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// spoofable reports whether a header claims an identity or a forwarding hop that
// only a front proxy may claim. Such lines are removed from every client's
// request before any is added (kube-apiserver trusts them only beside a
// front-proxy certificate, but the proxy must not be the one who lends it).
func (a *authenticator) spoofable(name string) bool {
	if hasPrefixFold(name, "X-Remote-") ||
		// The mark by which kube-apiserver's own peer proxy knows a rerouted
		// request (KEP-4020).
		strings.EqualFold(name, "x-kubernetes-peer-proxied") ||
		// The real peer is appended to X-Forwarded-For; this one would be believed
		// as it stands by kube-apiserver's audit log.
		strings.EqualFold(name, "X-Real-Ip") {
		return true
	}
	for _, n := range a.names {
		if strings.EqualFold(name, n) {
			return true
		}
	}
	for _, prefix := range a.prefixes {
		if hasPrefixFold(name, prefix) {
			return true
		}
	}
	return false
}

// carriesIdentity reports whether a header must not be dropped because the
// client listed it in Connection: a request must reach the server as the one
// that was judged here.
func carriesIdentity(name string) bool {
	return strings.EqualFold(name, "Authorization") || hasPrefixFold(name, "Impersonate-") ||
		strings.EqualFold(name, websocketProtocols)
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// identify makes the header lines that go upstream: the client's own, without
// what belongs to its connection only and without claims it may not make; then
// what tells the server who the client is, where its credential cannot. It starts
// from what the client sent each time, so that another try has the same lines.
func (x *exchange) identify() error {
	h := x.in.Header.Clone(len(x.who.lines) + 4)
	h.EndToEnd(carriesIdentity)
	instead := x.who.credential != upstream.ClientCredential
	h.Del(func(name string) bool {
		return x.s.auth.spoofable(name) ||
			strings.EqualFold(name, "Host") || // written by the connection
			strings.EqualFold(name, "Content-Length") ||
			strings.EqualFold(name, "Expect") || // answered to the client already
			instead && strings.EqualFold(name, "Authorization") // no bearer token, or it would have passed
	})
	forwardedFor(&h, x.in.RemoteAddr.Addr().Unmap().String())
	x.header = append(h, x.who.lines...)
	return nil
}

// forwardedFor appends the peer to X-Forwarded-For, all in one line: a server
// that reads only the first or the last line must see the same list.
func forwardedFor(h *wire.Header, peer string) {
	list := strings.Join(h.Values("X-Forwarded-For"), ", ")
	if list != "" {
		list += ", "
	}
	h.Set("X-Forwarded-For", list+peer)
}

var affinitySeed = maphash.MakeSeed()

// caller is a hash of who sends the request: of a token, of the user of a
// certificate, or of the client's address without any. It keeps a client's lists,
// watches and continue tokens on one server; it is never logged.
func (x *exchange) caller() uint64 {
	switch {
	case x.who.token != "":
		return maphash.String(affinitySeed, "token "+x.who.token)
	case x.who.certified():
		return maphash.String(affinitySeed, "user "+x.who.user.Name)
	}
	return maphash.String(affinitySeed, "address "+x.in.RemoteAddr.Addr().String())
}
