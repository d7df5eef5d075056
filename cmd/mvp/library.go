package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mixed-version-proxy/mvp/engine/source"
	"github.com/mixed-version-proxy/mvp/policies"
)

func libraryCommand(std streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "library [NAME...]",
		Short: "List the shipped policies: what each covers and what it cannot",
		Long: `List the shipped policies, which 'mvp serve --library NAME' loads: the release of
Kubernetes that removed the version, what it is converted to, and the resources.

A NAME prints what its policies cover and what they cannot.`,
		Example: `  mvp library
  mvp library policy-v1beta1
  mvp library policy-v1beta1/poddisruptionbudgets
  mvp library -o json`,
		RunE: func(_ *cobra.Command, names []string) error {
			entries, err := libraryEntries(names)
			switch {
			case err != nil:
				return err
			case output == "json":
				e := json.NewEncoder(std.out)
				e.SetIndent("", "  ")
				e.SetEscapeHTML(false)
				return e.Encode(entries)
			case output != "":
				return usageError("cannot print %s: -o takes json", source.Quote(output))
			case len(names) > 0:
				return printLibraryDocs(std.out, entries)
			}
			return printLibrary(std.out, entries)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json, for programs")
	return cmd
}

// libraryEntry is one shipped policy, or one document of rules, as it is printed.
type libraryEntry struct {
	Name      string   `json:"name"`
	Library   string   `json:"library"` // the name that loads it
	RemovedIn string   `json:"removedIn"`
	From      string   `json:"from,omitempty"` // empty: nothing is converted
	To        string   `json:"to,omitempty"`
	Resources []string `json:"resources,omitempty"`
	Covers    string   `json:"covers"`
	Limits    string   `json:"limits,omitempty"`

	text string
}

// libraryEntries returns what is shipped under names, each that of a policy or of a few
// that are loaded together; all without names.
func libraryEntries(names []string) ([]libraryEntry, error) {
	entries := []libraryEntry{}
	var known []string
	for _, shipped := range policies.Library() {
		known = append(known, shipped.Name)
		for _, doc := range shipped.Docs {
			known = append(known, doc.Name)
			if len(names) > 0 && !slices.Contains(names, shipped.Name) && !slices.Contains(names, doc.Name) {
				continue
			}
			entries = append(entries, libraryEntry{
				Name: doc.Name, Library: shipped.Name, RemovedIn: shipped.Release,
				From: doc.From, To: doc.To, Resources: doc.Resources,
				Covers: doc.Covers, Limits: doc.Limits, text: doc.Text,
			})
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, usageError("there are no shipped policies %s%s", source.Quote(name), source.Suggest(name, known))
		}
	}
	return entries, nil
}

// printLibrary prints a line for each entry.
func printLibrary(out io.Writer, entries []libraryEntry) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "REMOVED IN\tNAME\tFROM\tTO\tLIMITS")
	for _, e := range entries {
		limits := "none known"
		if e.Limits != "" {
			limits = "some" // 'mvp library NAME' prints them
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", e.RemovedIn, e.Name, cmp.Or(e.From, "-"), cmp.Or(e.To, "-"), limits)
	}
	return w.Flush()
}

// printLibraryDocs prints what is written about each entry.
func printLibraryDocs(out io.Writer, entries []libraryEntry) error {
	for i, e := range entries {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if _, err := fmt.Fprintf(out, "%s\n\n%s\n", e.Name, e.text); err != nil {
			return err
		}
	}
	return nil
}
