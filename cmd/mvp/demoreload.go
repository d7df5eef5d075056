package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/policies"
)

// tellReloads prints a line for each reload of the policies, or for why there is none,
// until ctx is done.
func tellReloads(ctx context.Context, w io.Writer, store *policies.Store) {
	before := lookAtPolicies(store)
	for {
		select {
		case <-ctx.Done():
			return
		case <-store.Changes():
		}
		now := lookAtPolicies(store)
		if line := reloadLine(before, now); line != "" {
			fmt.Fprintln(w, line)
		}
		before = now
	}
}

// policyLook is what is live at one moment.
type policyLook struct {
	policies.Status
	names []string // of the user's policies
}

func lookAtPolicies(store *policies.Store) policyLook {
	look := policyLook{Status: store.Status()}
	for _, info := range store.Current().Policies() {
		if info.Origin != engine.OriginLibrary {
			look.names = append(look.names, info.Name)
		}
	}
	return look
}

// reloadLine says what has become of the policies; "" when nothing has.
func reloadLine(before, now policyLook) string {
	switch {
	case len(now.Err) > 0 && (now.Failures > before.Failures || len(before.Err) == 0):
		first := now.Err[0]
		more := ""
		if n := len(now.Err) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more, see /policies)", n)
		}
		return fmt.Sprintf("The policies are not reloaded, the last good ones stay: %v: %s%s", first.Pos, first.Msg, more)
	case now.Generation > before.Generation:
		what := nameChanges("new", now.names, before.names) + nameChanges("gone", before.names, now.names)
		if what == "" {
			what = ", with the same names"
		}
		return fmt.Sprintf("The policies are reloaded: %d of yours are live%s.", len(now.names), what)
	case len(before.Err) > 0 && len(now.Err) == 0:
		return "The policy files are again as they are live."
	}
	return ""
}

// nameChanges lists the names that are in some and not in others, after what.
func nameChanges(what string, some, others []string) string {
	changed := slices.DeleteFunc(slices.Clone(some), func(name string) bool { return slices.Contains(others, name) })
	if len(changed) == 0 {
		return ""
	}
	return ", " + what + ": " + strings.Join(changed, ", ")
}
