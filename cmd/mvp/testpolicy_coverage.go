package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/mixed-version-proxy/mvp/policies/dryrun/coverage"
)

// coverageError is why too little is covered; nil when it is enough.
func (opts *testPolicyOptions) coverageError(c *coverage.Coverage) error {
	if c == nil || c.Percent() >= opts.coverageMin {
		return nil
	}
	return fmt.Errorf("the cases reach %s of the policies, less than --coverage-min %g", percent(c), opts.coverageMin)
}

// percent is rounded down, so that 100% is all.
func percent(c *coverage.Coverage) string {
	return fmt.Sprintf("%.1f%%", float64(int(10*c.Percent()))/10)
}

// missing are the items that no case reaches.
func missing(c *coverage.Coverage) (items []coverage.Item, all int) {
	for _, item := range c.Items() {
		if all++; !item.Reached {
			items = append(items, item)
		}
	}
	return items, all
}

// summary is how much is covered, in a line.
func coverageSummary(c *coverage.Coverage) string {
	items, all := missing(c)
	return fmt.Sprintf("coverage: %s, %d of %d", percent(c), all-len(items), all)
}

// printCoverage prints what no case reaches.
func printCoverage(w io.Writer, c *coverage.Coverage) {
	fmt.Fprintln(w, coverageSummary(c))
	items, _ := missing(c)
	for _, item := range items {
		fmt.Fprintf(w, "  %v: %s\n", item.Pos, item.Missing)
		if item.Line != "" {
			fmt.Fprintf(w, "    %s\n", item.Line)
		}
	}
}

// coverageJSON is the last line of -o json.
type coverageJSON struct {
	Coverage struct {
		Percent float64       `json:"percent"`
		Reached int           `json:"reached"`
		All     int           `json:"all"`
		Missing []missingJSON `json:"missing"`
	} `json:"coverage"`
}

type missingJSON struct {
	Place   string `json:"place"`
	Kind    string `json:"kind"`
	Policy  string `json:"policy"`
	Missing string `json:"missing"`
	Line    string `json:"line,omitempty"`
}

func printCoverageJSON(w io.Writer, c *coverage.Coverage) error {
	var line coverageJSON
	items, all := missing(c)
	line.Coverage.Percent, line.Coverage.Reached, line.Coverage.All = c.Percent(), all-len(items), all
	line.Coverage.Missing = []missingJSON{}
	for _, item := range items {
		line.Coverage.Missing = append(line.Coverage.Missing, missingJSON{item.Pos.String(), item.Kind, item.Policy, item.Missing, item.Line})
	}
	return printLine(w, line)
}

func coverageCase(c *coverage.Coverage) junitCase {
	var text strings.Builder
	printCoverage(&text, c)
	return junitCase{Class: "mvp.test-policy", Name: "coverage", Time: seconds(0), Out: strings.TrimSpace(text.String())}
}

func printCoverageMarkdown(w io.Writer, c *coverage.Coverage) {
	items, _ := missing(c)
	fmt.Fprintf(w, "\n%s\n", coverageSummary(c))
	if len(items) == 0 {
		return
	}
	fmt.Fprint(w, "\n| place | not reached |\n|---|---|\n")
	for _, item := range items {
		fmt.Fprintf(w, "| %s | %s |\n", cell(item.Pos.String()), cell(item.Missing))
	}
}
