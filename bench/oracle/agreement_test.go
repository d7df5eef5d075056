package oracle_test

import (
	"flag"
	"testing"

	"github.com/mixed-version-proxy/mvp/bench/lab/labtest"
)

var (
	objects = flag.Int("objects", 10_000, "how many random objects of each pair and direction")
	seed    = flag.Int64("seed", 1, "what the random objects depend on")
)

// batch is how many objects are converted at once.
const batch = 200

// TestLibrary holds every conversion of the library to what kube-apiserver's own code
// makes of the same objects.
func TestLibrary(t *testing.T) {
	labtest.SkipUnlessLab(t) // it builds parts of Kubernetes, which takes minutes; the gate runs it
	o := startOracles(t)
	report := &report{}
	t.Cleanup(func() {
		t.Logf("\n%s", report)
		checkNeeded(t)
	})
	for _, p := range libraryPairs(t) {
		t.Run(p.name, func(t *testing.T) {
			r, err := o.route(&p)
			if reason, ok := noOracle[p.name]; ok {
				if err == nil {
					t.Errorf("there is an oracle, though the list says that there is none: %s", reason)
				}
				report.add(row{pair: p.name, oracle: reason})
				return
			}
			if err != nil {
				t.Fatalf("%v; if none can be had, say why in noOracle", err)
			}
			t.Parallel()
			testPair(t, &p, r, report)
		})
	}
}

func testPair(t *testing.T, p *pair, r *route, report *report) {
	result := row{pair: p.name, oracle: r.String()}
	for _, trial := range trials {
		x := newExperiment(p, r, trial)
		for first := 0; first < *objects; first += batch {
			if err := x.run(*seed*1_000_000+int64(first), min(batch, *objects-first)); err != nil {
				t.Fatal(err)
			}
		}
		if err := x.corners(); err != nil {
			t.Fatal(err)
		}
		for _, f := range x.findings {
			f.report(t, x)
			result.tallies = append(result.tallies, f.tally)
		}
	}
	report.add(result)
}
