//go:build !randfill

package main

import (
	"math/rand"

	fuzz "github.com/google/gofuzz"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// random is what a fuzzer function gets beside the value to fill. Newer releases
// have it from another module: see fill_randfill.go.
type random = fuzz.Continue

// filler returns a function that fills in what a pointer points to. Lists and maps
// get up to most elements.
func filler(funcs fuzzer.FuzzerFuncs, source rand.Source, most int) func(any) {
	return fuzzer.FuzzerFor(funcs, source, legacyscheme.Codecs).NumElements(0, most).Fuzz
}
