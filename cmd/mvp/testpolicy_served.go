package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/source"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
)

// servedForm matches a group version, "policy/v1beta1" or "v1", and a resource after it.
// Only the core group has no slash, so that a group without its version is no version.
var servedForm = regexp.MustCompile(`^(v[0-9][a-z0-9]*|[a-z0-9][a-z0-9.-]*/[a-z][a-z0-9-]*)( [a-z0-9][a-z0-9.-]*)?$`)

// checkServed finds what is wrong with how --served is written.
func (opts *testPolicyOptions) checkServed() error {
	for _, served := range opts.served {
		if !servedForm.MatchString(served) {
			return usageError("cannot use --served %q: want a group version such as policy/v1beta1, or v1 for the core group, and a resource after a space if not all of it is served", served)
		}
	}
	return nil
}

// idleServed returns a note for each --served that changes nothing, because no policy
// converts from it.
func (opts *testPolicyOptions) idleServed(set *engine.Set) []string {
	converted := map[string]bool{}
	for _, c := range set.Conversions() {
		groupVersion := c.From.APIVersion()
		converted[groupVersion], converted[groupVersion+" "+c.From.Resource] = true, true
	}
	var notes []string
	for _, served := range opts.served {
		if !converted[served] {
			hint := ""
			if best := source.Closest(served, slices.Sorted(maps.Keys(converted))); best != "" {
				hint = "; did you mean " + best + "?"
			}
			notes = append(notes, "--served "+served+" changes nothing: no policy converts it, and what none converts counts as served"+hint)
		}
	}
	return notes
}

// servers are those that --served describes; nil without it.
func (opts *testPolicyOptions) servers(set *engine.Set) []dryrun.Server {
	if len(opts.served) == 0 {
		return nil
	}
	unconverted := dryrun.Unconverted(set)
	return []dryrun.Server{{Name: "server", Serves: func(group, version, resource string) bool {
		groupVersion := strings.TrimPrefix(group+"/"+version, "/")
		return unconverted(group, version, resource) || slices.Contains(opts.served, groupVersion) ||
			slices.Contains(opts.served, groupVersion+" "+resource)
	}}}
}
