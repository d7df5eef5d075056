package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/source"
	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
	"github.com/mixed-version-proxy/mvp/policies/dryrun/policytest"
)

// testPolicyOptions are the flags of `mvp test-policy`.
type testPolicyOptions struct {
	policies policies.Options

	request     string
	headers     []string
	contentType string
	user        string
	groups      []string
	response    string
	resources   []string
	served      []string

	output  string
	color   string
	trace   bool
	explain bool

	run     string
	update  bool
	verbose bool
}

var testPolicyOutputs = []string{"diff", "yaml", "json", "junit", "markdown"}

func testPolicyCommand(std streams) *cobra.Command {
	var opts testPolicyOptions
	cmd := &cobra.Command{
		Use:   "test-policy [--policies DIR]... [--library NAME]... [MANIFEST... | - | CASE...]",
		Short: "Run policies on manifests, requests and test cases, without any server",
		Long: `Runs policies on manifests, requests and test cases, without any server.

Each MANIFEST is a file, a folder or - for standard input, of YAML or JSON
documents, such as kustomize build and helm template print. Versions that a policy
converts count as no longer served. A CustomResourceDefinition among the manifests
tells the types of the fields of its versions, as one of --resources does; those of
Kubernetes' own kinds are known. With --request, each document is the body of that
request.

Each CASE is a *.test.yaml or *_test.txtar file, or, without --policies and
--library, a folder of them. Without any argument the cases in the --policies
folders run.

Exit codes: 0 all passed, 1 a policy failed, a request was refused or a case
failed, 2 wrong arguments, 3 a policy does not compile.`,
		Example: `  mvp test-policy --policies ./policies app.yaml
  helm template ./chart | mvp test-policy --library all -o yaml -
  mvp test-policy --library all --request 'GET /apis/batch/v1beta1/namespaces/web/cronjobs'
  mvp test-policy --policies ./policies -v`,
		RunE: func(cmd *cobra.Command, args []string) error { return testPolicy(std, &opts, args) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&opts.policies.Dirs, "policies", nil, "policy directory or file; may be repeated")
	flags.StringSliceVar(&opts.policies.Library, "library", nil, "shipped policies to load, or all; see 'mvp library'")
	flags.BoolVar(&opts.policies.Limits.Bodies.UnboundedJQ, "allow-unbounded-jq", false, "let jq programs loop, recurse and use regular expressions, as 'mvp serve' with this flag does")
	flags.StringVar(&opts.request, "request", "", "request to run, such as 'PUT /apis/G/V/namespaces/N/R/NAME'; each document is the body of a POST, PUT or PATCH (default: the create of its kind)")
	flags.StringArrayVar(&opts.headers, "header", nil, "header line of the request, 'NAME: VALUE'; may be repeated")
	flags.StringVar(&opts.contentType, "content-type", "", "content type of the request (default: application/json; of a PATCH "+dryrun.MergePatch+", or "+dryrun.JSONPatch+" for a list)")
	flags.StringVar(&opts.user, "user", "", "name of the user who sends the request (default: not known)")
	flags.StringArrayVar(&opts.groups, "group", nil, "group of the user; may be repeated")
	flags.StringVar(&opts.response, "response", "", "file with the body that a server answers: an object, a list, a Status or the events of a watch")
	flags.StringArrayVar(&opts.resources, "resources", nil, "file or folder with CustomResourceDefinitions, which tell the types of fields; may be repeated")
	flags.StringArrayVar(&opts.served, "served", nil, "group version that servers serve although a policy converts it, such as policy/v1beta1; may be repeated")
	flags.StringVarP(&opts.output, "output", "o", "diff", strings.Join(testPolicyOutputs, ", "))
	flags.StringVar(&opts.color, "color", colorAuto, "colours of -o diff: auto (on a terminal, unless NO_COLOR is set), always or never")
	flags.BoolVar(&opts.trace, "trace", false, "show what each policy changes, path by path")
	flags.BoolVar(&opts.explain, "explain", false, "show why each policy that does nothing does nothing")
	flags.StringVar(&opts.run, "run", "", "run only the cases whose name matches the regular expression")
	flags.BoolVar(&opts.update, "update", false, "write the golden parts of the cases anew")
	flags.BoolVarP(&opts.verbose, "verbose", "v", false, "show cases that pass, too")
	return cmd
}

func testPolicy(std streams, opts *testPolicyOptions, args []string) error {
	if !slices.Contains(testPolicyOutputs, opts.output) {
		return usageError("cannot print %q: -o takes %s", opts.output, strings.Join(testPolicyOutputs, ", "))
	}
	if !slices.Contains(colorModes, opts.color) {
		return usageError("cannot use --color %q: want %s", opts.color, strings.Join(colorModes, ", "))
	}
	cases, err := opts.caseFiles(args)
	if err != nil {
		return err
	}
	if cases != nil {
		return testCases(std, opts, cases)
	}
	return testManifests(std, opts, args)
}

// caseFiles are the files with cases that args ask for; nil when they ask for
// manifests or a request.
func (opts *testPolicyOptions) caseFiles(args []string) ([]string, error) {
	cases := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return !policytest.IsFile(arg) })
	bring := len(opts.policies.Dirs) == 0 && len(opts.policies.Library) == 0
	switch {
	case len(cases) > 0 && len(cases) == len(args):
		return cases, nil
	case len(cases) > 0:
		return nil, usageError("cannot run cases and manifests at once: %s is a case", cases[0])
	case opts.request != "":
		return nil, nil
	case len(args) == 0 && len(opts.policies.Dirs) > 0:
		return casesBelow(opts.policies.Dirs)
	case bring && len(args) > 0 && !slices.ContainsFunc(args, func(arg string) bool { return !isFolder(arg) }):
		return casesBelow(args)
	}
	return nil, nil
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// casesBelow lists the files with cases in folders.
func casesBelow(folders []string) ([]string, error) {
	var all []string
	for _, folder := range folders {
		files, err := policytest.Files(folder)
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	if len(all) == 0 {
		return nil, usageError("no manifests, and no cases (*.test.yaml, *_test.txtar) in %s: name files, folders, or - for standard input", strings.Join(folders, ", "))
	}
	return all, nil
}

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
	resources, err := readResources(opts.resources)
	if err != nil {
		return err
	}
	set = set.WithSchemas(offlineSchemas(append(resources, input.manifests...)))
	run.Servers = opts.servers(set)
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
	case opts.run != "" || opts.update:
		return nil, usageError("--run and --update are for cases: leave the manifests out")
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

// servers are those that --served describes; nil without it.
func (opts *testPolicyOptions) servers(set *engine.Set) []dryrun.Server {
	if len(opts.served) == 0 {
		return nil
	}
	unconverted := dryrun.Unconverted(set)
	return []dryrun.Server{{Name: "server", Serves: func(group, version, resource string) bool {
		groupVersion := strings.TrimPrefix(group+"/"+version, "/")
		return unconverted(group, version, resource) || slices.Contains(opts.served, groupVersion) ||
			slices.Contains(opts.served, groupVersion+" "+resource)
	}}}
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

// compileRun reads --run.
func (opts *testPolicyOptions) compileRun() (*regexp.Regexp, error) {
	re, err := regexp.Compile(opts.run)
	if err != nil {
		return nil, usageError("cannot use --run %q: %w", opts.run, err)
	}
	return re, nil
}

// policyErrors puts each mistake on lines of its own.
func policyErrors(err error) error {
	var errs source.Errors
	if !errors.As(err, &errs) {
		return err
	}
	return fmt.Errorf("cannot load the policies:\n%w", errs)
}
