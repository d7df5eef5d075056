package roundtrip

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
)

// toldPath is a place where a rule says that it changes something for good.
type toldPath struct {
	client, server string // with [*] for the items of lists

	// empty says that it is objects with nothing in them alone that come and go.
	empty bool
}

// toldPaths are those of rules that have no reverse, and of what is around a value that
// a rule moves.
func toldPaths(c *engine.Conversion) []toldPath {
	var told []toldPath
	for _, rule := range c.Rules() {
		oneWay := rule.Action == convert.Modify && rule.Match == nil && rule.Replace != nil
		moves := rule.Action == convert.Rename || rule.Action == convert.Move
		if rule.Action == convert.Remove || rule.Action == convert.EnsureFieldExistence || oneWay || moves {
			told = append(told, toldPath{rule.Path, rule.TargetPath, moves})
		}
	}
	return told
}

// findDefaults notes what the conversion writes into objects that have nothing in them:
// a program cannot say of itself that it fills in a default, as ensureFieldExistence
// does, but this can be nothing else.
func (t *Trip) findDefaults() {
	t.defaults = map[Side]map[string]string{}
	for _, side := range []Side{Client, Server} {
		t.defaults[side] = map[string]string{}
		v := t.Version(side)
		for _, more := range []string{"", `,"spec":{}`} {
			f, _, err := t.Check(side, fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q%s}`, v.APIVersion(), v.Kind, more))
			if err != nil || f == nil {
				continue
			}
			for _, change := range f.Changes {
				if change.From == "" {
					t.defaults[side][change.To] = change.New
				}
			}
		}
	}
}

// tells reports whether the policy says itself that it makes the change.
func (t *Trip) tells(side Side, change dryrun.PathChange) bool {
	path := change.From
	if path == "" {
		path = change.To
	}
	if value, ok := t.defaults[side][path]; ok && change.From == "" && value == change.New {
		return true
	}
	emptied := (change.Old == "" || change.Old == "{}") && (change.New == "" || change.New == "{}")
	for place := range t.defaults[side] {
		if emptied && leadsTo(path, place) {
			return true // the object that the default is written into
		}
	}
	path = withoutIndexes(path)
	return slices.ContainsFunc(t.told, func(told toldPath) bool {
		place := told.client
		if side == Server {
			place = told.server
		}
		return !told.empty && leadsTo(place, path) || emptied && leadsTo(path, place)
	})
}

// leadsTo reports whether path is place, or in it.
func leadsTo(place, path string) bool {
	rest, ok := strings.CutPrefix(path, place)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// withoutIndexes is a path with [*] for every index.
func withoutIndexes(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		end := i + 1
		for path[i] == '[' && end < len(path) && '0' <= path[end] && path[end] <= '9' {
			end++
		}
		if end > i+1 && end < len(path) && path[end] == ']' {
			b.WriteString("[*]")
			i = end
			continue
		}
		b.WriteByte(path[i])
	}
	return b.String()
}
