package oracle_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/mixed-version-proxy/mvp/bench/oracle"
)

// experiment is a trial of one pair.
type experiment struct {
	p        *pair
	r        *route
	trial    trial
	findings []*finding // for each property
}

// finding is what becomes of one property.
type finding struct {
	property string
	known    differences
	tally    tally
	groups   map[string]*group // of faults, by their keys
}

// tally counts objects.
type tally struct {
	agreed    int
	different int // in what the list of differences says is right
	same      int // not as it should be, but as kube-apiserver leaves it, too
	refused   int // by kube-apiserver, too
}

// group are the objects that show one fault.
type group struct {
	key    string
	count  int
	seed   int64
	object []byte // the first of them
}

func newExperiment(p *pair, r *route, trial trial) *experiment {
	x := &experiment{p: p, r: r, trial: trial}
	for _, property := range trial.properties {
		x.findings = append(x.findings, &finding{property: property, known: differencesOf(p, property), groups: map[string]*group{}})
	}
	return x
}

// run tries n objects.
func (x *experiment) run(seed int64, n int) error {
	made, theirs, err := x.trial.generate(x.r, seed, n)
	if err != nil {
		return fmt.Errorf("seed %d: %w", seed, err)
	}
	return x.check(seed, made, theirs)
}

// corners tries the objects that are written by hand.
func (x *experiment) corners() error {
	file, err := os.ReadFile(x.p.corners(x.trial.side))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	objects := bytes.Split(bytes.TrimSpace(file), []byte("\n"))
	if objects, err = x.trial.again(x.r, objects); err != nil {
		return fmt.Errorf("%s: %w", x.p.corners(x.trial.side), err)
	}
	theirs, err := x.trial.given(x.r, objects)
	if err != nil {
		return err
	}
	return x.check(0, objects, theirs)
}

// check finds out what is at fault with objects.
func (x *experiment) check(seed int64, made [][]byte, theirs []oracle.Answer) error {
	faults, err := x.trial.check(x.p, x.r, made, theirs)
	if err != nil {
		return fmt.Errorf("seed %d: %w", seed, err)
	}
	for k, finding := range x.findings {
		for i := range faults[k] {
			finding.note(&faults[k][i], seed, made[i])
		}
	}
	return nil
}

// note counts one object.
func (f *finding) note(fault *fault, seed int64, object []byte) {
	right := f.known.take(fault)
	key := fault.key()
	switch {
	case key != "" && f.groups[key] == nil:
		f.groups[key] = &group{key: key, count: 1, seed: seed, object: object}
	case key != "":
		f.groups[key].count++
	case fault.refused:
		f.tally.refused++
	case fault.same:
		f.tally.same++
	case right:
		f.tally.different++
	default:
		f.tally.agreed++
	}
}

// maxGroups is of how many faults of a property an object is shown.
const maxGroups = 6

// report fails the test for what is not as it should be.
func (f *finding) report(t *testing.T, x *experiment) {
	groups := slices.SortedFunc(maps.Values(f.groups), func(a, b *group) int { return cmp.Compare(b.count, a.count) })
	for i, g := range groups {
		if i == maxGroups {
			t.Errorf("%s: %d more faults", f.property, len(groups)-i)
			break
		}
		t.Errorf("%s: %d objects, at %s\n%s", f.property, g.count, g.key, x.explain(f, g))
	}
	if *objects >= enough {
		f.known.ran()
	}
}

// explain makes the object of a group small and says what differs.
func (x *experiment) explain(f *finding, g *group) string {
	if x.fault(f, g.object) != g.key {
		return fmt.Sprintf("    seed %d: %s", g.seed, g.object) // its defaults change once more
	}
	small := oracle.Shrink(g.object, func(object []byte) bool { return x.fault(f, object) == g.key })
	fault, err := x.faultOf(f, small)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("    seed %d, made small: %s\n      %s", g.seed, small, fault)
}

// fault is the key of what is at fault with an object; "" for nothing.
func (x *experiment) fault(f *finding, object []byte) string {
	fault, err := x.faultOf(f, object)
	if err != nil {
		return ""
	}
	return fault.key()
}

func (x *experiment) faultOf(f *finding, object []byte) (*fault, error) {
	made, err := x.trial.again(x.r, [][]byte{object})
	if err != nil {
		return nil, err
	}
	theirs, err := x.trial.given(x.r, made)
	if err != nil {
		return nil, err
	}
	faults, err := x.trial.check(x.p, x.r, made, theirs)
	if err != nil {
		return nil, err
	}
	fault := &faults[slices.Index(x.trial.properties, f.property)][0]
	f.known.take(fault)
	return fault, nil
}

var varying = regexp.MustCompile(`[0-9]+|"(\\.|[^"\\])*"`)

// clean takes out of an error what differs between objects.
func clean(message string) string { return varying.ReplaceAllString(message, "…") }
