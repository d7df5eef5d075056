// Package policies reads policies from where their authors keep them: directories
// of .cel and .jq files, TransformationRules documents, objects of a cluster that it
// is handed, and the library that is shipped inside the binary. It keeps a live set of
// them, reloaded when a file or an object changes.
//
// Every mistake is reported with its file, line and column, the line itself and a
// caret, and all mistakes of all files at once. What the expressions, programs
// and rules mean is not decided here: package engine compiles them. The package
// serves no request, and talks to no Kubernetes API.
package policies

import (
	"errors"
	"fmt"
	"path"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Options say where policies come from. The zero Options load none.
type Options struct {
	// Dirs are the policy directories. An element may also name one file. A
	// directory may be empty, but it must exist.
	Dirs []string

	// Library names the shipped policies to load beside the user's: "kubernetes-1.32" for
	// all that servers of that release do not serve, "kubernetes-all", or a [Shipped.Name]. A
	// user's policy for a version wins over a shipped one.
	Library []string

	// Limits bound what evaluating a policy may cost.
	Limits engine.Limits
}

// File is a policy file that has been read.
type File struct {
	// Name is the path, as messages show it. Its last element says what the file
	// is: <policy>.<role>.cel, <policy>.<role>.jq, or a document (*.yaml, *.yml,
	// *.json). Files of one policy have the same directory and the same <policy>.
	Name string

	// Data is the content.
	Data []byte
}

// Load reads, parses and compiles all policies. The error is a [source.Errors]:
// every mistake in every file, sorted by place. There is then no set.
func Load(opts Options) (*engine.Set, error) {
	files, errs := readAll(opts.Dirs)
	set, errs := compile(files, opts, errs)
	if len(errs) > 0 {
		return nil, errs.Err()
	}
	return set, nil
}

// Parse returns the policies that files hold, uncompiled, in no particular order,
// and every mistake in how they are written. With mistakes, the policies are what
// could be understood: good for finding the mistakes inside their expressions
// too, not for use. Parse reads no file.
func Parse(files []File) ([]engine.Policy, source.Errors) {
	return parse(files, engine.OriginFile)
}

func parse(files []File, origin string) ([]engine.Policy, source.Errors) {
	p := parser{origin: origin, groups: map[string]*group{}, named: map[string]source.Pos{}}
	for _, file := range files {
		p.file(file)
	}
	p.finishGroups()
	showLines(p.errs, files)
	p.errs.Sort()
	return p.policies, p.errs
}

// parser collects what the files of one load hold.
type parser struct {
	origin   string
	policies []engine.Policy
	errs     source.Errors

	groups map[string]*group     // of .cel and .jq files, by directory and policy name
	order  []*group              // groups in the order of their first file
	named  map[string]source.Pos // where each name of a document was first used
}

// file sorts file by what its name says it is.
func (p *parser) file(file File) {
	if err := checkText(file); err != nil {
		p.errs = append(p.errs, err)
		return
	}
	switch path.Ext(file.Name) {
	case ".yaml", ".yml", ".json":
		p.documents(file)
	default:
		p.roleFile(file)
	}
}

// claim records that the document called name stands at pos. It reports false,
// with the mistake noted, when another has the name.
func (p *parser) claim(name string, pos source.Pos) bool {
	first, taken := p.named[name]
	if !taken {
		p.named[name] = pos
		return true
	}
	p.errs = append(p.errs, &source.Error{
		Pos: pos,
		Msg: "the document " + source.Quote(name) + " is already at " + first.String() + ": give one of them another name",
	})
	return false
}

// compile parses files and the shipped policies called library, and compiles all
// of them together. The mistakes are errs and its own.
func compile(files []File, opts Options, errs source.Errors) (*engine.Set, source.Errors) {
	set, _, errs := compileFiles(files, opts, errs)
	return set, errs
}

// compileFiles is compile, and returns the policies of the set as they were written, too.
func compileFiles(files []File, opts Options, errs source.Errors) (*engine.Set, []engine.Policy, source.Errors) {
	all, found := parse(files, engine.OriginFile)
	errs = append(errs, found...)

	shipped, shippedFiles, found := libraryPolicies(opts.Library)
	errs = append(errs, found...)
	all = append(all, shipped...)

	set, err := compileAll(all, opts.Limits)
	errs = append(errs, asErrors(err)...)
	if len(errs) > 0 {
		showLines(errs, files, shippedFiles)
		errs.Sort()
		return nil, nil, errs
	}
	return set, all, nil
}

// asErrors returns err as mistakes. An error of another type keeps its text and
// has no place.
func asErrors(err error) source.Errors {
	if err == nil {
		return nil
	}
	var errs source.Errors
	if errors.As(err, &errs) {
		return errs
	}
	return source.Errors{{Msg: err.Error()}}
}

// compileAll compiles policies. A fault in a library that compiles an expression
// must not end the process that serves by the policies before.
func compileAll(all []engine.Policy, limits engine.Limits) (set *engine.Set, err error) {
	defer func() {
		if p := recover(); p != nil {
			set, err = nil, fmt.Errorf("a fault while the policies were compiled, which is not theirs: %v", p)
		}
	}()
	return engine.CompileWith(all, limits)
}
