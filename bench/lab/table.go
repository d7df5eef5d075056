package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
)

// A row is one server in the table of status.
type row struct {
	controlplane.Server
	ready string
}

func printStatus(ctx context.Context, w io.Writer, c *controlplane.ControlPlane) error {
	var rows []row
	for _, name := range c.All() {
		s, err := c.Server(name)
		if err != nil {
			return err
		}
		r := row{Server: s, ready: "stopped"}
		if s.PID != 0 {
			r.ready = "yes"
			if err := c.Ready(ctx, name); err != nil {
				r.ready = "no"
			}
		}
		rows = append(rows, r)
	}
	return writeTable(w, rows)
}

func writeTable(w io.Writer, rows []row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tVERSION\tURL\tPID\tREADY")
	for _, r := range rows {
		pid := "-"
		if r.PID != 0 {
			pid = strconv.Itoa(r.PID)
		}
		version := r.Version
		if version == "" {
			version = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.Name, version, r.URL, pid, r.ready)
	}
	return t.Flush()
}

// shellQuote makes one word of s for a POSIX shell.
func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
