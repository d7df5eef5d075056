package demo

import (
	"embed"
	"io/fs"
)

//go:embed manifests/*.yaml
var manifestFiles embed.FS

// Manifests holds the files of the manifests directory by their plain names: the
// rules, a CustomResourceDefinition whose v1alpha1 is no longer served, and
// objects in the old versions to try with it.
var Manifests fs.FS = mustSub(manifestFiles, "manifests")

func mustSub(files embed.FS, dir string) fs.FS {
	sub, err := fs.Sub(files, dir)
	if err != nil {
		panic(err) // only for an invalid path, and dir is a constant
	}
	return sub
}
