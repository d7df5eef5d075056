// Package policytest runs test cases of policies: a request, and what is to become
// of it. Cases stand in *.test.yaml and *_test.txtar files beside policies.
//
// It talks to no server. What policies do is package dryrun's to find out; what is
// printed of it is the caller's.
package policytest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/engine/source"
	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
	"github.com/mixed-version-proxy/mvp/policies/dryrun/coverage"
	"github.com/mixed-version-proxy/mvp/policies/dryrun/kindschema"
)

// The ends of the names of files with cases.
const (
	yamlSuffix  = ".test.yaml"
	txtarSuffix = "_test.txtar"
)

// IsFile reports whether name is that of a file with cases.
func IsFile(name string) bool {
	return strings.HasSuffix(name, yamlSuffix) || strings.HasSuffix(name, txtarSuffix)
}

// Files lists the files with cases: path itself, or those below the folder path.
func Files(path string) ([]string, error) {
	names, err := dryrun.Files(path, IsFile)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(names, func(name string) bool { return !IsFile(name) }), nil
}

// Case is a request, or several of one kind, and what is to become of it.
type Case struct {
	// File is where it stands, Name what it is called: "pdb/an old budget".
	File, Name string

	policies  policySource
	resources []dryrun.Manifest
	servers   []dryrun.Server // one that does not say what it serves serves what is not converted
	template  dryrun.Template
	bodies    []dryrun.Document // of the requests; nil: one without a body
	response  []byte
	wants     []want
	reads     []string // beside its own file
}

// want is one thing that is expected of the results.
type want interface {
	// check says what is wrong with results; "" when nothing is.
	check(results []*dryrun.Result) (problem string, err error)
}

// golden is a want with a text that can be written anew.
type golden interface {
	want

	// update makes the want's text what results are. changed is false when it was
	// already.
	update(results []*dryrun.Result) (changed bool, err error)
}

// policySource is where the policies of a case are.
type policySource struct {
	dirs    []string
	library []string
	files   []policies.File
}

// Options say how cases run.
type Options struct {
	// Update writes golden texts anew instead of comparing them.
	Update bool

	// Schemas knows the types of fields, some of them from the manifests. Nil: of
	// none.
	Schemas func(manifests []dryrun.Manifest) func(convert.Version) convert.Schema

	// Schema is what results are checked against; nil: nothing is.
	Schema func(convert.Version) *kindschema.Schema

	// Coverage notes what the cases reach; nil for nobody.
	Coverage *coverage.Coverage

	// Limits bound what evaluating a policy may cost.
	Limits engine.Limits
}

// Outcome is how a case ended.
type Outcome struct {
	Case *Case

	// Problems are what is not as it is expected, each of one or more lines. Empty:
	// the case passes.
	Problems []string

	// Warnings are what is likely not meant in its policies, with the lines at their
	// places. A case passes with them.
	Warnings source.Errors

	// Err is why the case could not run: a [source.Errors] when its policies do not
	// compile, [Mistakes] when the case is not written as it should be.
	Err error

	// Updated says that a golden text was written anew.
	Updated bool

	Duration time.Duration
}

// Passed reports whether all is as it is expected.
func (o *Outcome) Passed() bool { return o.Err == nil && len(o.Problems) == 0 }

// Set loads the policies of c. They know the types of fields that opts and the objects of
// c tell; a rule about a field that there is not is a mistake.
func (c *Case) Set(opts Options) (*engine.Set, error) {
	from := policies.Options{Dirs: c.policies.dirs, Library: c.policies.library, Limits: opts.Limits}
	set, err := policies.LoadFiles(c.policies.files, from)
	if err != nil || opts.Schemas == nil {
		return set, err
	}
	manifests, err := c.manifests()
	if err != nil {
		return nil, err
	}
	schemas := opts.Schemas(append(slices.Clone(c.resources), manifests...))
	if errs := set.MissingFields(schemas); len(errs) > 0 {
		return nil, policies.Show(errs, from, c.policies.files...)
	}
	return set.WithSchemas(schemas), nil
}

