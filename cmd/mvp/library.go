package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mixed-version-proxy/mvp/policies"
)

func libraryCommand(std streams) *cobra.Command {
	return &cobra.Command{
		Use:   "library",
		Short: "List the shipped policies: what each covers and what it cannot",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tSUMMARY")
			for _, shipped := range policies.Library() {
				fmt.Fprintf(w, "%s\t%s\n", shipped.Name, shipped.Summary)
			}
			return w.Flush()
		},
	}
}
