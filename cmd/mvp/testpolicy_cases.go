package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/mixed-version-proxy/mvp/engine/source"
	"github.com/mixed-version-proxy/mvp/policies/dryrun/coverage"
	"github.com/mixed-version-proxy/mvp/policies/dryrun/policytest"
)

// testCases runs the cases of files and prints them as go test does.
func testCases(std streams, opts *testPolicyOptions, files []string) error {
	if opts.output == "yaml" {
		return usageError("cannot print cases as yaml: -o takes diff, json, junit, markdown")
	}
	if opts.request != "" || opts.response != "" || opts.trace || opts.explain || len(opts.served)+len(opts.resources) > 0 {
		return usageError("--request, --response, --resources, --served, --trace and --explain are for manifests: a case says itself what it asks")
	}
	wanted, err := opts.compileRun()
	if err != nil {
		return err
	}
	run := policytest.Options{Update: opts.update, Schemas: offlineSchemas, Limits: opts.policies.Limits}
	if opts.coverage {
		run.Coverage = &coverage.Coverage{}
	}
	if len(opts.schemas) > 0 {
		kinds, err := opts.kinds(nil)
		if err != nil {
			return err
		}
		run.Schema = opts.schema(kinds)
	}
	var folders []*caseFolder
	warn := newWarner(std.err)
	for _, file := range files {
		cases, err := policytest.Load(file)
		folder := folderOf(&folders, filepath.Dir(file))
		if err != nil {
			folder.outcomes = append(folder.outcomes, policytest.Unread(file, err))
		}
		for _, c := range cases {
			if wanted.MatchString(c.Name) {
				outcome := c.Run(run)
				warn.tell(outcome.Warnings)
				folder.outcomes = append(folder.outcomes, outcome)
			}
		}
	}
	if err := printCases(std, opts, folders, run.Coverage); err != nil {
		return err
	}
	if err := casesError(folders); err != nil {
		return err
	}
	return opts.coverageError(run.Coverage)
}

// caseFolder is what became of the cases in one folder.
type caseFolder struct {
	name     string
	outcomes []policytest.Outcome
}

func folderOf(folders *[]*caseFolder, name string) *caseFolder {
	for _, f := range *folders {
		if f.name == name {
			return f
		}
	}
	f := &caseFolder{name: name}
	*folders = append(*folders, f)
	return f
}

func (f *caseFolder) failed() int {
	failed := 0
	for i := range f.outcomes {
		if !f.outcomes[i].Passed() {
			failed++
		}
	}
	return failed
}

func (f *caseFolder) duration() time.Duration {
	var sum time.Duration
	for _, o := range f.outcomes {
		sum += o.Duration
	}
	return sum
}

// casesError is why the command fails; nil when all cases pass.
func casesError(folders []*caseFolder) error {
	failed, all, code := 0, 0, exitFailed
	for _, f := range folders {
		failed, all = failed+f.failed(), all+len(f.outcomes)
		for _, o := range f.outcomes {
			var mistakes source.Errors
			if errors.As(o.Err, &mistakes) {
				code = exitPolicies
			}
		}
	}
	switch {
	case all == 0:
		return errors.New("no case matches --run")
	case failed > 0:
		return &exitError{code, fmt.Errorf("%d of %d cases failed", failed, all)}
	}
	return nil
}

// printCases prints the cases, and what they cover if that is asked for.
func printCases(std streams, opts *testPolicyOptions, folders []*caseFolder, covered *coverage.Coverage) error {
	switch opts.output {
	case "json":
		if err := printCasesJSON(std, folders); err != nil || covered == nil {
			return err
		}
		return printCoverageJSON(std.out, covered)
	case "junit":
		suite := suiteOfCases(folders)
		if covered != nil {
			suite.add(coverageCase(covered), errorText(opts.coverageError(covered)))
		}
		return printJUnit(std.out, suite)
	case "markdown":
		printCasesMarkdown(std, folders)
		if covered != nil {
			printCoverageMarkdown(std.out, covered)
		}
		return nil
	}
	color := useColor(std.out, opts.color)
	for _, f := range folders {
		for i := range f.outcomes {
			printCase(std, &f.outcomes[i], opts.verbose, color)
		}
		printFolder(std, f)
	}
	if covered != nil {
		printCoverage(std.out, covered)
	}
	return nil
}

