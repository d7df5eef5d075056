package proxy

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// tallies count what the servers and the policies do and what clients ask for. They
// outlive each state: what a new state names again goes on counting, what it does
// not name any more is forgotten, so that they never grow without end.
type tallies struct {
	metrics *metrics

	mu       sync.Mutex // held by update
	servers  map[string]*serverTally
	policies map[policyKey]*policyTally
	demands  map[demandKey]*demand
}

// tally is where the requests of one state count. Its maps and slices never change.
// The nil tally counts nothing.
type tally struct {
	servers  map[string]*serverTally
	policies []*policyTally // in the order of the set
	named    map[string]*policyTally
	uneven   map[resource][]asked
}

// A policy of the user's may have the name of a shipped one.
type policyKey struct {
	name    string
	library bool
}

type demandKey struct {
	capability
	verbs string // "" for all
}

// asked is what requests for a resource count to.
type asked struct {
	*part // nil: to the resource that only conversion serves
	*demand
}

// update gives the tally of a state that is not in use yet.
func (t *tallies) update(st *state) *tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := &tally{servers: map[string]*serverTally{}, named: map[string]*policyTally{}, uneven: map[resource][]asked{}}
	for _, server := range st.view.Servers {
		next.servers[server.Name] = keep(t.servers, server.Name, func() *serverTally { return t.metrics.newServer(server.Name) })
	}
	for name := range t.servers {
		if next.servers[name] == nil {
			t.metrics.forgetServer(name)
		}
	}
	policies := map[policyKey]*policyTally{}
	for _, info := range st.set.Policies() {
		key := keyOf(info.Name, info.Origin)
		p := keep(t.policies, key, func() *policyTally { return &policyTally{} })
		p.denies, p.audits = slices.Contains(info.Roles, "deny"), info.Audit
		policies[key] = p
		next.policies = append(next.policies, p)
		if next.named[info.Name] == nil {
			next.named[info.Name] = p
		}
	}
	t.servers, t.policies = next.servers, policies
	t.updateDemands(st, next)
	return next
}

func (t *tallies) updateDemands(st *state, next *tally) {
	demands := map[demandKey]*demand{}
	add := func(key demandKey, p *part) {
		d := keep(t.demands, key, func() *demand { return &demand{} })
		demands[key] = d
		next.uneven[key.resource] = append(next.uneven[key.resource], asked{p, d})
	}
	for _, p := range st.spread.list() {
		add(p.key(), p)
	}
	for _, c := range st.conversions() {
		key := demandKey{capability: capability{resource: resourceOf(c.From)}}
		if demands[key] == nil {
			add(key, nil)
		}
	}
	t.demands = demands
}

// key is of the demand for p. What becomes all or nothing of a resource goes on
// counting where only conversion serves it.
func (p *part) key() demandKey {
	if p.whole {
		return demandKey{capability: p.capability}
	}
	return demandKey{p.capability, p.String()}
}

// keep is the old value of the key, or a fresh one.
func keep[K comparable, V any](old map[K]*V, key K, fresh func() *V) *V {
	if v, ok := old[key]; ok {
		return v
	}
	return fresh()
}

func keyOf(name, origin string) policyKey { return policyKey{name, origin == engine.OriginLibrary} }

func resourceOf(v convert.Version) resource { return resource{v.Group, v.Version, v.Resource} }

// of is the tally of the server of that name, nil for none.
func (t *tally) of(server string) *serverTally {
	if t == nil {
		return nil
	}
	return t.servers[server]
}

// asks is what requests count to, by resource.
func (t *tally) asks() map[resource][]asked {
	if t == nil {
		return nil
	}
	return t.uneven
}

// ask counts the request where only some servers, or only conversion, can answer it.
func (t *tally) ask(x *exchange) {
	if t == nil || !x.req.IsResource {
		return
	}
	var found *demand
	for _, a := range t.uneven[resource{x.req.Group, x.req.Version, x.req.Resource}] {
		switch {
		case a.part == nil, a.whole && a.sub == "":
			if found == nil { // a subresource that has an entry of its own counts there
				found = a.demand
			}
		case a.sub == x.req.Subresource && slices.Contains(a.verbs, x.req.Verb):
			found = a.demand
		}
	}
	if found != nil {
		found.add(x.start)
	}
}

// ended counts what the policies and the server did with a request whose answer has
// ended.
func (t *tally) ended(x *exchange) {
	if t == nil {
		return
	}
	if x.decision != nil && x.judged != nil {
		x.judged.decided(x, x.decision)
	}
	if x.err == nil {
		return
	}
	if p := t.named[failedPolicy(x.err)]; p != nil {
		p.errors.Add(1)
	}
	t.failed(x, x.err)
}

func (t *tally) decided(x *exchange, d *engine.Decision) {
	last, converted := -1, false
	for i, index := range d.Indexes {
		last = index
		t.policies[index].matches.Add(1)
		if x.conv != nil && !converted && x.conv.Policy == d.Policies[i] {
			converted = true
			t.policies[index].conversions.Add(1)
		}
	}
	if d.Denied != nil && last >= 0 { // no policy is asked after the one that denies
		t.policies[last].denials.Add(1)
	}
	for _, ignored := range x.ignored() {
		t.policies[ignored.Index].ignore(ignored.Reason)
	}
	for _, n := range x.audit.notes {
		t.policies[n.index].note(n.effect, n.paths)
	}
	seen := -1
	for _, a := range d.Audited {
		t.policies[a.Index].note(a.Effect, nil)
		if a.Index != seen {
			seen = a.Index
			t.policies[seen].audited.Add(1)
		}
	}
}

