package main

import (
	"fmt"
	"io"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// warner tells what is likely not meant in policies, each thing once.
type warner struct {
	w    io.Writer
	told map[string]bool
}

func newWarner(w io.Writer) *warner { return &warner{w, map[string]bool{}} }

func (w *warner) tell(warnings source.Errors) {
	for _, warning := range warnings {
		text := warning.Error()
		if !w.told[text] {
			w.told[text] = true
			fmt.Fprintf(w.w, "warning: %s\n", text)
		}
	}
}
