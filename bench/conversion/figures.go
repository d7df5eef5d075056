package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// times are measurements of the same thing, in the order of the rounds.
type times []time.Duration

// quantile is the value that the share q of the measurements does not exceed; 0 when
// there are none.
func (t times) quantile(q float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	sorted := slices.Clone(t)
	slices.Sort(sorted)
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func (t times) median() time.Duration { return t.quantile(0.5) }

// ratio is the median, over all rounds, of t as a multiple of base in the same round.
func (t times) ratio(base times) float64 {
	var ratios []float64
	for i := range min(len(t), len(base)) {
		ratios = append(ratios, float64(t[i])/float64(base[i]))
	}
	if len(ratios) == 0 {
		return 0
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

// minus are the differences of t and base in each round.
func (t times) minus(base times) times {
	var out times
	for i := range min(len(t), len(base)) {
		out = append(out, t[i]-base[i])
	}
	return out
}

// table writes rows in columns, as Markdown.
func table(out io.Writer, title string, rows ...[]string) error {
	fmt.Fprintf(out, "\n%s\n\n", title)
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	for i, row := range rows {
		fmt.Fprintf(w, "| %s\t|\n", strings.Join(row, "\t| "))
		if i == 0 {
			fmt.Fprintf(w, "|%s\n", strings.Repeat("---\t|", len(row)))
		}
	}
	return w.Flush()
}

func millis(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// machine says on what, and how busy it is.
func machine() string {
	load := "unknown"
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ = strings.Cut(string(text), " ")
	}
	return fmt.Sprintf("%d cores, load average %s", runtime.NumCPU(), load)
}
