//go:build randfill

package main

import (
	"math/rand"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/storagemigration/install" // which the fuzzers leave out
	"sigs.k8s.io/randfill"
)

// random is what a fuzzer function gets beside the value to fill. Older releases
// have it from another module: see fill_gofuzz.go.
type random = randfill.Continue

// filler returns a function that fills in what a pointer points to. Lists and maps
// get up to most elements.
func filler(funcs fuzzer.FuzzerFuncs, source rand.Source, most int) func(any) {
	return fuzzer.FuzzerFor(funcs, source, legacyscheme.Codecs).NumElements(0, most).Fill
}
