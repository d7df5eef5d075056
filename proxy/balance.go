package proxy

import (
	"cmp"
	"hash/maphash"
	"strings"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// A server is overloaded, against the others that may answer as well, when it has
// more requests under way than loadNumerator/loadDenominator of their average and
// loadSlack more: below that, no kube-apiserver feels it, and a client had better
// stay where it is.
const (
	loadNumerator   = 5
	loadDenominator = 4
	loadSlack       = 16
)

// pick chooses among servers, of which there is at least one: the highest score, then
// the guard, then those not in doubt, then rendezvous hashing with bounded load. A client's requests for a
// resource stay on one server while it lives, and only that server's clients move
// when it goes; but what one client asks for beyond what the server's share is, such
// as an operator that writes ten thousand objects, goes to the next one.
func (x *exchange) pick(servers []rankedServer) *upstream.State {
	best := servers[0]
	equals, total := 0, 0
	for _, s := range servers {
		switch s.compare(&best) {
		case -1:
			best, equals, total = s, 1, s.load
		case 0:
			equals, total = equals+1, total+s.load
		}
	}
	if equals == 1 {
		return best.state
	}
	limit, sticks := total*loadNumerator/(equals*loadDenominator)+loadSlack, x.sticks()
	caller, heaviest := x.caller(), uint64(0)
	var chosen *upstream.State
	for _, s := range servers {
		if s.compare(&best) != 0 || s.load > limit && !sticks {
			continue
		}
		if w := x.weight(s.state, caller); chosen == nil || w > heaviest {
			chosen, heaviest = s.state, w
		}
	}
	return chosen // there is one: not all can be above their average
}

// compare is negative when r goes before o, whatever their loads.
func (r *rankedServer) compare(o *rankedServer) int {
	return cmp.Or(cmp.Compare(o.score, r.score), cmp.Compare(o.guard, r.guard), cmp.Compare(r.doubt, o.doubt))
}

// sticks reports whether the request belongs to earlier ones, so that it stays with
// their server however busy that is: another one may not have seen yet what the
// client has ("too large resource version"). A watch does, too: its load is its
// events, which no count of requests shows.
func (x *exchange) sticks() bool {
	switch x.req.Verb {
	case "watch":
		return true
	case "get", "list":
		return strings.Contains(x.req.Query, "resourceVersion=") || strings.Contains(x.req.Query, "continue=")
	}
	return false
}

// weight is of the hash by which a caller's requests for a resource prefer a server.
func (x *exchange) weight(server *upstream.State, caller uint64) uint64 {
	var h maphash.Hash
	h.SetSeed(affinitySeed)
	maphash.WriteComparable(&h, struct {
		caller uint64
		want   resource
		server string
	}{caller, x.wanted(), server.Name})
	return h.Sum64()
}
