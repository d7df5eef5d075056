// Package coverage says what of policies no test case has reached: policies that never
// acted, rules that never changed anything, ways of conversions that were never taken,
// and conditions that were only ever true or only ever false.
//
// It runs nothing itself. Policies that are shipped do not count, and what goes on in a
// jq program is not looked into.
package coverage

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/engine/source"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
)

// What can be reached.
const (
	Policy    = "policy"    // a policy that acts
	Rule      = "rule"      // a rule that changes a body
	Direction = "direction" // of a conversion
	Branch    = "branch"    // of an expression
)

// Item is one thing that a case can reach.
type Item struct {
	Pos    source.Pos
	Kind   string // one of the constants
	Policy string

	// Missing says what is wrong if it is not reached: "never true".
	Missing string

	// Line is the line of the policy at Pos; "" where it is not known.
	Line string

	Reached bool
}

// Texts are the policy files of a case that stand in its archive. The zero Texts are
// those of a case whose policies are files.
type Texts struct {
	Archive string            // the file
	Files   map[string]string // by their name
}

// place is the position as it is shown.
func (t Texts) place(pos source.Pos) source.Pos {
	if _, here := t.Files[pos.File]; here {
		pos.File = t.Archive + ":" + pos.File
	}
	return pos
}

// line is the text of the line at pos.
func (t Texts) line(pos source.Pos) string {
	text, here := t.Files[pos.File]
	if !here {
		data, err := os.ReadFile(pos.File)
		if err != nil {
			return "" // an object, or a file that is gone since
		}
		text = string(data)
	}
	lines := strings.Split(text, "\n")
	if pos.Line < 1 || pos.Line > len(lines) {
		return ""
	}
	return strings.TrimSpace(lines[pos.Line-1])
}

// Coverage collects what cases reach. It is for one goroutine.
type Coverage struct {
	items map[key]*Item
	order []key
}

// key tells items apart.
type key struct {
	pos    source.Pos
	policy string
	kind   string
	detail string
}

// add notes that there is something to reach, once.
func (c *Coverage) add(t Texts, pos source.Pos, policy, kind, detail, missing string) {
	k := key{t.place(pos), policy, kind, detail}
	if c.items[k] != nil {
		return
	}
	if c.items == nil {
		c.items = map[key]*Item{}
	}
	c.items[k] = &Item{Pos: k.pos, Kind: kind, Policy: policy, Missing: missing, Line: t.line(pos)}
	c.order = append(c.order, k)
}

// reach notes that something is reached, if it counts.
func (c *Coverage) reach(t Texts, pos source.Pos, policy, kind, detail string) {
	if item := c.items[key{t.place(pos), policy, kind, detail}]; item != nil {
		item.Reached = true
	}
}

// Items returns what there is to reach, by place.
func (c *Coverage) Items() []Item {
	items := make([]Item, len(c.order))
	for i, k := range c.order {
		items[i] = *c.items[k]
	}
	slices.SortStableFunc(items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
	return items
}

// Percent is how much of what there is to reach is reached: 100 of nothing.
func (c *Coverage) Percent() float64 {
	if len(c.order) == 0 {
		return 100
	}
	reached := 0
	for _, item := range c.items {
		if item.Reached {
			reached++
		}
	}
	return 100 * float64(reached) / float64(len(c.order))
}

// Watch adds what the policies of set are made of, and has run note what it reaches. The
// function that it returns takes the results of that run.
func (c *Coverage) Watch(set *engine.Set, t Texts, run *dryrun.Options) func(results []*dryrun.Result) {
	w := &watcher{c: c, texts: t, set: set, infos: set.Policies()}
	w.addAll()
	run.Evaluate = true
	run.Acted = w.acted
	return func(results []*dryrun.Result) {
		for _, r := range results {
			w.result(r)
		}
	}
}

// watcher notes what the policies of one set reach.
type watcher struct {
	c     *Coverage
	texts Texts
	set   *engine.Set
	infos []engine.Info
	rules map[source.Pos]string // the policy of each
}

func (w *watcher) counts(index int) bool { return w.infos[index].Origin != engine.OriginLibrary }

func (w *watcher) addAll() {
	for i := range w.infos {
		if info := &w.infos[i]; w.counts(i) {
			w.c.add(w.texts, info.Pos, info.Name, Policy, "", "the policy "+info.Name+" never acts")
		}
	}
	w.rules = map[source.Pos]string{}
	for _, c := range w.set.Conversions() {
		if len(c.Via) > 0 || !w.counts(c.Index) {
			continue
		}
		pos := w.infos[c.Index].Pos
		w.c.add(w.texts, pos, c.Policy, Direction, toServer, fmt.Sprintf("nothing is converted from %s to %s", c.From.APIVersion(), c.To.APIVersion()))
		w.c.add(w.texts, pos, c.Policy, Direction, toClient, fmt.Sprintf("nothing is converted back from %s to %s: give a case a response", c.To.APIVersion(), c.From.APIVersion()))
		for _, rule := range c.Rules() {
			w.rules[rule.Pos] = c.Policy
			w.c.add(w.texts, rule.Pos, c.Policy, Rule, "", fmt.Sprintf("the rule %s %s never changes anything", rule.Action, rule.Path))
		}
	}
	for _, e := range w.set.Expressions() {
		w.addBranches(&e)
	}
}

// The directions of a conversion.
const (
	toServer = "to the server"
	toClient = "to the client"
)

// acted takes what conversions tell of rules.
func (w *watcher) acted(pos source.Pos, _ convert.Direction) {
	if policy, ok := w.rules[pos]; ok {
		w.c.reach(w.texts, pos, policy, Rule, "")
	}
}

func (w *watcher) result(r *dryrun.Result) {
	acts := func(name string) {
		for i := range w.infos {
			if info := &w.infos[i]; info.Name == name && w.counts(i) {
				w.c.reach(w.texts, info.Pos, name, Policy, "")
			}
		}
	}
	for _, name := range r.Policies {
		acts(name)
	}
	for _, audit := range r.Audited {
		acts(audit.Policy)
	}
	for _, link := range r.Links {
		if r.Outcome == dryrun.Converted {
			acts(link.Policy)
			w.ways(r, link)
		}
	}
	for i := range r.Evaluated {
		w.reachBranches(&r.Evaluated[i])
	}
}

// ways notes in which directions link has converted a body.
func (w *watcher) ways(r *dryrun.Result, link *engine.Conversion) {
	pos := w.infos[link.Index].Pos
	if r.Sent != nil {
		w.c.reach(w.texts, pos, link.Policy, Direction, toServer)
	}
	if r.Answer != nil {
		w.c.reach(w.texts, pos, link.Policy, Direction, toClient)
	}
}
