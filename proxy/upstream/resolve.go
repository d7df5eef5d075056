package upstream

import (
	"context"
	"net"
	"net/netip"
	"time"
)

// resolveInterval is how soon connections to an address leave idleness for good after
// the server's name no longer resolves to it. New connections resolve it each time.
const resolveInterval = 10 * time.Second

// followName resolves the server's name until ctx is done, so that requests move to
// its new addresses without an error that makes them. A name that cannot be resolved
// changes nothing.
func (s *Server) followName(ctx context.Context) {
	if _, err := netip.ParseAddr(s.end.host); err == nil {
		return
	}
	every(ctx, resolveInterval, nil, func() {
		lookupCtx, cancel := context.WithTimeout(ctx, s.cfg.DialTimeout)
		defer cancel()
		if ips, err := net.DefaultResolver.LookupNetIP(lookupCtx, "ip", s.end.host); err == nil && len(ips) > 0 {
			s.moveTo(ips)
		}
	})
}

func (s *Server) moveTo(ips []netip.Addr) {
	known := make(map[netip.Addr]bool, len(ips))
	for _, ip := range ips {
		known[ip.Unmap()] = true
	}
	s.addresses.Store(&known)
	s.idle.sweep()
}
