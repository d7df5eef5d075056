package policies

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// library holds a directory for each shipped policy. Its files are like those of
// a user's policy directory.
//
//go:embed library
var library embed.FS

// libraryAll is the name that stands for every shipped policy.
const libraryAll = "all"

// Shipped is a policy, or a few that belong together, that comes with the binary.
type Shipped struct {
	// Name is what Options.Library takes, such as "policy-v1beta1".
	Name string

	// Summary is one line: which resources of which version it serves.
	Summary string

	// Doc is what it covers and what it cannot: the comments at the head of its
	// files.
	Doc string

	// Policies are its policies, uncompiled.
	Policies []engine.Policy
}

// Library returns the shipped policies, ordered by name.
func Library() []Shipped {
	var shipped []Shipped
	for _, name := range libraryNames() {
		files := libraryFiles(name)
		policies, _ := parseLibrary(name, files)
		shipped = append(shipped, Shipped{
			Name:     name,
			Summary:  summary(policies),
			Doc:      headerComments(files),
			Policies: policies,
		})
	}
	return shipped
}

// libraryPolicies returns the shipped policies called names, and their files. A
// name that is none is a mistake without a place.
func libraryPolicies(names []string) ([]engine.Policy, []File, source.Errors) {
	known := libraryNames()
	if slices.Contains(names, libraryAll) {
		names = known
	}
	var policies []engine.Policy
	var files []File
	var errs source.Errors
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if !slices.Contains(known, name) {
			errs = append(errs, &source.Error{Msg: "cannot load the shipped policy " + source.Quote(name) + ": there is none of that name" +
				source.Suggest(name, known)})
			continue
		}
		f := libraryFiles(name)
		p, found := parseLibrary(name, f)
		policies, files, errs = append(policies, p...), append(files, f...), append(errs, found...)
	}
	return policies, files, errs
}

// parseLibrary parses the files of the shipped policy called name. Its policies
// are called <name>/<policy>: no user's policy can have such a name, since file
// names hold no slash.
func parseLibrary(name string, files []File) ([]engine.Policy, source.Errors) {
	policies, errs := parse(files, engine.OriginLibrary)
	for i := range policies {
		policies[i].Name = name + "/" + policies[i].Name
		if policies[i].Convert != nil {
			policies[i].Convert.Policy = policies[i].Name
		}
	}
	return policies, errs
}

// libraryNames returns the names of the shipped policies in order.
func libraryNames() []string {
	var names []string
	for _, entry := range libraryDir("library") {
		names = append(names, entry.Name())
	}
	return names
}

// libraryFiles returns the policy files of the shipped policy called name.
func libraryFiles(name string) []File {
	var files []File
	dir := path.Join("library", name)
	for _, entry := range libraryDir(dir) {
		data, err := library.ReadFile(path.Join(dir, entry.Name()))
		if err != nil {
			panic(err) // the directory of an embedded file system listed it
		}
		files = append(files, File{Name: path.Join(dir, entry.Name()), Data: data})
	}
	return files
}

// libraryDir lists a directory that is part of the binary, in order of the names.
func libraryDir(dir string) []fs.DirEntry {
	entries, err := library.ReadDir(dir)
	if err != nil {
		panic(err) // dir is a constant, or a name that its parent listed
	}
	return entries
}

// summary says which versions policies serve: "cronjobs: batch/v1beta1 as batch/v1".
func summary(policies []engine.Policy) string {
	var parts []string
	for _, p := range policies {
		if c := p.Convert; c != nil {
			parts = append(parts, c.From.Resource+": "+c.From.APIVersion()+" as "+c.To.APIVersion())
		}
	}
	return strings.Join(parts, "; ")
}

// headerComments returns the comment lines that files begin with, without their
// comment signs; a blank line stands between two files'.
func headerComments(files []File) string {
	var blocks []string
	for _, file := range files {
		var lines []string
		for line := range strings.Lines(string(file.Data)) {
			line = strings.TrimRight(line, "\n")
			text, ok := strings.CutPrefix(line, "//")
			if !ok {
				text, ok = strings.CutPrefix(line, "#")
			}
			if !ok {
				break
			}
			lines = append(lines, strings.TrimPrefix(text, " "))
		}
		if len(lines) > 0 {
			blocks = append(blocks, strings.Join(lines, "\n"))
		}
	}
	return strings.Join(blocks, "\n\n")
}
