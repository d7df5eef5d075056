package oracle_test

import (
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mixed-version-proxy/mvp/bench/oracle"
)

// A rightDifference is a difference from what kube-apiserver's code makes of an object
// that is right all the same. One that no object needs is an error.
type rightDifference struct {
	pair     string // a pattern of path.Match over the pair's name
	property string // "up", "down" or "back"

	// path is the place, as Difference.Pattern writes it; what lies below it counts
	// too. Of an error it is the error's beginning.
	path string

	got string // what the policies make of the place, as Difference has it; "" is anything

	reason string

	// chance says that whether objects need it is not settled by the seed, or that so
	// few do that other seeds have none.
	chance bool

	state *differenceState
}

// differenceState says whether objects were tried that could need a difference, and how
// many did.
type differenceState struct {
	ran  atomic.Bool
	used atomic.Int64
}

func init() {
	for i := range rightDifferences {
		rightDifferences[i].state = new(differenceState)
	}
}

// differences are those that are right for a pair and property.
type differences []rightDifference

func differencesOf(p *pair, property string) (known differences) {
	for _, d := range rightDifferences {
		if ok, _ := path.Match(d.pair, p.name); ok && d.property == property {
			known = append(known, d)
		}
	}
	return known
}

// take takes out of f what is right, and reports whether there was any.
func (known differences) take(f *fault) (any bool) {
	for _, k := range known {
		before := len(f.differences)
		f.differences = slices.DeleteFunc(f.differences, func(d oracle.Difference) bool {
			return below(d.Pattern(), k.path) && (k.got == "" || d.Got == k.got)
		})
		taken := before != len(f.differences)
		if f.err != nil && strings.HasPrefix(f.err.Error(), k.path) {
			f.err, taken = nil, true
		}
		if taken {
			k.state.used.Add(1)
			any = true
		}
	}
	return any
}

// below reports whether the place at is the one called path, or in it.
func below(at, path string) bool {
	rest, ok := strings.CutPrefix(at, path)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// enough is how many objects show every difference.
const enough = 10_000

// ran notes that enough objects were tried.
func (known differences) ran() {
	for _, k := range known {
		k.state.ran.Store(true)
	}
}

// checkNeeded fails for what no object needed, of all that were tried.
func checkNeeded(t *testing.T) {
	for _, k := range rightDifferences {
		if k.state.ran.Load() && k.state.used.Load() == 0 && !k.chance {
			t.Errorf("no object differs at %s (%s, %s): take it out of the list", k.path, k.pair, k.property)
		}
	}
}
