package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
)

// testManifests runs the policies on manifests, or on one request.
func testManifests(std streams, opts *testPolicyOptions, args []string) error {
	template, err := opts.check(args)
	if err != nil {
		return err
	}
	set, err := policies.Load(opts.policies)
	if err != nil {
		return &exitError{exitPolicies, policyErrors(err)}
	}
	newWarner(std.err).tell(policies.Show(set.Warnings(), opts.policies))
	input, err := readInput(std.in, template, args)
	if err == nil && len(args) > 0 && input.count() == 0 {
		err = fmt.Errorf("no manifests in %s", strings.Join(args, ", "))
	}
	if err != nil {
		return err
	}
	run := dryrun.Options{Trace: opts.trace, Explain: opts.explain}
	if opts.response != "" {
		if run.Response, err = os.ReadFile(opts.response); err != nil {
			return fmt.Errorf("cannot read the response: %w", err)
		}
	}
	kinds, err := opts.kinds(input.manifests)
	if err != nil {
		return err
	}
	if err := checkFields(set, opts.policies, kinds.types); err != nil {
		return err
	}
	set = set.WithSchemas(kinds.types)
	run.Schema = opts.schema(kinds)
	run.Servers = opts.servers(set)
	for _, note := range opts.idleServed(set) {
		fmt.Fprintf(std.err, "mvp: %s\n", note)
	}
	reports := input.run(set, template, run)
	p := printer{out: std.out, err: std.err, color: useColor(std.out, opts.color), trace: opts.trace, explain: opts.explain}
	if err := p.print(opts.output, reports); err != nil {
		return err
	}
	if failed := failures(reports); failed > 0 {
		what := "manifests"
		if opts.request != "" {
			what = "requests"
		}
		return fmt.Errorf("policies failed on %d of %d %s", failed, len(reports), what)
	}
	return nil
}

// check finds what is wrong with the arguments.
func (opts *testPolicyOptions) check(args []string) (*dryrun.Template, error) {
	switch {
	case len(args) == 0 && opts.request == "":
		return nil, usageError("no manifests: name files, folders, or - for standard input")
	case len(opts.policies.Dirs) == 0 && len(opts.policies.Library) == 0:
		return nil, usageError("no policies: give --policies DIR or --library NAME")
	case opts.run != "" || opts.update || opts.coverage:
		return nil, usageError("--run, --update and --coverage are for cases: leave the manifests out")
	case len(opts.groups) > 0 && opts.user == "":
		return nil, usageError("--group goes with --user")
	}
	template := &dryrun.Template{Header: http.Header{}}
	if opts.user != "" {
		template.User = &engine.User{Name: opts.user, Groups: opts.groups}
	}
	for _, line := range opts.headers {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, usageError("cannot use --header %q: want 'NAME: VALUE'", line)
		}
		template.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if opts.contentType != "" {
		template.Header.Set("Content-Type", opts.contentType)
	}
	if opts.request == "" {
		return template, nil
	}
	if err := template.ParseLine(opts.request); err != nil {
		return nil, usageError("cannot use --request %q: %w", opts.request, err)
	}
	switch {
	case template.HasBody() && len(args) == 0:
		return nil, usageError("cannot run %q without a body: name a file, or - for standard input", opts.request)
	case !template.HasBody() && len(args) > 0:
		return nil, usageError("cannot run %q on manifests: it has no body; --response FILE is what a server answers", opts.request)
	}
	return template, nil
}

// input is what the requests are made of.
type input struct {
	manifests []dryrun.Manifest // whole objects
	patches   []dryrun.Document
}

func (in *input) count() int { return len(in.manifests) + len(in.patches) }

// readInput reads all arguments; its error has all that is wrong.
func readInput(stdin io.Reader, template *dryrun.Template, args []string) (*input, error) {
	in := &input{}
	var errs []error
	for _, arg := range args {
		errs = append(errs, in.read(stdin, template, arg))
	}
	return in, errors.Join(errs...)
}

func (in *input) read(stdin io.Reader, template *dryrun.Template, arg string) error {
	var manifests []dryrun.Manifest
	var err error
	switch {
	case template.IsPatch():
		return in.readPatches(stdin, arg)
	case arg == "-":
		manifests, err = dryrun.Read(stdin, "stdin")
	default:
		manifests, err = dryrun.ReadPath(arg)
	}
	in.manifests = append(in.manifests, manifests...)
	return err
}

func (in *input) readPatches(stdin io.Reader, arg string) error {
	name := "stdin"
	if arg != "-" {
		data, err := os.ReadFile(arg)
		if err != nil {
			return fmt.Errorf("cannot read the patch: %w", err)
		}
		stdin, name = bytes.NewReader(data), arg
	}
	patches, err := dryrun.ReadDocuments(stdin, name)
	in.patches = append(in.patches, patches...)
	return err
}

// readResources reads the manifests of --resources.
func readResources(names []string) ([]dryrun.Manifest, error) {
	var all []dryrun.Manifest
	var errs []error
	for _, name := range names {
		manifests, err := dryrun.ReadPath(name)
		all, errs = append(all, manifests...), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// report is what became of one request.
type report struct {
	name string // what messages call it
	*dryrun.Result
}

// run runs each request that in makes of template.
func (in *input) run(set *engine.Set, template *dryrun.Template, opts dryrun.Options) []report {
	line := template.Method + " " + template.Target
	var reports []report
	add := func(name string, request dryrun.Request) {
		reports = append(reports, report{name, dryrun.Run(set, request, opts)})
	}
	for i := range in.manifests {
		m := &in.manifests[i]
		if template.Target == "" {
			add(m.String(), template.Create(set, m))
		} else {
			add(m.String(), template.Request(m.JSON))
		}
	}
	for _, patch := range in.patches {
		add(patch.Source+": "+line, template.Request(patch.JSON))
	}
	if in.count() == 0 {
		add(line, template.Request(nil))
	}
	return reports
}

func failures(reports []report) int {
	failed := 0
	for _, r := range reports {
		if !r.OK() {
			failed++
		}
	}
	return failed
}
