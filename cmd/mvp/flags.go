package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// checkNumbers refuses numbers and durations below zero: no flag means anything by one.
func checkNumbers(cmd *cobra.Command, _ []string) error {
	var wrong error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch f.Value.Type() {
		case "int", "int64", "float64", "duration":
			if strings.HasPrefix(f.Value.String(), "-") && wrong == nil {
				wrong = usageError("cannot use --%s %s: it cannot be negative", f.Name, f.Value)
			}
		}
	})
	return wrong
}
