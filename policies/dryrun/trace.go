package dryrun

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// Change is what one policy changed in one body.
type Change struct {
	Policy string `json:"policy"`

	// From and To are the versions that the body had before and after.
	From string `json:"from"`
	To   string `json:"to"`

	// Paths are the changes, in the order of the paths before.
	Paths []PathChange `json:"paths"`
}

// PathChange is one value that changed, or went to another place.
type PathChange struct {
	// From and To are its paths before and after; "" where there is none.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`

	// Old and New are the value in JSON, "" where there is none. What a Secret holds
	// is not shown.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
}

func (c PathChange) String() string {
	switch {
	case c.From == "":
		return c.To + " added: " + c.New
	case c.To == "":
		return c.From + " removed: " + c.Old
	case c.From == c.To:
		return c.From + " " + c.Old + " → " + c.New
	}
	return c.From + " " + c.Old + " → " + c.To + " " + c.New
}

// trace notes what each policy of the conversion changes on the way from before to
// after.
func (r *run) trace(before, after []byte, dir convert.Direction, convertBy func(*engine.Conversion, []byte) ([]byte, error)) {
	r.Changes = append(r.Changes, r.traced(before, after, dir, convertBy)...)
}

// traced are the changes from before to after, one conversion after the other. convertBy
// is what makes one of them.
func (r *run) traced(before, after []byte, dir convert.Direction, convertBy func(*engine.Conversion, []byte) ([]byte, error)) []Change {
	links := slices.Clone(r.Links)
	if dir == convert.ToClient {
		slices.Reverse(links)
	}
	bodies := [][]byte{before}
	for _, c := range links {
		body, err := convertBy(c, bodies[len(bodies)-1])
		if err != nil {
			break
		}
		bodies = append(bodies, body)
	}
	if len(bodies) != len(links)+1 || !bytes.Equal(bodies[len(links)], after) {
		// Made in one step, which cannot be taken apart.
		links, bodies = []*engine.Conversion{r.Conversion}, [][]byte{before, after}
	}
	secret := r.Request.IsResource && r.Request.Resource == "secrets"
	var changes []Change
	for i, c := range links {
		change := Change{Policy: c.Policy, From: c.From.APIVersion(), To: c.To.APIVersion()}
		moved := c.FieldPath
		if dir == convert.ToClient {
			change.From, change.To, moved = change.To, change.From, c.ClientFieldPath
		}
		change.Paths = compare(leavesOf(bodies[i], secret), leavesOf(bodies[i+1], secret), moved)
		changes = append(changes, change)
	}
	return changes
}

// links are the conversions that the one of the request is a chain of.
func (r *run) links() []*engine.Conversion {
	if len(r.Conversion.Via) == 0 {
		return []*engine.Conversion{r.Conversion}
	}
	var links []*engine.Conversion
	from := r.Conversion.From
	for _, to := range append(slices.Clone(r.Conversion.Via), r.Conversion.To) {
		i := slices.IndexFunc(r.set.Conversions(), func(c *engine.Conversion) bool {
			return len(c.Via) == 0 && c.From == from && c.To == to && (len(links) > 0 || c.Policy == r.Conversion.Policy)
		})
		if i < 0 {
			return []*engine.Conversion{r.Conversion}
		}
		links = append(links, r.set.Conversions()[i])
		from = to
	}
	return links
}

// Diff says in what the JSON document after differs from before, in the order of the
// paths before.
func Diff(before, after []byte) []PathChange {
	return compare(leavesOf(before, false), leavesOf(after, false), func(path string) string { return path })
}

// leaf is a value with no values in it.
type leaf struct {
	path, value string
	secret      bool
}

func (l leaf) shown() string {
	if l.secret {
		return "(not shown)"
	}
	return l.value
}

// compare tells what became of the leaves before. moved says where a rule takes a
// path.
func compare(before, after []leaf, moved func(string) string) []PathChange {
	at := map[string]leaf{}
	for _, l := range after {
		at[l.path] = l
	}
	was := map[string]bool{}
	for _, l := range before {
		was[l.path] = true
	}
	taken := map[string]bool{}
	var changes []PathChange
	gone := map[int]leaf{} // by the index in changes
	for _, l := range before {
		to := l.path
		if mapped := movedBy(moved, l.path); mapped != l.path && has(at, mapped) && !has(at, l.path) {
			to = mapped
		}
		switch now, found := at[to]; {
		case !found:
			gone[len(changes)] = l
			changes = append(changes, PathChange{From: shownPath(l.path), Old: l.shown()})
		case to != l.path || now.value != l.value:
			changes = append(changes, PathChange{shownPath(l.path), shownPath(to), l.shown(), now.shown()})
			taken[to] = true
		}
	}
	var added []leaf
	for _, l := range after {
		if !was[l.path] && !taken[l.path] {
			added = append(added, l)
		}
	}
	added = pair(changes, gone, added)
	for _, l := range added {
		changes = append(changes, PathChange{To: shownPath(l.path), New: l.shown()})
	}
	return changes
}

func has(at map[string]leaf, path string) bool { _, found := at[path]; return found }

// pair takes a value that is gone and the one that came with the same text, where
// there is one of each only, for the same: what a jq program moves no rule tells. It
// returns what is left of added.
func pair(changes []PathChange, gone map[int]leaf, added []leaf) []leaf {
	text := func(l leaf) string { return strings.Trim(l.value, `"`) }
	count := map[string]int{}
	for _, l := range gone {
		count[text(l)]++
	}
	came := map[string]int{}
	for _, l := range added {
		came[text(l)]++
	}
	for i, l := range gone {
		if count[text(l)] != 1 || came[text(l)] != 1 {
			continue
		}
		j := slices.IndexFunc(added, func(a leaf) bool { return text(a) == text(l) })
		changes[i].To, changes[i].New = shownPath(added[j].path), added[j].shown()
		added = slices.Delete(added, j, j+1)
	}
	return added
}

// inDocument is what stands before the path in an object, in a list or a watch.
var inDocument = regexp.MustCompile(`^(\[\d+\]\.)?((items|rows)\[\d+\]\.)?(object\.)?`)

// movedBy maps the path in each object of a body.
func movedBy(moved func(string) string, path string) string {
	prefix := inDocument.FindString(path)
	return prefix + moved(path[len(prefix):])
}

// leavesOf lists the leaves of a body, or of several that follow each other, in the
// order of their paths. secret says that it is a Secret's although it does not say
// so itself.
func leavesOf(body []byte, secret bool) []leaf {
	var documents []any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	for {
		var document any
		if decoder.Decode(&document) != nil {
			break // the end, or what conversions have refused before
		}
		documents = append(documents, document)
	}
	var l leaves
	if len(documents) == 1 {
		l.add("", documents[0], secrecy{in: secret})
	} else {
		l.add("", documents, secrecy{in: secret})
	}
	return l
}

type leaves []leaf

// add adds the leaves of value. Its recursion is as deep as the decoder's was.
func (l *leaves) add(path string, value any, s secrecy) {
	switch value := value.(type) {
	case map[string]any:
		s = s.of(value)
		for _, key := range sortedKeys(value) {
			l.add(member(path, key), value[key], s.under(key))
		}
		if len(value) > 0 {
			return
		}
	case []any:
		for i, item := range value {
			l.add(path+"["+itoa(i)+"]", item, s)
		}
		if len(value) > 0 {
			return
		}
	}
	*l = append(*l, leaf{path, text(value), s.hidden})
}
