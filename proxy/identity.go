package proxy

import (
	"hash/maphash"
	"strings"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// spoofable reports whether a header claims an identity or a forwarding hop that
// only a front proxy may claim. Such lines are removed from every client's
// request before any is added (kube-apiserver trusts X-Remote-* only beside a
// front-proxy certificate, but the proxy must not be the one who lends it).
func spoofable(name string) bool {
	return hasPrefixFold(name, "X-Remote-User") ||
		hasPrefixFold(name, "X-Remote-Group") ||
		hasPrefixFold(name, "X-Remote-Uid") ||
		hasPrefixFold(name, "X-Remote-Extra-") ||
		// The mark by which kube-apiserver's own peer proxy knows a rerouted
		// request (KEP-4020).
		strings.EqualFold(name, "x-kubernetes-peer-proxied") ||
		// The real peer is appended to X-Forwarded-For; this one would be believed
		// as it stands by kube-apiserver's audit log.
		strings.EqualFold(name, "X-Real-Ip")
}

// carriesIdentity reports whether a header must not be dropped because the
// client listed it in Connection.
func carriesIdentity(name string) bool {
	return strings.EqualFold(name, "Authorization") || hasPrefixFold(name, "Impersonate-")
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// identify makes the header lines that go upstream: the client's own, without
// what belongs to its connection only and without claims it may not make.
// Credentials pass as they came, so that a server authorises the client itself;
// a request never runs with MVP's own identity.
func (x *exchange) identify() error {
	h := x.in.Header.Clone(4)
	h.EndToEnd(carriesIdentity)
	h.Del(func(name string) bool {
		return spoofable(name) ||
			strings.EqualFold(name, "Host") || // written by the connection
			strings.EqualFold(name, "Content-Length") ||
			strings.EqualFold(name, "Expect") // answered to the client already
	})
	forwardedFor(&h, x.in.RemoteAddr.Addr().Unmap().String())
	x.header = h
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

// caller is a hash of the client's credential, or of its address without one. It
// keeps a client's lists, watches and continue tokens on one server; it is never
// logged.
func (x *exchange) caller() uint64 {
	if token := x.in.Header.Get("Authorization"); token != "" {
		return maphash.String(affinitySeed, token)
	}
	return maphash.String(affinitySeed, x.in.RemoteAddr.Addr().String())
}
