package oracle_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
)

// row is what the table says of a pair.
type row struct {
	pair    string
	oracle  string  // the releases, or why there is none
	tallies []tally // of up, down and back
}

// report is the table of pairs.
type report struct {
	mu   sync.Mutex
	rows []row
}

func (r *report) add(row row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = append(r.rows, row)
}

func (r *report) String() string {
	slices.SortFunc(r.rows, func(a, b row) int { return cmp.Compare(a.pair, b.pair) })
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "PAIR\tORACLE\tUP\tDOWN\tBACK")
	for _, row := range r.rows {
		if len(row.tallies) == 3 {
			fmt.Fprintf(w, "%s\t%s\t%v\t%v\t%v\n", row.pair, row.oracle, row.tallies[0], row.tallies[1], row.tallies[2])
		}
	}
	_ = w.Flush() // into memory
	for _, row := range r.rows {
		if len(row.tallies) == 0 {
			fmt.Fprintf(&b, "%s has no oracle: %s\n", row.pair, row.oracle)
		}
	}
	return b.String()
}

func (t tally) String() string {
	s := strconv.Itoa(t.agreed)
	for _, also := range []struct {
		n    int
		what string
	}{{t.different, "different"}, {t.same, "as there"}, {t.refused, "refused"}} {
		if also.n > 0 {
			s += fmt.Sprintf(" + %d %s", also.n, also.what)
		}
	}
	return s
}
