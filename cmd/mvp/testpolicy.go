package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/source"
	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
)

// testPolicyOptions are the flags of `mvp test-policy`.
type testPolicyOptions struct {
	policies policies.Options
	request  string
	output   string
}

var testPolicyOutputs = []string{"diff", "yaml", "json"}

func testPolicyCommand(std streams) *cobra.Command {
	var opts testPolicyOptions
	cmd := &cobra.Command{
		Use:   "test-policy [--policies DIR]... [--library NAME]... MANIFEST... | -",
		Short: "Run policies on manifests and show what a server would get, and what a client would see of it",
		Long: `Runs policies on manifests, without any server.

Each MANIFEST is a file, a folder or - for standard input, of YAML or JSON
documents. Versions that a policy converts count as no longer served. A
CustomResourceDefinition among the manifests tells the types of the fields of its
versions; those of Kubernetes' own kinds are known.

Exit codes: 0 all manifests passed, 1 a policy failed on one, 2 wrong arguments,
3 a policy does not compile.`,
		Example: `  mvp test-policy --policies ./policies app.yaml
  helm template ./chart | mvp test-policy --library all -o yaml -`,
		RunE: func(cmd *cobra.Command, args []string) error { return testPolicy(std, opts, args) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&opts.policies.Dirs, "policies", nil, "policy directory or file; may be repeated")
	flags.StringSliceVar(&opts.policies.Library, "library", nil, "shipped policies to load, or all; see 'mvp library'")
	flags.StringVar(&opts.request, "request", "", "request that each manifest is the body of, such as 'PUT /apis/G/V/namespaces/N/R/NAME' (default: the create of its kind)")
	flags.StringVarP(&opts.output, "output", "o", "diff", "diff, yaml or json")
	return cmd
}

func testPolicy(std streams, opts testPolicyOptions, args []string) error {
	run, err := opts.check(args)
	if err != nil {
		return err
	}
	set, err := policies.Load(opts.policies)
	if err != nil {
		return &exitError{exitPolicies, policyErrors(err)}
	}
	manifests, err := readManifests(std.in, args)
	if err != nil {
		return err
	}
	set = set.WithSchemas(offlineSchemas(manifests))
	failed := 0
	for _, m := range manifests {
		result := dryrun.Run(set, m, run)
		if err := printResult(std.out, &result, opts.output); err != nil {
			return err
		}
		if result.Err != nil {
			failed++
			fmt.Fprintf(std.err, "%s: failed: %v\n", &result.Manifest, result.Err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("policies failed on %d of %d manifests", failed, len(manifests))
	}
	return nil
}

// check finds what is wrong with the arguments.
func (opts *testPolicyOptions) check(args []string) (dryrun.Options, error) {
	var run dryrun.Options
	switch {
	case len(args) == 0:
		return run, usageError("no manifests: name files, folders, or - for standard input")
	case len(opts.policies.Dirs) == 0 && len(opts.policies.Library) == 0:
		return run, usageError("no policies: give --policies DIR or --library NAME")
	case !slices.Contains(testPolicyOutputs, opts.output):
		return run, usageError("cannot print %q: -o takes %s", opts.output, strings.Join(testPolicyOutputs, ", "))
	}
	if opts.request != "" {
		method, target, ok := strings.Cut(opts.request, " ")
		if !ok {
			return run, usageError("cannot use --request %q: want a method and a path, such as 'PUT /api/v1/…'", opts.request)
		}
		request, err := engine.ParseRequest(method, target)
		if err != nil {
			return run, usageError("cannot use --request: %w", err)
		}
		if request.Verb != "create" && request.Verb != "update" {
			return run, usageError("cannot use --request %q: a manifest is the body of a create (POST) or an update (PUT)", opts.request)
		}
		run.Method, run.Target = method, target
	}
	return run, nil
}

func readManifests(stdin io.Reader, args []string) ([]dryrun.Manifest, error) {
	var all []dryrun.Manifest
	for _, arg := range args {
		var manifests []dryrun.Manifest
		var err error
		if arg == "-" {
			manifests, err = dryrun.Read(stdin, "stdin")
		} else {
			manifests, err = dryrun.ReadPath(arg)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, manifests...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no manifests in %s", strings.Join(args, ", "))
	}
	return all, nil
}

func printResult(w io.Writer, r *dryrun.Result, output string) error {
	switch output {
	case "yaml":
		return printYAML(w, r)
	case "json":
		return printJSON(w, r)
	}
	return printDiff(w, r)
}

// printDiff prints for a person: what changes on the way to the server, and what
// of it a client sees.
func printDiff(w io.Writer, r *dryrun.Result) error {
	if r.Err != nil {
		_, err := fmt.Fprintf(w, "%s: failed\n", &r.Manifest) // why goes to standard error
		return err
	}
	fmt.Fprintf(w, "%s: %s\n", &r.Manifest, verdict(r))
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "  warning: %s\n", warning)
	}
	for _, audit := range r.Audited {
		fmt.Fprintf(w, "  audit: %s would %s: %s\n", audit.Policy, audit.Effect, audit.Detail)
	}
	if r.Sent == nil {
		return nil
	}
	if err := printUnified(w, r.From.APIVersion(), r.To.APIVersion(), r.JSON, r.Sent); err != nil {
		return err
	}
	if r.Lossless() {
		fmt.Fprintln(w, "  and back: the same object")
		return nil
	}
	fmt.Fprintln(w, "  and back:")
	return printUnified(w, "sent by the client", "answered to the client", r.JSON, r.Back)
}

func verdict(r *dryrun.Result) string {
	switch {
	case r.Denied != "":
		return "denied: " + r.Denied
	case r.Sent != nil:
		return fmt.Sprintf("converted to %s by %s", r.To.APIVersion(), r.Policy)
	case len(r.Policies) > 0:
		return "not converted; policies: " + strings.Join(r.Policies, ", ")
	case r.Touched():
		return "not converted"
	}
	return "untouched: no policy matches"
}

func printUnified(w io.Writer, oldName, newName string, oldJSON, newJSON []byte) error {
	before, err := yaml.JSONToYAML(oldJSON)
	if err != nil {
		return err
	}
	after, err := yaml.JSONToYAML(newJSON)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, udiff.Unified(oldName, newName, string(before), string(after)))
	return err
}

// printYAML prints what the server would get, as a stream that can be applied.
// What is denied or failed is left out of it, with a comment.
func printYAML(w io.Writer, r *dryrun.Result) error {
	object := r.JSON
	switch {
	case r.Err != nil:
		_, err := fmt.Fprintf(w, "---\n# %s: failed\n", &r.Manifest)
		return err
	case r.Denied != "":
		_, err := fmt.Fprintf(w, "---\n# %s: %s\n", &r.Manifest, strings.ReplaceAll(verdict(r), "\n", " "))
		return err
	case r.Sent != nil:
		object = r.Sent
	}
	text, err := yaml.JSONToYAML(object)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "---\n# %s: %s\n%s", &r.Manifest, verdict(r), text)
	return err
}