// Warnings are those of set, which are the policies of c, with the lines at their places.
func (c *Case) Warnings(set *engine.Set) source.Errors {
	return policies.Show(set.Warnings(), policies.Options{Dirs: c.policies.dirs}, c.policies.files...)
}

// Objects are the whole objects in c: of its requests, and of the server's answer.
func (c *Case) Objects() ([]dryrun.Manifest, error) {
	manifests, err := c.manifests()
	if err != nil || c.response == nil {
		return manifests, err
	}
	answered, err := dryrun.Read(bytes.NewReader(c.response), c.Name+": the response")
	if err != nil {
		return manifests, nil //nolint:nilerr // the events of a watch, or a Status: no objects
	}
	return append(manifests, answered...), nil
}

// Resources are the manifests that tell the types of fields.
func (c *Case) Resources() []dryrun.Manifest { return c.resources }

// Reads are the files and folders that c reads beside its own.
func (c *Case) Reads() []string { return c.reads }

// Run runs one case.
func (c *Case) Run(opts Options) Outcome {
	start := time.Now()
	o := Outcome{Case: c}
	o.Err = c.run(opts, &o)
	o.Duration = time.Since(start)
	return o
}

func (c *Case) run(opts Options, o *Outcome) error {
	set, err := c.Set(opts)
	if err != nil {
		return err
	}
	o.Warnings = c.Warnings(set)
	results, err := c.results(set, opts)
	if err != nil {
		return err
	}
	for _, r := range results {
		for _, v := range r.Violations {
			o.Problems = append(o.Problems, fmt.Sprintf("what the server is sent does not fit its schema: %v", v))
		}
	}
	for _, w := range c.wants {
		if g, ok := w.(golden); ok && opts.Update {
			changed, err := g.update(results)
			if err != nil {
				return err
			}
			o.Updated = o.Updated || changed
			continue
		}
		problem, err := w.check(results)
		if err != nil {
			return err
		}
		if problem != "" {
			o.Problems = append(o.Problems, problem)
		}
	}
	return nil
}

// results runs the requests of c.
func (c *Case) results(set *engine.Set, opts Options) ([]*dryrun.Result, error) {
	manifests, err := c.manifests()
	if err != nil {
		return nil, err
	}
	run := dryrun.Options{Servers: c.servers, Response: c.response, Schema: opts.Schema}
	note := func([]*dryrun.Result) {}
	if opts.Coverage != nil {
		note = opts.Coverage.Watch(set, c.texts(), &run)
	}
	var results []*dryrun.Result
	switch {
	case c.template.Target == "":
		for i := range manifests {
			results = append(results, dryrun.Run(set, c.template.Create(set, &manifests[i]), run))
		}
	case len(c.bodies) == 0:
		results = append(results, dryrun.Run(set, c.template.Request(nil), run))
	default:
		for _, body := range c.bodies {
			results = append(results, dryrun.Run(set, c.template.Request(body.JSON), run))
		}
	}
	note(results)
	if len(results) == 0 {
		return nil, errors.New("the case has no request: give it an object, or a request line")
	}
	return results, nil
}

// texts are the policy files that stand in an archive.
func (c *Case) texts() coverage.Texts {
	if len(c.policies.files) == 0 {
		return coverage.Texts{}
	}
	files := map[string]string{}
	for _, file := range c.policies.files {
		files[file.Name] = string(file.Data)
	}
	return coverage.Texts{Archive: c.File, Files: files}
}

// manifests are the bodies of c that are whole objects.
func (c *Case) manifests() ([]dryrun.Manifest, error) {
	if c.template.IsPatch() {
		return nil, nil
	}
	var all []dryrun.Manifest
	for i := range c.bodies {
		manifests, err := c.bodies[i].Manifests()
		if err != nil {
			return nil, err
		}
		all = append(all, manifests...)
	}
	return all, nil
}
