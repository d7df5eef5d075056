package policies

import (
	"cmp"
	"embed"
	"io/fs"
	"path"
	"slices"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// library holds a directory for each Kubernetes release that removed versions of
// its API, and in it one for each version: kubernetes/1.25/policy-v1beta1. Its
// files are like those of a user's policy directory.
//
//go:embed kubernetes
var library embed.FS

// libraryRoot is the directory in library that holds the releases'.
const libraryRoot = "kubernetes"

// Shipped is what comes with the binary for the kinds of one version of the
// Kubernetes API that one release removed.
type Shipped struct {
	// Name is the group, to its first dot, and the version: "policy-v1beta1".
	// Options.Library takes it. Where several releases removed kinds of one version,
	// several have the same name.
	Name string

	// Release is the first Kubernetes release whose kube-apiserver does not serve
	// these kinds any more, or is not going to: "1.25".
	Release string

	// Docs are what its policies cover and what they cannot.
	Docs []ShippedDoc

	// Policies are its policies, uncompiled. Their names begin with Name and a
	// slash, and are different for all that is shipped.
	Policies []engine.Policy
}

// Library returns all that is shipped, ordered by release and name.
func Library() []Shipped {
	var shipped []Shipped
	for _, part := range loadLibrary() {
		shipped = append(shipped, Shipped{
			Name:     part.name,
			Release:  part.release.String(),
			Docs:     docsOf(part),
			Policies: part.policies,
		})
	}
	return shipped
}

// libraryPolicies returns the shipped policies that names stand for, each once, and
// their files. A name that stands for none is a mistake without a place.
func libraryPolicies(names []string) ([]engine.Policy, []File, source.Errors) {
	if len(names) == 0 {
		return nil, nil, nil
	}
	parts := loadLibrary()
	wanted, errs := selectLibrary(parts, names)
	var policies []engine.Policy
	var files []File
	for i, part := range parts {
		if wanted[i] {
			policies, files, errs = append(policies, part.policies...), append(files, part.files...), append(errs, part.errs...)
		}
	}
	return policies, files, errs
}

// libraryPart is a directory of policy files in library.
type libraryPart struct {
	release  release
	name     string // of the directory: "policy-v1beta1"
	files    []File
	policies []engine.Policy
	errs     source.Errors // mistakes in files: a test holds that there are none
}

// loadLibrary returns the parts in the order of their releases and names.
func loadLibrary() []libraryPart {
	var parts []libraryPart
	for _, dir := range listLibrary(libraryRoot) {
		r, ok := parseRelease(dir.Name())
		if !ok {
			panic("the library has a directory " + dir.Name() + ", which is no release") // a test loads all of it
		}
		for _, entry := range listLibrary(path.Join(libraryRoot, dir.Name())) {
			part := libraryPart{release: r, name: entry.Name()}
			part.read()
			parts = append(parts, part)
		}
	}
	slices.SortStableFunc(parts, func(a, b libraryPart) int { return cmp.Compare(a.release, b.release) })
	return parts
}

// read reads and parses the files of the directory. Its policies are called
// <name>/<policy>: no user's policy can have such a name, since file names hold no
// slash.
func (p *libraryPart) read() {
	dir := path.Join(libraryRoot, p.release.String(), p.name)
	for _, entry := range listLibrary(dir) {
		name := path.Join(dir, entry.Name())
		data, err := library.ReadFile(name)
		if err != nil {
			panic(err) // the directory of an embedded file system listed it
		}
		p.files = append(p.files, File{Name: name, Data: data})
	}
	p.policies, p.errs = parse(p.files, engine.OriginLibrary)
	for i := range p.policies {
		policy := &p.policies[i]
		policy.Name = p.name + "/" + policy.Name
		if policy.Convert != nil {
			policy.Convert.Policy = policy.Name
		}
	}
}

// listLibrary lists a directory that is part of the binary, in order of the names.
func listLibrary(dir string) []fs.DirEntry {
	entries, err := library.ReadDir(dir)
	if err != nil {
		panic(err) // dir is a constant, or a name that its parent listed
	}
	return entries
}