// printCase prints a case as go test -v does.
func printCase(std streams, o *policytest.Outcome, verbose, color bool) {
	if o.Passed() && !verbose && !o.Updated {
		return
	}
	word := "PASS"
	if !o.Passed() {
		word = "FAIL"
	}
	fmt.Fprintf(std.out, "--- %s: %s (%.2fs)\n", word, o.Case.Name, o.Duration.Seconds())
	if o.Updated {
		fmt.Fprint(std.out, "    updated\n")
	}
	if o.Passed() {
		return
	}
	text := problemText(o)
	if color {
		text = colorDiff(text)
	}
	var mistakes policytest.Mistakes
	if !errors.As(o.Err, &mistakes) { // which say themselves where they are
		text = o.Case.File + ":\n" + text
	}
	fmt.Fprintf(std.out, "    %s\n", strings.ReplaceAll(text, "\n", "\n    "))
}

// problemText is what is wrong with a case; "" when nothing is.
func problemText(o *policytest.Outcome) string {
	if o.Err != nil {
		return policyErrors(o.Err).Error()
	}
	return strings.Join(o.Problems, "\n")
}

// printFolder prints the line that go test prints of a package.
func printFolder(std streams, f *caseFolder) {
	switch failed := f.failed(); {
	case len(f.outcomes) == 0:
		fmt.Fprintf(std.out, "ok  \t%s\t[no cases to run]\n", f.name)
	case failed > 0:
		fmt.Fprintf(std.out, "FAIL\t%s\t%d of %s failed\n", f.name, failed, countCases(len(f.outcomes)))
	default:
		fmt.Fprintf(std.out, "ok  \t%s\t%s\n", f.name, countCases(len(f.outcomes)))
	}
}

func countCases(n int) string {
	if n == 1 {
		return "1 case"
	}
	return fmt.Sprintf("%d cases", n)
}

// caseJSON is one line of -o json for a case.
type caseJSON struct {
	File     string   `json:"file"`
	Name     string   `json:"name"`
	Passed   bool     `json:"passed"`
	Updated  bool     `json:"updated,omitempty"`
	Problems []string `json:"problems,omitempty"`
	Error    string   `json:"error,omitempty"`
	Seconds  float64  `json:"seconds"`
}

func printCasesJSON(std streams, folders []*caseFolder) error {
	for _, f := range folders {
		for i := range f.outcomes {
			o := &f.outcomes[i]
			err := printLine(std.out, caseJSON{
				File: o.Case.File, Name: o.Case.Name, Passed: o.Passed(), Updated: o.Updated,
				Problems: o.Problems, Error: errorText(o.Err), Seconds: o.Duration.Seconds(),
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func suiteOfCases(folders []*caseFolder) *junitSuite {
	suite := &junitSuite{Name: "mvp test-policy"}
	var sum time.Duration
	for _, f := range folders {
		sum += f.duration()
		for i := range f.outcomes {
			o := &f.outcomes[i]
			suite.add(junitCase{Class: f.name, Name: o.Case.Name, File: o.Case.File, Time: seconds(o.Duration.Seconds())}, problemText(o))
		}
	}
	suite.Time = seconds(sum.Seconds())
	return suite
}

func printCasesMarkdown(std streams, folders []*caseFolder) {
	fmt.Fprint(std.out, "| case | result |\n|---|---|\n")
	for _, f := range folders {
		for i := range f.outcomes {
			result := "passed"
			if !f.outcomes[i].Passed() {
				result = "**failed**"
			}
			fmt.Fprintf(std.out, "| %s | %s |\n", cell(f.outcomes[i].Case.Name), result)
		}
	}
	for _, f := range folders {
		for i := range f.outcomes {
			if o := &f.outcomes[i]; !o.Passed() {
				fmt.Fprintf(std.out, "\n<details><summary>%s</summary>\n", htmlEscaper.Replace(o.Case.Name))
				fenced(std.out, "diff", problemText(o))
				fmt.Fprint(std.out, "\n</details>\n")
			}
		}
	}
}