// failedPolicy names the policy that err comes from, "" for none.
func failedPolicy(err error) string {
	var eval *engine.EvalError
	if errors.As(err, &eval) {
		return eval.Policy
	}
	var conversion *convert.Error
	if errors.As(err, &conversion) {
		return conversion.Policy
	}
	return ""
}

// policyTally counts what a policy did.
type policyTally struct {
	denies, audits bool // it can; guarded by tallies.mu

	matches, denials, conversions, errors, audited atomic.Uint64

	ignored [len(engine.Reasons)]atomic.Uint64
	effects [len(auditEffects)]atomic.Uint64

	mu          sync.Mutex
	wouldChange []string
}

func (t *policyTally) ignore(reason engine.Reason) {
	if i := slices.Index(engine.Reasons[:], reason); i >= 0 {
		t.ignored[i].Add(1)
	}
}

// note counts what the policy, in audit mode, would have done to a request, and
// keeps the first paths that it would have changed.
func (t *policyTally) note(effect string, paths []string) {
	if i := slices.Index(auditEffects[:], effect); i >= 0 {
		t.effects[i].Add(1)
	}
	if len(paths) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, path := range paths {
		if len(t.wouldChange) < auditPaths && !slices.Contains(t.wouldChange, path) {
			t.wouldChange = append(t.wouldChange, path)
		}
	}
}

// PolicyCounts is what a policy has done since it became live, in requests.
type PolicyCounts struct {
	Matches     uint64 `json:"matches"` // in which it did something
	Denials     uint64 `json:"denials"`
	Conversions uint64 `json:"conversions"`
	// Errors is how many failed in it: an expression that could not be evaluated, or
	// an object that could not be converted.
	Errors uint64 `json:"errors"`
	// Audited is in how many it would have done something, but for its mode.
	Audited uint64 `json:"audited"`
	// Ignored is how many went on without it, since it failed, by why.
	Ignored map[engine.Reason]uint64 `json:"ignored,omitempty"`
	// Effects are what it would have done in audit mode, by the effect.
	Effects map[string]uint64 `json:"auditEffects,omitempty"`
	// WouldChange are the first paths that it would have changed in audit mode:
	// "request spec.a", "answer spec.b".
	WouldChange []string `json:"wouldChange,omitempty"`
}

func (t *policyTally) counts() PolicyCounts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return PolicyCounts{
		Matches: t.matches.Load(), Denials: t.denials.Load(), Conversions: t.conversions.Load(),
		Errors: t.errors.Load(), Audited: t.audited.Load(),
		Ignored: sums(t.ignored[:], engine.Reasons[:]), Effects: sums(t.effects[:], auditEffects[:]),
		WouldChange: slices.Clone(t.wouldChange),
	}
}

// sums are the counts that are not 0, by their names; nil if all are.
func sums[K comparable](counts []atomic.Uint64, names []K) (out map[K]uint64) {
	for i := range counts {
		if n := counts[i].Load(); n > 0 {
			if out == nil {
				out = map[K]uint64{}
			}
			out[names[i]] = n
		}
	}
	return out
}

// policySeries is what a scrape sees of the policies of one name.
type policySeries struct {
	denies, audits bool
	PolicyCounts
}

// byName is what the live policies have done, by the names that labels may have.
func (t *tallies) byName() map[string]policySeries {
	t.mu.Lock()
	defer t.mu.Unlock()
	sums := make(map[string]policySeries, len(t.policies))
	for key, p := range t.policies {
		name := strings.ToValidUTF8(key.name, "\uFFFD") // a file's, which may be any bytes
		sum := sums[name]
		sums[name] = policySeries{sum.denies || p.denies, sum.audits || p.audits, sum.plus(p.counts())}
	}
	return sums
}

func (c PolicyCounts) plus(o PolicyCounts) PolicyCounts {
	return PolicyCounts{
		Matches: c.Matches + o.Matches, Denials: c.Denials + o.Denials, Conversions: c.Conversions + o.Conversions,
		Errors: c.Errors + o.Errors, Audited: c.Audited + o.Audited,
		Ignored: sum(c.Ignored, o.Ignored), Effects: sum(c.Effects, o.Effects),
		WouldChange: slices.Concat(c.WouldChange, o.WouldChange),
	}
}

// sum adds two counts by name.
func sum[K comparable](a, b map[K]uint64) map[K]uint64 {
	if len(a) == 0 {
		return b
	}
	out := maps.Clone(a)
	for key, n := range b {
		out[key] += n
	}
	return out
}

// PolicyCounts returns what the policy of that name and origin has done; nothing for
// one that is not live.
func (s *Server) PolicyCounts(name, origin string) PolicyCounts {
	s.tallies.mu.Lock()
	defer s.tallies.mu.Unlock()
	if p := s.tallies.policies[keyOf(name, origin)]; p != nil {
		return p.counts()
	}
	return PolicyCounts{}
}
