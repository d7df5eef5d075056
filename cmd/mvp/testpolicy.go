package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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

	roundTrip bool
	fuzz      int
	seed      uint64
	seeded    bool // seed is given

	schemas    []string
	kubeconfig string

	coverage    bool
	coverageMin float64

	watch bool
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
  mvp test-policy --policies ./policies -v
  mvp test-policy --policies ./policies --resources crd.yaml --fuzz 1000`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.seeded = cmd.Flags().Changed("seed")
			opts.coverage = opts.coverage || cmd.Flags().Changed("coverage-min")
			if opts.watch {
				return watchPolicies(cmd.Context(), std, &opts, args)
			}
			return testPolicy(std, &opts, args)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&opts.policies.Dirs, "policies", nil, "policy directory or file; may be repeated")
	flags.StringSliceVar(&opts.policies.Library, "library", nil, "shipped policies: kubernetes-1.N (what servers of that release do not serve), kubernetes-all, or a name of 'mvp library'")
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
	flags.BoolVar(&opts.roundTrip, "round-trip", false, "take the manifests, or the objects of the cases, through each conversion and back")
	flags.IntVar(&opts.fuzz, "fuzz", 0, "take so many random objects of each version through each conversion and back")
	flags.Uint64Var(&opts.seed, "seed", 0, "seed of the first random object (default: another one each time)")
	flags.StringArrayVar(&opts.schemas, "schema", nil, "file with CustomResourceDefinitions or an OpenAPI document, or 'cluster', to check what servers are sent; may be repeated")
	flags.StringVar(&opts.kubeconfig, "kubeconfig", "", "kubeconfig of --schema cluster (default: $KUBECONFIG, then ~/.kube/config)")
	flags.BoolVar(&opts.coverage, "coverage", false, "say what of the policies no case reaches")
	flags.Float64Var(&opts.coverageMin, "coverage-min", 0, "fail if less than so many percent are reached")
	flags.BoolVar(&opts.watch, "watch", false, "run again whenever a policy, case or manifest changes")
	return cmd
}

// testPolicy runs the command once.
func testPolicy(std streams, opts *testPolicyOptions, args []string) error {
	if !slices.Contains(testPolicyOutputs, opts.output) {
		return usageError("cannot print %q: -o takes %s", opts.output, strings.Join(testPolicyOutputs, ", "))
	}
	if !slices.Contains(colorModes, opts.color) {
		return usageError("cannot use --color %q: want %s", opts.color, strings.Join(colorModes, ", "))
	}
	if !(opts.coverageMin >= 0 && opts.coverageMin <= 100) { // so not NaN, either
		return usageError("cannot use --coverage-min %v: want a percentage, from 0 to 100", opts.coverageMin)
	}
	if err := opts.checkServed(); err != nil {
		return err
	}
	if opts.roundTrip || opts.fuzz != 0 {
		return testRoundTrips(std, opts, args)
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
