package proxy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// guarded reports whether the newest servers go first, because an older one would
// drop the fields of the object that it does not know: for every write, a delete
// included, since finalizers make it an update and the server stores the object anew
// as far as it understands it; and for the reading of one object, since its reader may
// write it back. Lists and watches are spread as ever.
//
// What the servers describe differently is known for each group version, by the
// hashes of their OpenAPI documents; nothing tells the kinds in it apart.
func (x *exchange) guarded() bool {
	if !x.req.IsResource || !x.st.skewed || !x.st.differ(x.wanted()) {
		return false
	}
	switch x.req.Subresource {
	case "exec", "attach", "portforward", "proxy", "log", "token": // no object is stored
		return false
	}
	return !readOnly(x.in.Method) || x.req.Verb == "get" && !x.sticks()
}

// differ reports whether the servers describe the resource's group version
// differently, or one that takes requests has not said yet how it does.
func (st *state) differ(r resource) bool {
	if st.openapi.differs[groupVersion(r)] {
		return true
	}
	return slices.ContainsFunc(st.healthy[r], func(s *upstream.State) bool { return s.OpenAPIV3 == nil })
}

// minorRank orders minor versions; the patches of one have the same fields.
func minorRank(v engine.Version) int { return v.Major*1000 + v.Minor }

// noteSkew notes what the client is warned of when what it writes goes to a server that
// does not know all of its fields, and why it does: the policies want it so, or the
// newer server is away. Waiting for that one would be the greater harm.
func (x *exchange) noteSkew(candidates []*upstream.State) {
	x.skew = ""
	switch x.req.Verb {
	case "create", "update", "patch":
	default:
		return
	}
	if x.req.Subresource != "" && x.req.Subresource != "status" {
		return
	}
	mine := effectiveVersion(x.server)
	newer := func(s *upstream.State) bool { return minorRank(effectiveVersion(s)) > minorRank(mine) }
	i := slices.IndexFunc(x.st.known[x.wanted()], newer)
	if i < 0 || !x.st.openapi.differs[groupVersion(x.wanted())] {
		return
	}
	other := x.st.known[x.wanted()][i]
	why := other.Name + " cannot be reached"
	if slices.ContainsFunc(candidates, newer) {
		why = "the policies " + strings.Join(x.decision.Policies, ", ") + " prefer it"
	}
	x.skew = fmt.Sprintf("%s was sent to %s (v%s) because %s: fields that only v%s knows are dropped",
		x.req.String(), x.server.Name, minorOf(mine), why, minorOf(effectiveVersion(other)))
}

func minorOf(v engine.Version) string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }
