package main

import (
	"fmt"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/engine/source"
	"github.com/mixed-version-proxy/mvp/policies"
)

// checkFields refuses policies with a path that cannot mean any field, as far as schemas
// tells. Nothing of that is told when they are served but in the log and by /policies:
// then the schemas are those of servers, which may change at any time.
func checkFields(set *engine.Set, opts policies.Options, schemas func(convert.Version) convert.Schema) error {
	errs := set.MissingFields(schemas)
	if len(errs) == 0 {
		return nil
	}
	return &exitError{exitPolicies, policyErrors(policies.Show(errs, opts))}
}

// reportPolicies is what /policies answers.
func (s *stack) reportPolicies() policyReport {
	report := reportPolicies(s.policies, s.proxy.PolicyCounts)
	if warnings := append(s.policies.Current().Warnings(), s.proxy.MissingFields()...); len(warnings) > 0 {
		warnings.Sort()
		report.Warnings = mistakes(s.policies.Show(warnings))
	}
	return report
}

// missingNotes say to the reader of /readyz that there are such warnings.
func missingNotes(missing source.Errors) []string {
	if len(missing) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("policies: rules name fields that there are not: %d, see /policies", len(missing))}
}