// resultJSON is one line of -o json.
type resultJSON struct {
	Source    string          `json:"source"`
	Request   string          `json:"request,omitempty"`
	Policies  []string        `json:"policies,omitempty"`
	Policy    string          `json:"convertedBy,omitempty"`
	From      string          `json:"from,omitempty"`
	To        string          `json:"to,omitempty"`
	Denied    string          `json:"denied,omitempty"`
	Warnings  []string        `json:"warnings,omitempty"`
	Audited   []engine.Audit  `json:"audited,omitempty"`
	Lossless  *bool           `json:"lossless,omitempty"`
	Sent      json.RawMessage `json:"sent,omitempty"`
	Back      json.RawMessage `json:"back,omitempty"`
	Untouched bool            `json:"untouched,omitempty"`
	Error     string          `json:"error,omitempty"`
}

func printJSON(w io.Writer, r *dryrun.Result) error {
	line := resultJSON{
		Source: r.Source, Request: r.Request, Policies: r.Policies, Policy: r.Policy,
		Denied: r.Denied, Warnings: r.Warnings, Audited: r.Audited, Sent: r.Sent, Back: r.Back, Untouched: r.Err == nil && !r.Touched(),
	}
	if r.Policy != "" {
		line.From, line.To = r.From.APIVersion(), r.To.APIVersion()
	}
	if r.Back != nil {
		lossless := r.Lossless()
		line.Lossless = &lossless
	}
	if r.Err != nil {
		line.Error = r.Err.Error()
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(line); err != nil {
		return err
	}
	_, err := w.Write(out.Bytes())
	return err
}

// policyErrors puts each mistake on lines of its own.
func policyErrors(err error) error {
	var errs source.Errors
	if !errors.As(err, &errs) {
		return err
	}
	return fmt.Errorf("cannot load the policies:\n%w", errs)
}
